// Lists, and files beside recordings, that are wrong or incomplete, and what is said of them.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/stage/list_entries.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::list_problems_test {

TEST_CASE("split_group with a table that gives no splits is told") {
  const TempFolder folder;
  folder.write("t.csv", "path,speaker\na.wav,ann\n");
  const std::string options =
      "root: @, manifest: @/t.csv, columns: [speaker], split_group: speaker";
  List list(of(folder, options));
  CHECK(warnings(list) ==
        Texts{fmt::format("split_group keeps the files of a group in one split, and {} gives no "
                          "splits; add splits: ratio to draw them, or remove split_group",
                          folder / "t.csv")});
  List drawn(of(folder, options + ", splits: ratio, split_ratios: {train: 1}"));
  CHECK(warnings(drawn).empty());
}

TEST_CASE("joined tables: what is wrong is told") {
  const TempFolder folder;
  folder.write("wav/id1/1.wav", "x");
  folder.write("t.csv", "id,sex\nid1,f\n");
  folder.write("bad.csv", "id,sex\nid1\n");
  folder.write("none.csv", "id,sex\n,f\n");
  folder.write("tabs.csv", "id\tsex\nid1\tf\n");
  folder.write("t.jsonl", "{\"id\": \"id1\", \"sex\": \"f\"}\n");
  folder.write("latin.csv", "id,sex\nid1,f\xE9\n");
  const std::string speaker = "columns: {speaker: top_dir}, ";
  const std::pair<std::string, const char*> wrong[] = {
      {speaker + "join: {table: @/t.csv, on: speker, columns: [sex]}",
       "plan: join: @/t.csv: on: 'speker' is not an entry of columns. Did you mean 'speaker'?"},
      {speaker + "labels: top_dir, join: {table: @/t.csv, on: speaker, label: sex}",
       "plan: join: @/t.csv: label: the files have labels already; remove one, or write on: label"},
      {speaker + "splits: top_dir, join: {table: @/t.csv, on: speaker, split: sex}",
       "plan: join: @/t.csv: split: the files have splits already; remove one"},
      {speaker + "join: {table: @/t.csv, on: speaker, columns: {speaker: sex}}",
       "plan: columns: 'speaker' is listed twice"},
      {"join: {table: @/t.csv, on: label, label: sex}",
       "plan: join: @/t.csv: on: label looks up labels, and the files have none; set labels"},
      {"join: {table: @/t.csv, on: label, columns: [sex]}",
       "join: on: label gives labels alone; remove columns and split"},
      {"join: {table: @/t.csv, on: speaker}",
       "join: nothing is taken from the table; write columns, label or split"},
      {"join: {on: speaker, columns: [sex]}", "join: 'table' is missing; write table: FILE"},
      {"join: {table: @/t.csv, columns: [sex]}", "join: 'on' is missing; write on: NAME"},
      {"join: {table: @/t.csv, on: a, colums: [sex]}", "Did you mean 'columns'?"},
      {"join: @/t.csv", "is not a map, such as {table: speakers.csv"},
      {speaker + "join: {table: @/t.csv, on: speaker, key: ID, columns: [sex]}",
       "@/t.csv: there is no column 'ID', which join.key asks for; it has id, sex"},
      {speaker + "join: {table: @/t.csv, on: speaker, columns: [gender]}",
       "@/t.csv: there is no column 'gender', which join.columns asks for; it has id, sex"},
      {speaker + "join: {table: @/t.csv, on: speaker, key: sex, columns: [id]}",
       "@/t.csv: its column sex has none of the values of speaker in this corpus, such as id1; "
       "correct join.on or join.key, or where that comes from (columns, root)"},
      {speaker + "join: {table: @/tabs.csv, on: speaker, columns: [sex]}",
       "it has id\tsex; if these are several columns, write delimiter: \"\\t\""},
      {speaker + "join: {table: @/bad.csv, on: speaker, columns: [sex]}",
       "@/bad.csv:2: 1 cell, but the header has 2"},
      {speaker + "join: {table: @/none.csv, on: speaker, columns: [sex]}",
       "@/none.csv: there is no line with a id"},
      {speaker + "join: {table: @/latin.csv, on: speaker, columns: [sex]}", "is not UTF-8"},
      {speaker + "join: {table: @/gone.csv, on: speaker, columns: [sex]}", "@/gone.csv: "},
  };
  for (const auto& [text, message] : wrong) {
    CAPTURE(text);
    const std::string said = refusal(folder, "root: @/wav, " + text);
    CAPTURE(said);
    CHECK(said.find(message) != said.npos);
  }
}

