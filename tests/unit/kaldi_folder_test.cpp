#include "stages/corpus/kaldi_folder.h"

#include <doctest/doctest.h>

#include "pipeline/base/problem.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::kaldi_folder_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows(KaldiFolder&& table) {
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
    rows(KaldiFolder(folder / "segments", required));
    return "";
  } catch (const RunError& e) {
    std::string text = e.what();
    for (std::size_t at; (at = text.find(folder.path() + "/")) != text.npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  }
}

}  // namespace

TEST_CASE("kaldi folder: rows have the paths of wav.scp, speakers and texts") {
  TempFolder folder;
  folder.write("segments", "u1 rec1 0.5 2.25\n\nu2  rec2\t3 -1 \r\nu3 rec1 4 5\n");
  folder.write("wav.scp", "rec1 a/with blank.flac\nrec2   /data/b.wav  \n");
  const Rows plain{{"a/with blank.flac", "0.5", "2.25", "u1", "rec1", "1"},
                   {"/data/b.wav", "3", "", "u2", "rec2", "3"},
                   {"a/with blank.flac", "4", "5", "u3", "rec1", "4"}};
  CHECK(rows(KaldiFolder(folder / "segments", {"path"})) == plain);
  folder.write("utt2spk", "u1 ann\nu3 bob\n");
  folder.write("text", "u1 HELLO  WORLD\nu2\n");
  const Rows with{{"a/with blank.flac", "0.5", "2.25", "u1", "rec1", "ann", "HELLO  WORLD", "1"},
                  {"/data/b.wav", "3", "", "u2", "rec2", "", "", "3"},
                  {"a/with blank.flac", "4", "5", "u3", "rec1", "bob", "", "4"}};
  const KaldiFolder table(folder / "segments", {"speaker", "text"});
  CHECK(table.columns() == std::vector<std::string>{"path", "start", "end", "utterance",
                                                    "recording", "speaker", "text"});
  CHECK(table.column("text") == 6);
  CHECK(table.column("label") == -1);
  CHECK(rows(KaldiFolder(folder / "segments", {})) == with);
}

TEST_CASE("kaldi folder: the fifth word of segments is the channel, from 0") {
  TempFolder folder;
  folder.write("segments", "u1 rec1 0 1 0\nu2 rec1 1 2 1\nu3 rec2 0 1 0\n");
  folder.write("wav.scp", "rec1 a.wav\nrec2 sph2pipe -f wav -c 2 b.sph |\n");
  CHECK(rows(KaldiFolder(folder / "segments", {})) ==
        Rows{{"a#channel=1.wav", "0", "1", "u1", "rec1", "1"},
             {"a#channel=2.wav", "1", "2", "u2", "rec1", "2"},
             {"b#channel=2.sph", "0", "1", "u3", "rec2", "3"}});
  folder.write("segments", "u1 rec1 0 1 left\n");
  CHECK(error(folder) ==
        "segments:1: u1: the channel is 'left', which is not a number from 0 to 1023");
  folder.write("segments", "u1 rec2 0 1 1\n");
  CHECK(error(folder) ==
        "segments:1: u1: names a channel of b#channel=2.sph, which wav.scp names already; write it "
        "in one of them");
}

