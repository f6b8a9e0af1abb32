#include "stages/corpus/kaldi_segments.h"

#include <doctest/doctest.h>

#include "pipeline/base/problem.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::kaldi_segments_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows(KaldiSegments&& table) {
  Rows out;
  while (table.next()) {
    auto& row = out.emplace_back();
    for (const std::string& name : table.columns()) row.push_back(table.cell(name));
    row.push_back(std::to_string(table.line()));
  }
  return out;
}

std::string error(const TempFolder& folder, const std::vector<std::string>& required = {}) {
  try {
    rows(KaldiSegments(folder / "segments", required));
    return "";
  } catch (const RunError& e) {
    std::string text = e.what();
    for (std::size_t at; (at = text.find(folder.path() + "/")) != text.npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  }
}

}  // namespace

TEST_CASE("kaldi segments: rows have the paths of wav.scp, speakers and texts") {
  TempFolder folder;
  folder.write("segments", "u1 rec1 0.5 2.25\n\nu2  rec2\t3 -1 \r\nu3 rec1 4 5\n");
  folder.write("wav.scp", "rec1 a/with blank.flac\nrec2   /data/b.wav  \n");
  const Rows plain{{"a/with blank.flac", "0.5", "2.25", "u1", "rec1", "1"},
                   {"/data/b.wav", "3", "", "u2", "rec2", "3"},
                   {"a/with blank.flac", "4", "5", "u3", "rec1", "4"}};
  CHECK(rows(KaldiSegments(folder / "segments", {"path"})) == plain);
  folder.write("utt2spk", "u1 ann\nu3 bob\n");
  folder.write("text", "u1 HELLO  WORLD\nu2\n");
  const Rows with{{"a/with blank.flac", "0.5", "2.25", "u1", "rec1", "ann", "HELLO  WORLD", "1"},
                  {"/data/b.wav", "3", "", "u2", "rec2", "", "", "3"},
                  {"a/with blank.flac", "4", "5", "u3", "rec1", "bob", "", "4"}};
  const KaldiSegments table(folder / "segments", {"speaker", "text"});
  CHECK(table.columns() == std::vector<std::string>{"path", "start", "end", "utterance",
                                                    "recording", "speaker", "text"});
  CHECK(table.column("text") == 6);
  CHECK(table.column("label") == -1);
  CHECK(rows(KaldiSegments(folder / "segments", {})) == with);
}

TEST_CASE("kaldi segments: what makes no sense is named with its line") {
  TempFolder folder;
  CHECK(error(folder) == "segments: cannot be read: No such file or directory");
  folder.write("segments", "u1 rec1 0 1\n");
  CHECK(error(folder) ==
        "wav.scp: cannot be read: No such file or directory; it says which files the recordings of "
        "segments are");
  folder.write("wav.scp", "rec2 a.wav\nrec1 sph2pipe -f wav a.sph |\n");
  CHECK(
      error(folder) ==
      "wav.scp:2: rec1 is a command (sph2pipe -f wav a.sph |); files are read here and no commands "
      "run, so write its output to a file and name that");
  folder.write("wav.scp", "rec1\n");
  CHECK(error(folder) ==
        "wav.scp:1: rec1 is without a file; files are read here and no commands run, so write its "
        "output to a file and name that");
  folder.write("wav.scp", "rec2 a.wav\n");
  CHECK(error(folder) == "segments:1: the recording 'rec1' is not in the wav.scp beside it");
  folder.write("segments", "u1 rec2 0\n");
  CHECK(error(folder) ==
        "segments:1: 'u1 rec2 0' is not a line of segments, which is: utterance, recording, start, "
        "end");
  folder.write("segments", "u1 rec2 0 1\nu1 rec2 0 1 A\n");
  CHECK(error(folder) ==
        "segments:2: 'u1 rec2 0 1 A' is not a line of segments, which is: utterance, recording, "
        "start, end");
  folder.write("segments", "u1 rec2 0 1\n");
  CHECK(error(folder, {"path", "label"}) ==
        "segments: there is no column 'label'; there are path, start, end, utterance, recording");
}

TEST_CASE("kaldi segments: an id that comes twice is refused with both lines") {
  const std::string good[] = {"u1 rec1 0 1\nu2 rec2 1 2\n", "rec1 a.wav\nrec2 b.wav\n",
                              "u1 A\nu2 B\n", "u1 s\nu2 s\n"};
  const char* const names[] = {"segments", "wav.scp", "text", "utt2spk"};
  const std::string again[] = {"u2 rec1 3 4\n", "rec2 cat c.wav |\n", "u2 B\n", "u2 t\n"};
  for (std::size_t twice = 0; twice < 4; ++twice) {
    TempFolder folder;
    for (std::size_t f = 0; f < 4; ++f)
      folder.write(names[f], good[f] + (f == twice ? "\n" + again[f] : ""));
    CHECK(error(folder) == std::string(names[twice]) + ":4: " + (twice == 1 ? "rec2" : "u2") +
                               " is in line 2 already; an id has one line, so remove one of them");
  }
}

TEST_CASE("kaldi segments: a bad line is left behind, and missing lines of text are told") {
  TempFolder folder;
  folder.write("segments", "u1 rec1 0 1\nu2 rec2 1 2\nu3 rec2\nu4 rec3 0 1\nu5 rec2 2 3\n");
  folder.write("wav.scp", "rec1 cat a.wav |\nrec2 b.wav\nrec9 cat c.wav |\n");
  folder.write("text", "u1 A\nu5 B\nu9 C\n");
  folder.write("utt2spk", "u1 s\nu2 s\nu3 r\nu4 s\nu5 s\n");
  KaldiSegments table(folder / "segments", {});
  CHECK_THROWS_AS(table.next(), BadLine);
  CHECK(table.cell("path") == "rec1");
  CHECK(table.cell("start") == "0");
  REQUIRE(table.next());
  CHECK(table.cell("path") == "b.wav");
  CHECK_THROWS_AS(table.next(), BadLine);
  CHECK(table.cell("path").empty());
  CHECK(table.cell("utterance") == "u3");
  CHECK(table.cell("speaker") == "r");
  CHECK_THROWS_AS(table.next(), BadLine);
  CHECK(table.cell("path") == "rec3");
  CHECK(table.cell("utterance") == "u4");
  REQUIRE(table.next());
  CHECK(table.cell("text") == "B");
  CHECK_FALSE(table.next());
  CHECK(table.remarks({table.column("path"), table.column("speaker"), table.column("text")}) ==
        std::vector<std::string>{(folder / "text") +
                                 ": 2 of 4 utterances have no line there (u2, u4); text is empty "
                                 "for them"});
  CHECK(table.remarks({table.column("path")}).empty());
}

}  // namespace melflow::test::kaldi_segments_test