TEST_CASE("a column that is empty in every line is told") {
  const TempFolder folder;
  folder.write("t.csv", "path,text,gender,note\na.wav,one,,\nb.wav,,,n\n");
  const std::string options = "root: @, manifest: @/t.csv, columns: {words: text, sex: gender";
  List list(of(folder, options + "}"));
  CHECK(warnings(list) == Texts{folder / "t.csv" + ": columns: sex is empty in every line",
                                folder / "t.csv" + ": columns not used: note"});
  List noted(of(folder, options + ", note: note}, limit: 1"));
  CHECK(warnings(noted).front() ==
        folder / "t.csv" + ": columns: sex, note are empty in every line");
}

TEST_CASE("texts beside recordings: a byte order mark is no part of them") {
  const TempFolder folder;
  folder.write("a.wav", "x");
  folder.write("b.wav", "x");
  folder.write("a.txt", "\xEF\xBB\xBFhello\r\n");
  folder.write("b.txt", "hello\n");
  folder.write("a.json", "\xEF\xBB\xBF{\"n\": 123456789012345678901234567890, \"x\": NaN}");
  folder.write("b.json", "{\"n\": 2}");
  List list(of(folder, "root: @, labels: .txt, columns: {n: '.json:n'}"));
  CHECK(entries(list) ==
        Texts{"-: a.wav=hello|123456789012345678901234567890", "-: b.wav=hello|2"});
}

TEST_CASE("texts beside recordings: where all are wrong, each recording fails with its reason") {
  const TempFolder folder;
  for (const char* name : {"a", "b"}) folder.write(std::string(name) + ".wav", "x");
  folder.write("a.txt", "caf\xE9");
  folder.write("b.txt", std::string((1 << 20) + 1, 'x'));
  for (const char* options : {"columns: {text: .txt}", "labels: .txt"}) {
    List list(of(folder, "root: @, " + std::string(options)));
    const Manifest& m = list.manifest();
    REQUIRE(m.size() == 2);
    CHECK(m.problem(0) == "its file a.txt is not UTF-8 text");
    CHECK(m.problem(1) == "its file b.txt has 1048577 bytes, and a text at most 1048576");
  }
  CHECK(complaint(folder, of(folder, "root: @, columns: {text: .lab}")) ==
        "columns: text: no .lab is beside any of the 2 recordings, such as a.wav; correct it, or "
        "remove it");
}

TEST_CASE("a list whose recordings are all beside it, and not below the root, is refused") {
  const TempFolder folder;
  folder.write("c/x/a.wav", "x");
  folder.write("c/b.wav", "x");
  const std::string list = folder.write("c/l.txt", "x/a.wav\nb.wav\n");
  CHECK(complaint(folder, of(folder, "manifest: @/c/l.txt")) ==
        "@/c/l.txt: none of its 2 recordings is in the current folder, but they are beside the "
        "list, such as @/c/x/a.wav; write root: @/c");
  CHECK(complaint(folder, of(folder, "root: @, manifest: @/c/l.txt")) ==
        "@/c/l.txt: none of its 2 recordings is below @, but they are beside the list, such as "
        "@/c/x/a.wav; write root: @/c");
  folder.write("c/t.csv", "path,channel\nb.wav,1\n");
  CHECK(
      complaint(folder, of(folder, "root: @, manifest: @/c/t.csv, columns_are: {channel: channel}"))
          .ends_with("write root: @/c"));
  // One that is there, or one that is nowhere, says that the root is right.
  folder.write("b.wav", "x");
  List there(of(folder, "root: @, manifest: @/c/l.txt"));
  CHECK(there.manifest().size() == 2);
  folder.write("c/m.txt", "x/a.wav\ngone.wav\n");
  List gone(of(folder, "root: @, manifest: @/c/m.txt"));
  CHECK(gone.manifest().size() == 2);
  List right(of(folder, "root: @/c, manifest: @/c/l.txt"));
  CHECK(right.manifest().size() == 2);
}