TEST_CASE("kaldi folder: what makes no sense is named with its line") {
  TempFolder folder;
  CHECK(error(folder) == "segments: cannot be read: No such file or directory");
  folder.write("segments", "u1 rec1 0 1\n");
  CHECK(
      error(folder) ==
      "wav.scp: cannot be read: No such file or directory; it says which files the recordings are");
  folder.write("wav.scp", "rec2 a.wav\nrec1 sox a.wav -t wav - |\n");
  CHECK(
      error(folder) ==
      "wav.scp:2: rec1 is a command (sox a.wav -t wav - |); flac -dc FILE |, sph2pipe -f wav [-c "
      "N] "
      "FILE |, sox FILE -t wav - remix N | and cat FILE | stand for FILE, or its channel N; others "
      "are run only where commands: allow is written");
  folder.write("wav.scp", "rec1\n");
  CHECK(error(folder) == "wav.scp:1: rec1 is without a file; name one, or remove the line");
  folder.write("wav.scp", "rec1 data/raw.ark:17\n");
  CHECK(error(folder) ==
        "wav.scp:1: rec1 is in an archive (data/raw.ark:17); write its recordings to files "
        "(wav-copy) and name these");
  folder.write("wav.scp", "rec2 a.wav\n");
  CHECK(error(folder) == "segments:1: u1: the recording 'rec1' is not in the wav.scp beside it");
  folder.write("segments", "u1 rec2 0\n");
  CHECK(error(folder) ==
        "segments:1: u1: 'u1 rec2 0' is not a line of segments, which is: utterance, recording, "
        "start, "
        "end, and maybe the channel, from 0");
  folder.write("segments", "u1 rec2 0 1\nu2 rec2 0 1 0 A\n");
  CHECK(error(folder) ==
        "segments:2: u2: 'u2 rec2 0 1 0 A' is not a line of segments, which is: utterance, "
        "recording, "
        "start, end, and maybe the channel, from 0");
  folder.write("segments", "u1 rec2 0 1\n");
  CHECK(error(folder, {"path", "label"}) ==
        "segments: there is no column 'label'; there are path, start, end, utterance, recording");
}

TEST_CASE("kaldi folder: an id that comes twice is refused with both lines") {
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

TEST_CASE("kaldi folder: a bad line is left behind, and missing lines of text are told") {
  TempFolder folder;
  folder.write("segments", "u1 rec1 0 1\nu2 rec2 1 2\nu3 rec2\nu4 rec3 0 1\nu5 rec2 2 3\n");
  folder.write("wav.scp", "rec1 sox a.wav -t wav - |\nrec2 b.wav\nrec9 sox c.wav -t wav - |\n");
  folder.write("text", "u1 A\nu5 B\nu9 C\n");
  folder.write("utt2spk", "u1 s\nu2 s\nu3 r\nu4 s\nu5 s\n");
  KaldiFolder table(folder / "segments", {});
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
  CHECK(table.remarks({table.column("path"), table.column("start"), table.column("speaker"),
                       table.column("text")}) ==
        std::vector<std::string>{(folder / "text") +
                                 ": 2 of 4 utterances have no line there (u2, u4); text is empty "
                                 "for them"});
  CHECK(table.remarks({table.column("path"), table.column("start")}).empty());
  CHECK(table.remarks({table.column("path")}) ==
        std::vector<std::string>{(folder / "segments") +
                                 ": the whole recording is taken for each utterance; for its part "
                                 "write utterances: {}"});
}

TEST_CASE("kaldi folder: without segments, every recording is an utterance") {
  TempFolder folder;
  folder.write("wav.scp", "r2 b.wav\nr1 flac -dc 'a b.flac' |\n");
  CHECK(KaldiFolder::is_one(folder.path()));
  CHECK_FALSE(KaldiFolder::is_one(folder / "text"));
  const Rows plain{{"b.wav", "", "", "r2", "r2", "1"}, {"a b.flac", "", "", "r1", "r1", "2"}};
  CHECK(rows(KaldiFolder(folder.path(), {"path"})) == plain);
  folder.write("spk2utt", "ann r1 r2\n");
  folder.write("utt2lang", "r1 de\nr2 en\n");
  folder.write("reco2dur", "r1 1.5\nr2 2\n");
  const Rows with{{"b.wav", "", "", "r2", "r2", "ann", "en", "2", "1"},
                  {"a b.flac", "", "", "r1", "r1", "ann", "de", "1.5", "2"}};
  KaldiFolder table(folder.path(), {"speaker", "language", "recording_duration"});
  CHECK(table.columns().size() == 8);
  CHECK(rows(std::move(table)) == with);
  // A length that is none is told, whether its file is a column or not.
  for (const char* name : {"reco2dur", "utt2dur"}) {
    TempFolder other;
    other.write("wav.scp", "r2 b.wav\nr1 a.wav\n");
    other.write(name, "r1 abc\nr2 2\n");
    KaldiFolder lengths(other.path(), {});
    while (lengths.next()) continue;
    const std::vector<std::string> told = lengths.remarks({});
    REQUIRE(told.size() == 1);
    CHECK(told[0] ==
          other / name +
              ": 1 of 2 lengths are not numbers of seconds above 0 (line 1: abc); these recordings "
              "are not compared with their length");
  }
  // With segments the folder means these; wav.scp by its name still means whole recordings.
  folder.write("segments", "u1 r1 0.5 1\n");
  CHECK(rows(KaldiFolder(folder.path(), {})) ==
        Rows{{"a b.flac", "0.5", "1", "u1", "r1", "", "", "1.5", "1"}});
  CHECK(rows(KaldiFolder(folder / "wav.scp", {})) == with);
  // spk2utt is the same as utt2spk, which counts where both are there.
  folder.write("utt2spk", "r1 bob\nr2 eve\n");
  CHECK(KaldiFolder(folder / "wav.scp", {}).columns()[5] == "speaker");
  CHECK(rows(KaldiFolder(folder / "wav.scp", {}))[0][5] == "eve");
  folder.write("wav.scp", "r2 b.wav\n\nr2 c.wav\n");
  CHECK_THROWS_WITH_AS(rows(KaldiFolder(folder / "wav.scp", {})),
                       (folder / "wav.scp" + ":3: r2 is in line 1 already; an id has one line, so "
                                             "remove one of them")
                           .c_str(),
                       RunError);
}

TEST_CASE("kaldi folder: commands that only decode a file stand for it, and no others") {
  const std::pair<const char*, const char*> files[] = {
      {"flac -dc a.flac |", "a.flac"},
      {"flac -c -d -s /x/a.flac|", "/x/a.flac"},
      {"/usr/bin/flac -cds \"a b.flac\" |", "a b.flac"},
      {"flac --decode --stdout --silent a.flac |", "a.flac"},
      {"sph2pipe -f wav a.sph |", "a.sph"},
      {"/k/tools/sph2pipe_v2.5/sph2pipe -f wav -p 'it''s.wv1' |", "its.wv1"},
      {"sph2pipe -f wav -c 1 a.sph |", "a#channel=1.sph"},
      {"sph2pipe -f wav -p -c 2 a.d/call |", "a.d/call#channel=2"},
      {"sox calls/a.wav -t wav - remix 2 |", "calls/a#channel=2.wav"},
      {"cat a.wav |", "a.wav"},
      {"  cat  a.wav  |", "a.wav"},
  };
  for (const auto& [command, file] : files) {
    CAPTURE(std::string(command));
    CHECK(file_of_command(command) == file);
  }
  for (const char* command : {"a.wav",
                              "",
                              "|",
                              "cat |",
                              "cat a.wav",
                              "cat a.wav b.wav |",
                              "cat -n a.wav |",
                              "flac -c a.flac |",
                              "flac -dc --skip=100 a.flac |",
                              "flac -dc a.flac | sox - -r 8k - |",
                              "sph2pipe -f wav -c 0 a.sph |",
                              "sph2pipe -f wav -c 2b a.sph |",
                              "sox a.wav -t wav - remix 1,2 |",
                              "sox a.wav -t wav - speed 2 |",
                              "sph2pipe -f raw a.sph |",
                              "sph2pipe -t 1:2 a.sph |",
                              "sph2pipe -f |",
                              "sox a.wav -t wav - |",
                              "cat $HOME/a.wav |",
                              "cat `x` |",
                              "cat a.wav; rm b |",
                              "cat < a.wav |",
                              "cat *.wav |",
                              "cat 'a.wav |",
                              "cat a\\ b.wav |",
                              "ffmpeg -i a.mp3 - |"}) {
    CAPTURE(std::string(command));
    CHECK_FALSE(file_of_command(command).has_value());
  }
}

}  // namespace melflow::test::kaldi_folder_test