TEST_CASE("paths that no system takes fail alone, and are not kept") {
  const TempFolder folder;
  const std::string longest(5000, 'x');
  folder.write("l.txt", "a.wav\n" + longest + "\n");
  folder.write("l.csv", "path\na.wav\n" + longest + "\n");
  const std::string why = "the path has 5000 bytes, and 4096 is the most that a system takes";
  List lines(of(folder, "manifest: @/l.txt"));
  CHECK(entries(lines) == Texts{"-: a.wav", fmt::format("-: {}:2 [{}]", folder / "l.txt", why)});
  List table(of(folder, "manifest: @/l.csv"));
  CHECK(entries(table) ==
        Texts{"-: a.wav", fmt::format("-: {0}:3 [{0}:3: {1}]", folder / "l.csv", why)});
}

TEST_CASE("members of archives whose names lead out of their folders are told") {
  const TempFolder folder;
  const std::string make = fmt::format(
      "cd {} && python3 -c \"import tarfile, io\n"
      "t = tarfile.open('x.tar', 'w')\n"
      "for n in ('ok.wav', 'c/../d.wav', '../up.wav', 'c/../d.txt', 'e/./f.wav'):\n"
      "  i = tarfile.TarInfo(n); i.size = 1; t.addfile(i, io.BytesIO(b'x'))\n"
      "t.close()\"",
      folder.path());
  if (std::system(make.c_str()) != 0) {
    MESSAGE("skipped: no program makes it");
    return;
  }
  List list(of(folder, "root: @/x.tar"));
  CHECK(entries(list) == Texts{"-: e/f.wav", "-: ok.wav"});
  CHECK(warnings(list) ==
        Texts{folder / "x.tar: 2 members are left out, as '..' in their names leads out of their "
                       "folders, such as ../up.wav; unpack it, and name the folder"});
}

TEST_CASE("a root that is packed otherwise than archives that are read says so") {
  const TempFolder folder;
  folder.write("x.tar.bz2", "BZh91AY&SY and so on");
  folder.write("x.tar.xz", std::string("\xFD\x37zXZ\0 and so on", 15));
  folder.write("x.tar.zst", "\x28\xB5\x2F\xFD and so on");
  folder.write("x.7z", "7z\xBC\xAF\x27\x1C and so on");
  folder.write("x.txt", "text");
  const auto refusal = [&](const char* name) {
    return complaint(folder, of(folder, std::string("root: @/") + name));
  };
  CHECK(refusal("x.tar.bz2") ==
        "@/x.tar.bz2: this is a file packed by bzip2, which root does not take; unpack it (bunzip2 "
        "-k @/x.tar.bz2) and name @/x.tar");
  CHECK(refusal("x.tar.xz").find("(unxz -k @/x.tar.xz) and name @/x.tar") != std::string::npos);
  CHECK(refusal("x.tar.zst").find("(unzstd @/x.tar.zst) and name @/x.tar") != std::string::npos);
  CHECK(refusal("x.7z") ==
        "@/x.7z: this is a 7z archive, which root does not take; unpack it (7z x "
        "@/x.7z) and name what is in it");
  CHECK(refusal("x.txt").find("this is a file, but root takes a folder") != std::string::npos);
}

}  // namespace melflow::test::list_problems_test
