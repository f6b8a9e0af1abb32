// Tests splits, several labels and targets of file_list.
#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "stages/corpus/corpus_listing.h"
#include "stages/corpus/whole_files.h"
#include "tests/stage/folder_faults.h"
#include "tests/stage/listed_files.h"
#include "tests/support/printing.h"

namespace melflow::test::file_splits_test {
namespace {

using Texts = std::vector<std::string>;

// Returns "split: path=label,label" for every file.
Texts lines(List& list) {
  Texts out;
  const Manifest& m = list.manifest();
  for (std::size_t i = 0; i < m.size(); ++i) {
    std::string text = list.split_of(i) + ": " + m.relative(i) + "=";
    for (const std::int32_t l : m.labels(i))
      text += (text.ends_with('=') ? "" : ",") + m.label_names().at(std::size_t(l));
    out.push_back(text);
  }
  return out;
}
Texts lines(List&& list) { return lines(list); }

}  // namespace

TEST_CASE("splits from folders: training first, and labels below them") {
  const TempFolder folder;
  for (const char* p : {"test/dog/a.wav", "train/cat/b.wav", "train/dog/c.wav", "val/cat/d.wav",
                        "extra/cat/e.wav", "f.wav"})
    folder.write(p, "x");
  const Texts expected{"train: train/cat/b.wav=cat", "train: train/dog/c.wav=dog",
                       "val: val/cat/d.wav=cat",     "test: test/dog/a.wav=dog",
                       "extra: extra/cat/e.wav=cat", "-: f.wav="};
  CHECK(lines(List(root(folder, "splits: top_dir, labels: top_dir"))) == expected);
  List by_parent(root(folder, "splits: top_dir, labels: parent_dir"));
  CHECK(lines(by_parent) == expected);
  CHECK(by_parent.warnings().empty());

  List named(root(folder, "splits: top_dir, split_names: [test, val, train], exclude: 'extra/**'"));
  CHECK(lines(named) == Texts{"test: test/dog/a.wav=", "val: val/cat/d.wav=",
                              "train: train/cat/b.wav=", "train: train/dog/c.wav=", "-: f.wav="});
  CHECK(complaint(folder, root(folder, "splits: top_dir, split_names: [train, val, test]")) ==
        "@/extra: 'extra' is not among split_names (train, val, test); name it there, or leave its "
        "files out with exclude");
}

TEST_CASE("splits from a manifest: side by side, in order of appearance but for known names") {
  const TempFolder folder;
  const std::string rows =
      "path,split,label\na.wav,zz,x\nb.wav,Test,x\nc.wav,,x\nd.wav,train,x\ne.wav,zz,x\nf.wav,dev,"
      "x\n";
  const std::string csv = folder.write("list.csv", rows);
  const auto with = [&](const std::string& more) {
    return "{manifest: '" + csv + "'" + more + "}";
  };
  const Texts expected{
      "train: d.wav=", "dev: f.wav=", "Test: b.wav=", "zz: a.wav=", "zz: e.wav=", "-: c.wav="};
  CHECK(lines(List(with(""))) == expected);
  CHECK(lines(List(with(", splits: manifest"))) == expected);
  CHECK(lines(List(with(", splits: none"))) ==
        Texts{"-: a.wav=", "-: b.wav=", "-: c.wav=", "-: d.wav=", "-: e.wav=", "-: f.wav="});
  CHECK(complaint(folder, with(", split_names: [train, dev, Test]")) ==
        "@/list.csv:2: 'zz' is not among split_names (train, dev, Test)");
  folder.write("none.csv", "path\na.wav\n");
  CHECK(complaint(folder, "{manifest: '" + (folder / "none.csv") + "', splits: manifest}") ==
        "@/none.csv: there is no column 'split', which splits: manifest asks for; it has path");
}

TEST_CASE("splits whose names differ in case only are named") {
  const TempFolder folder;
  const std::string csv = folder.write("list.csv", "path,split\na,train\nb,Test\nc,test\n");
  CHECK(List("{manifest: '" + csv + "'}").warnings() ==
        Texts{"the splits Test and test differ in case only, and are two splits; if one is meant, "
              "give it one name"});
}

TEST_CASE("a label that training lacks is named") {
  const TempFolder folder;
  const std::string csv = folder.write(
      "list.csv",
      "path,split,label\na,train,cat\nb,test,dog\nc,test,cat\nd,val,fox\ne,,hen\nf,train,ox\n");
  List list("{manifest: '" + csv + "', labels: manifest}");
  CHECK(list.warnings() ==
        Texts{"2 of 5 labels have no file in train, but in other splits: dog, fox"});
  // The position of train, and of the splits that have a label, does not matter.
  List last("{manifest: '" + csv + "', labels: manifest, split_names: [test, val, train]}");
  CHECK(last.warnings() == list.warnings());
  const std::string several = folder.write(
      "several.csv", "path,split,label\na,train-1,cat\nb,train-2,dog\nc,test,cat\nd,test,fox\n");
  CHECK(List("{manifest: '" + several + "', labels: manifest}").warnings() ==
        Texts{"1 of 3 labels have no file in train-1 or train-2, but in other splits: fox"});
  const std::string speakers =
      folder.write("speakers.csv", "path,split,label\na,train,ann\nb,train,bob\nc,test,cid\n");
  CHECK(List("{manifest: '" + speakers + "', labels: manifest}").warnings() ==
        Texts{"1 of 3 labels have no file in train, but in other splits: cid; no label is in "
              "training and in another split, as where labels are speakers"});
  const std::string none = folder.write("none.csv", "path,split,label\na,x,cat\nb,y,dog\n");
  CHECK(List("{manifest: '" + none + "', labels: manifest}").warnings().empty());
}

TEST_CASE("groups that cross given splits are named") {
  const TempFolder folder;
  const std::string csv = folder.write("list.csv",
                                       "path,split,speaker\na,train,s1\nb,test,s2\nc,test,s1\n"
                                       "d,train,s3\ne,train,s3\n");
  List list("{manifest: '" + csv + "', split_group: speaker}");
  CHECK(
      list.warnings() ==
      Texts{
          "1 of 3 groups (split_group) cross splits; a is in train, c of the same group in test"});
  CHECK(complaint(folder, "{manifest: '" + csv + "', split_group: person}") ==
        "@/list.csv: there is no column 'person', which split_group asks for; it has path, split, "
        "speaker");
}

TEST_CASE("splits by ratio: exact, stratified, the same every time, another with another seed") {
  const TempFolder folder;
  for (int i = 0; i < 200; ++i)
    folder.write((i % 4 == 0 ? "cat/" : "dog/") + std::to_string(1000 + i) + ".wav", "x");
  const std::string ratio =
      "labels: top_dir, splits: ratio, split_ratios: {fit: 0.7, check: 0.2, final: 0.1}";
  List list(root(folder, ratio));
  CHECK(list.manifest().split_names() == Texts{"fit", "check", "final"});
  std::map<std::string, int> counts;
  for (const auto& [path, split] : list.splits_by_path()) ++counts[split + " " + path.substr(0, 3)];
  CHECK(counts == std::map<std::string, int>{{"fit cat", 35},
                                             {"fit dog", 105},
                                             {"check cat", 10},
                                             {"check dog", 30},
                                             {"final cat", 5},
                                             {"final dog", 15}});
  const auto splits = list.splits_by_path();
  CHECK(List(root(folder, ratio)).splits_by_path() == splits);
  CHECK(List(root(folder, ratio + ", split_seed: 1")).splits_by_path() != splits);
}

TEST_CASE("splits by ratio: groups stay together, whatever says what a group is") {
  const TempFolder folder;
  std::string csv = "path,who\n";
  for (int i = 0; i < 300; ++i) {
    const std::string who = "s" + std::to_string(i % 30);
    const std::string path = who + "/x/" + who + "-" + std::to_string(i) + ".wav";
    folder.write(path, "x");
    csv += path + "," + who + "\n";
  }
  folder.write("list.csv", csv);
  const std::string ratio = "splits: ratio, ";
  for (const std::string& how :
       {root(folder, ratio + "split_group: top_dir"),
        root(folder, ratio + "split_group: parent_dir"),
        root(folder, ratio + "split_group: '([a-z0-9]+)-[0-9]+[.]wav$'"),
        root(folder, ratio + "split_group: top_dir, split_stratify: false"),
        root(folder, ratio + "split_group: who, manifest: '" + (folder / "list.csv") + "'")}) {
    CAPTURE(how);
    std::map<std::string, std::set<std::string>> of_speaker;
    std::map<std::string, int> counts;
    for (const auto& [path, split] : List(how).splits_by_path()) {
      of_speaker[path.substr(0, path.find('/'))].insert(split);
      ++counts[split];
    }
    CHECK(of_speaker.size() == 30);
    for (const auto& [speaker, splits] : of_speaker) CHECK(splits.size() == 1);
    if (how.find("stratify") == how.npos)
      CHECK(counts == std::map<std::string, int>{{"train", 240}, {"val", 30}, {"test", 30}});
  }
}

TEST_CASE("splits by ratio without strata: files that are added move no other") {
  const TempFolder folder;
  for (int i = 0; i < 100; ++i) folder.write(std::to_string(i) + ".wav", "x");
  const std::string how = root(folder, "splits: ratio, split_stratify: false");
  const auto before = List(how).splits_by_path();
  for (int i = 100; i < 150; ++i) folder.write(std::to_string(i) + ".wav", "x");
  auto after = List(how).splits_by_path();
  CHECK(after.size() == 150);
  for (const auto& [path, split] : before) CHECK(after.at(path) == split);
}

TEST_CASE("several labels a file, from a cell or a list") {
  const TempFolder folder;
  const std::string csv =
      folder.write("list.csv", "path,tags\na,dog|cat|dog\nb,\nc,cat\nd,|ox||\n");
  List list("{manifest: '" + csv +
            "', labels: manifest, columns_are: {label: tags}, label_separator: '|'}");
  CHECK(lines(list) == Texts{"-: a=cat,dog", "-: b=", "-: c=cat", "-: d=ox"});
  CHECK(list.manifest().label_names() == Texts{"cat", "dog", "ox"});
  CHECK(list.manifest().label(0) == -1);
  CHECK(list.manifest().label(2) == 0);
  const std::string json = folder.write("list.jsonl",
                                        "{\"path\": \"a\", \"label\": \"x\"}\n{\"path\": \"b\"}\n"
                                        "{\"path\": \"c\", \"label\": [\"y\", \"w\"]}\n");
  CHECK(lines(List("{manifest: '" + json + "', labels: manifest}")) ==
        Texts{"-: a=x", "-: b=", "-: c=w,y"});
}

TEST_CASE("targets: numbers of a table, in the order that they are asked for") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b.wav", "c.wav"}) folder.write(p, "x");
  const std::string tsv =
      folder.write("t.tsv", "path\tage\tlabel\tmood\na.wav\t31\tx\t-0.5\nc.wav\t\ty\t1e-3\n");
  List list(root(folder, "labels: file, label_file: '" + tsv + "', targets: [mood, age]"));
  CHECK(lines(list) == Texts{"-: a.wav=x", "-: b.wav=", "-: c.wav=y"});
  const Manifest& m = list.manifest();
  CHECK(m.target_names() == Texts{"mood", "age"});
  CHECK(m.target(0, 0) == -0.5F);
  CHECK(m.target(0, 1) == 31);
  CHECK(std::isnan(m.target(1, 0)));
  CHECK(m.target(2, 0) == 1e-3F);
  CHECK(std::isnan(m.target(2, 1)));
  folder.write("t.tsv", "path\tage\na.wav\told\n");
  CHECK(complaint(folder, root(folder, "label_file: '" + tsv + "', targets: age")) ==
        "@/t.tsv:2: age is 'old', which is not a number; leave the cell empty where no number is "
        "known, or leave the column out of targets");
  CHECK(complaint(folder, root(folder, "label_file: '" + tsv + "', targets: size")) ==
        "@/t.tsv: there is no column 'size', which targets asks for; it has path, age");
  // In the order of the splits, like everything else.
  const std::string manifest =
      folder.write("m.csv", "path,split,age\na.wav,test,1\nb.wav,train,2\n");
  List split(root(folder, "manifest: '" + manifest + "', targets: age"));
  CHECK(split.manifest().target(0, 0) == 2);
  CHECK(split.manifest().target(1, 0) == 1);
}

TEST_CASE("columns: texts of a table or of the path, as the user calls them") {
  const TempFolder folder;
  for (const char* p : {"s1/x/a.wav", "s1/y/b.wav", "s2/x/c.wav", "d.wav"}) folder.write(p, "x");
  const std::string jsonl =
      folder.write("t.jsonl",
                   "{\"path\": \"s2/x/c.wav\", \"text\": \"see\", \"tags\": [\"p\", \"q\"]}\n"
                   "{\"path\": \"d.wav\", \"text\": \"\", \"tags\": [\"p\"]}\n"
                   "{\"path\": \"s1/x/a.wav\", \"text\": \"see\"}\n");
  const auto texts = [](List& list) {
    Texts out;
    for (std::size_t i = 0; i < list.manifest().size(); ++i) {
      out.push_back(list.manifest().relative(i));
      for (std::size_t t = 0; t < list.manifest().text_names().size(); ++t)
        out.back().append("|").append(list.manifest().text(i, t));
    }
    return out;
  };
  List list(root(folder, "label_file: '" + jsonl +
                             "', columns: {what: text, tags: tags, speaker: top_dir, room: "
                             "parent_dir, mic: '/([^/]+/[a-z])[.]wav$'}"));
  CHECK(list.manifest().text_names() == Texts{"what", "tags", "speaker", "room", "mic"});
  CHECK(texts(list) == Texts{"d.wav||p|||", "s1/x/a.wav|see||s1|x|x/a", "s1/y/b.wav|||s1|y|y/b",
                             "s2/x/c.wav|see|p, q|s2|x|x/c"});
  // In the order of the splits, like everything else.
  const std::string csv = folder.write(
      "m.csv", "path,split,who\na.wav,test,x\nb.wav,train,x\nc.wav,test,x\nd.wav,train,y\n");
  List split("{manifest: '" + csv + "', columns: [who]}");
  CHECK(texts(split) == Texts{"b.wav|x", "d.wav|y", "a.wav|x", "c.wav|x"});
  CHECK(complaint(folder, "{manifest: '" + csv + "', columns: [whom]}") ==
        "@/m.csv: there is no column 'whom', which columns asks for; it has path, split, who. Did "
        "you mean 'who'?");
  folder.write("m.csv", std::string("path,who\na.wav,x\0y\n", 18));
  CHECK(complaint(folder, "{manifest: '" + csv + "', columns: {speaker: who}}") ==
        "@/m.csv:2: a zero byte is no text; take it out, or name another file");
  folder.write("m.jsonl", "{\"path\": \"a.wav\", \"who\": \"x\\u0000y\"}\n");
  CHECK(complaint(folder, "{manifest: '" + (folder / "m.jsonl") + "', columns: {speaker: who}}") ==
        "@/m.jsonl:1: 'who' has a zero byte, which cannot be stored; take it out");
}

TEST_CASE("splits by ratio: a split without files is an error that says why") {
  const TempFolder folder;
  for (int speaker = 0; speaker < 20; ++speaker)
    for (int i = 0; i < 15; ++i)
      folder.write("all/s" + std::to_string(speaker) + "/" + std::to_string(i) + ".wav", "x");
  for (int i = 0; i < 20; ++i) folder.write(fmt::format("stray/s{}/a.wav", i), "x");
  folder.write("stray/b.wav", "x");
  for (int i = 0; i < 30; ++i) folder.write("few/a/" + std::to_string(i) + ".wav", "x");
  folder.write("few/b/0.wav", "x");
  for (const char* name : {"a/0", "a/1", "b/0", "b/1"})
    folder.write("pairs/" + std::string(name) + ".wav", "x");
  folder.write("two/a/0.wav", "x");
  folder.write("two/b/0.wav", "x");
  for (int i = 0; i < 12; ++i) folder.write("flat/" + std::to_string(i) + ".wav", "x");
  struct Row {
    const char* corpus;
    const char* options;
    const char* message;
  };
  const Row rows[] = {
      {"all", "labels: '^s([0-9]+)/', split_group: parent_dir",
       "val and test are empty: each of 20 labels has one group, and train, the largest split, "
       "must have every label; set labels: none (columns: {name: ...} keeps the names), or take "
       "smaller groups (split_group)"},
      {"all", "labels: none, split_group: parent_dir", ""},
      // Labels that equal the groups are drawn like groups.
      {"all", "labels: parent_dir, split_group: parent_dir", ""},
      {"all", "labels: parent_dir, split_group: top_dir", ""},
      {"stray", "labels: parent_dir, split_group: parent_dir, split_unmatched: own_group", ""},
      {"all", "labels: parent_dir", ""},
      {"few", "labels: parent_dir, split_group: '/([0-9])'", ""},
      {"few", "labels: parent_dir, split_group: parent_dir",
       "test is empty: there are 2 groups for 3 splits; group by another folder, column "
       "or expression (split_group)"},
      {"two", "labels: parent_dir",
       "val and test are empty: there are 2 files for 3 splits; take fewer "
       "splits"},
      {"two", "split_ratios: {fit: 0.5, check: 0.5}, labels: parent_dir",
       "check is empty: each of 2 labels has one file, and fit, the largest split, must have every "
       "label; set labels: none or split_stratify: false"},
      {"flat", "split_ratios: {fit: 0.98, check: 0.01, final: 0.01}", ""},
      {"pairs", "labels: parent_dir, split_ratios: {fit: 0.97, a: 0.01, b: 0.01, c: 0.01}",
       "c is empty: 4 files are too few for 4 splits, of which fit, the largest, must have every "
       "label; take fewer splits, or set labels: none"},
      {"flat", "split_ratios: {fit: 0.999, check: 0.001}, split_stratify: false",
       "check is empty: every file is drawn by its own name, and none of the 12 fell to it; take "
       "another split_seed, or meet the shares exactly with split_stratify: true"},
      {"all",
       "labels: parent_dir, split_group: parent_dir, split_stratify: false, "
       "split_ratios: {fit: 0.999, check: 0.001}",
       "check is empty: every group is drawn by its own name, and none of the 20 fell to it; take "
       "another split_seed, or meet the shares exactly with split_stratify: true"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.corpus));
    CAPTURE(std::string(row.options));
    const std::string expected =
        *row.message == '\0' ? "" : std::string("splits: ratio: ") + row.message;
    CHECK(complaint(folder, "{root: '" + (folder / row.corpus) + "', splits: ratio, " +
                                row.options + "}") == expected);
  }
}

TEST_CASE("split_group: files that it says nothing of are an error, or what the user says") {
  const TempFolder folder;
  std::string csv = "path,who\n";
  for (int i = 0; i < 60; ++i) {
    const std::string en = "en/spk" + std::to_string(i % 12) + "_" + std::to_string(i) + ".wav";
    const std::string fr = "fr/" + std::to_string(i % 12) + "-" + std::to_string(i) + ".wav";
    folder.write(en, "x");
    folder.write(fr, "x");
    csv += en + ",s" + std::to_string(i % 12) + "\n" + fr + ",\n";
  }
  folder.write("list.csv", csv);
  const std::string ratio = "splits: ratio, split_group: '/(spk[0-9]+)_'";
  const std::string found =
      "split_group: 60 of 120 files are in no group, such as fr/0-0.wav: '/(spk[0-9]+)_' finds no "
      "name in its path. ";
  CHECK(complaint(folder, root(folder, ratio)) ==
        found +
            "Correct the rule, or say with split_unmatched what they are: own_group (each is drawn "
            "by itself), one_group (they stay together) or no_split");
  CHECK(complaint(folder, root(folder, "manifest: '" + (folder / "list.csv") +
                                           "', splits: ratio, split_group: who"))
            .starts_with("split_group: 60 of 120 files are in no group, such as fr/0-0.wav: its "
                         "cell of the column 'who' is empty. Correct the rule"));
  folder.write("top.wav", "x");
  for (const char* group : {"parent_dir", "top_dir"})
    CHECK(complaint(folder, root(folder, std::string("splits: ratio, split_group: ") + group))
              .starts_with("split_group: 1 of 121 files are in no group, such as top.wav: it lies "
                           "in no folder below the root. "));
  std::filesystem::remove(folder / "top.wav");

  const auto fr_splits = [](List& list) {
    std::map<std::string, int> counts;
    for (const auto& [path, split] : list.splits_by_path())
      if (path.starts_with("fr/")) ++counts[split];
    return counts;
  };
  List own(root(folder, ratio + ", split_unmatched: own_group"));
  CHECK(fr_splits(own).size() == 3);
  CHECK(own.warnings() ==
        Texts{found + "Each of them is drawn by itself (split_unmatched: own_group)"});
  List one(root(folder, ratio + ", split_unmatched: one_group"));
  CHECK(fr_splits(one).size() == 1);
  CHECK(one.warnings() == Texts{found + "They are one group (split_unmatched: one_group)"});
  List none(root(folder, ratio + ", split_unmatched: no_split"));
  CHECK(fr_splits(none) == std::map<std::string, int>{{"-", 60}});
  CHECK(none.warnings() == Texts{found + "They are in no split (split_unmatched: no_split)"});
  // With given splits nothing is drawn; what cannot be checked is reported.
  List given(root(folder, "splits: top_dir, split_group: '/(spk[0-9]+)_'"));
  CHECK(given.warnings() == Texts{found + "Whether they cross splits is unknown"});
  // Folders that a pattern matches are no recordings.
  folder.write("en/deeper/spk1_99.wav", "x");
  List folders(root(folder, "include: ['en/deep*', 'en/*'], " + ratio));
  CHECK(folders.warnings().empty());
  CHECK(folders.splits_by_path().at("en/deeper") == "-");
}

TEST_CASE(
    "split_group: files without a text in the column that the groups are by are told of once") {
  const TempFolder folder;
  for (const char* name : {"s1/a.wav", "s1/b.wav", "s2/a.wav", "s2/b.wav", "x/a.wav"})
    folder.write(name, "x");
  const std::string columns =
      "columns: {speaker: '(s[0-9])/', letter: '([ab]).wav', digit: '([12])/'}";
  const std::string ratio =
      ", splits: ratio, split_ratios: {train: 50, test: 50}, split_unmatched: own_group";
  List list(root(folder, columns + ratio + ", split_group: speaker"));
  REQUIRE(list.warnings().size() == 2);
  CHECK(list.warnings()[0].starts_with("columns: digit: ([12])/ finds no text in 1 of 5 paths"));
  CHECK(list.warnings()[1].starts_with(
      "split_group: 1 of 5 files are in no group, such as x/a.wav: "));
  List by_letter(root(folder, columns + ratio + ", split_group: letter"));
  CHECK(by_letter.warnings().size() == 2);  // of speaker and digit
}

TEST_CASE("an update leaves files in their split, and new ones of their groups go there") {
  const TempFolder folder;
  const auto add = [&](int from, int to) {
    for (int i = from; i < to; ++i)
      folder.write("s" + std::to_string(i % 40) + "/" + std::to_string(i) + ".wav", "x");
  };
  add(0, 240);
  for (const std::string& how :
       {std::string("splits: ratio"), std::string("splits: ratio, labels: parent_dir"),
        std::string("splits: ratio, split_group: parent_dir"),
        std::string("splits: ratio, split_stratify: false, split_group: top_dir")}) {
    CAPTURE(how);
    for (int i = 240; i < 300; ++i)
      std::filesystem::remove(folder / ("s" + std::to_string(i % 40)) + "/" + std::to_string(i) +
                              ".wav");
    const auto before = List(root(folder, how)).splits_by_path();
    add(240, 300);
    List list(root(folder, how + ", split_seed: 7"), before);
    const auto after = list.splits_by_path();
    CHECK(after.size() == 300);
    for (const auto& [path, split] : before) CHECK(after.at(path) == split);
    CHECK(list.warnings().empty());
    std::map<std::string, int> counts;
    for (const auto& [path, split] : after) ++counts[split];
    if (how == "splits: ratio") CHECK(counts["train"] == 240);  // of 300: still the right share
    if (how.find("split_group") != how.npos)
      for (const auto& [path, split] : after)
        CHECK(split == after.at(path.substr(0, path.find('/')) + "/" +
                                path.substr(1, path.find('/') - 1) + ".wav"));

    // Redrawing must be requested, and is counted.
    List anew(root(folder, how + ", split_seed: 7, split_update: redraw"), before);
    CHECK(anew.splits_by_path() == List(root(folder, how + ", split_seed: 7")).splits_by_path());
    int moved = 0;
    for (const auto& [path, split] : before)
      if (anew.splits_by_path().at(path) != split) ++moved;
    REQUIRE(moved > 0);
    REQUIRE(anew.warnings().size() == 1);
    CHECK(anew.warnings()[0].starts_with(
        std::to_string(moved) + " of 240 files of the earlier output are in another split now: "));
  }
}

TEST_CASE("an update refuses what cannot be kept") {
  const TempFolder folder;
  for (int i = 0; i < 12; ++i)
    folder.write("s" + std::to_string(i % 4) + "/" + std::to_string(i) + ".wav", "x");
  const std::map<std::string, std::string> leaky{
      {"s0/0.wav", "train"}, {"s0/4.wav", "test"}, {"s1/1.wav", "val"}, {"s1/5.wav", "val"}};
  const std::string how =
      "splits: ratio, split_group: parent_dir, split_ratios: {train: 0.5, val: 0.25, test: 0.25}";
  CHECK(complaint(folder, root(folder, how), leaky) ==
        "1 of 4 groups (split_group) have files in several splits of the earlier output, such as "
        "s0/0.wav in train and s0/4.wav in test. Files keep their split in an update, and a group "
        "must not cross splits: take the groups of that run, or have all splits redrawn with "
        "split_update: redraw, which moves files between them");
  CHECK(complaint(folder, root(folder, how + ", split_update: redraw"), leaky) == "");
  const std::map<std::string, std::string> renamed{{"s0/0.wav", "dev"}};
  CHECK(complaint(folder, root(folder, how), renamed) ==
        "s0/0.wav is in the split 'dev' of the earlier output, and split_ratios has train, val, "
        "test only. Files keep their split in an update: name that split, too, or have all splits "
        "redrawn with split_update: redraw");
}

TEST_CASE("an update that leaves a split empty says that files keep theirs, and how to redraw") {
  const TempFolder folder;
  std::map<std::string, std::string> before;
  // Labels a and b; the only speaker in test is removed.
  for (int i = 0; i < 24; ++i) {
    const std::string name = fmt::format("s{}/{}{}.wav", i % 4, i % 8 < 4 ? "a" : "b", i);
    before[name] = i % 4 == 0 ? "test" : i % 4 == 1 ? "val" : "train";
    if (i % 4 != 0) folder.write(name, "x");
  }
  const std::string how =
      "splits: ratio, split_group: top_dir, labels: '([ab])[0-9]+.wav$', split_ratios: {train: "
      "0.5, val: 0.25, test: 0.25}";
  CHECK(complaint(folder, root(folder, how), before) ==
        "splits: ratio: test is empty: no file that is left of the earlier output is in it, and "
        "files keep their split in an update; have all splits redrawn with split_update: "
        "redraw, which moves files between them, or put files of it back");
  CHECK(complaint(folder, root(folder, how + ", split_update: redraw"), before) == "");
  // Where redrawing would not help, the message differs.
  CHECK(complaint(folder, root(folder, "splits: ratio, split_group: top_dir, labels: '^s([0-9])/'"),
                  before)
            .starts_with(
                "splits: ratio: test is empty: each of 3 labels has one group, and train, "));
  // A new speaker takes its place.
  folder.write("s9/a1.wav", "x");
  CHECK(complaint(folder, root(folder, how), before) == "");
}

TEST_CASE("an update beside a recorder: too few whole files for all splits wait for others") {
  const TempFolder folder;
  FileListOptions options;
  options.root = folder.path();
  options.splits = Splits::ratio;
  const auto warn = [](const std::string&) {};
  WholeFiles whole(WholeFiles::Seconds(0));
  folder.write("a.wav", "x");
  CHECK_THROWS_AS(static_cast<void>(list_corpus(options, warn)), RunError);
  CHECK(list_corpus(options, warn, {.whole = &whole}).size() == 0);
  for (int i = 0; i < 20; ++i) folder.write(fmt::format("{}.wav", i), "x");
  CHECK(list_corpus(options, warn, {.whole = &whole}).size() == 21);
}

TEST_CASE("an update counts files that were given another split") {
  const TempFolder folder;
  const std::string csv = folder.write("list.csv", "path,split\na,train\nb,test\nc,train\nd,\n");
  List list("{manifest: '" + csv + "'}",
            {{"a", "test"}, {"b", "test"}, {"c", "val"}, {"d", "test"}, {"gone", "val"}});
  CHECK(list.warnings() == Texts{"3 of 4 files of the earlier output are in another split now: 1 "
                                 "from test to no split, 1 from test to train, 1 from val to "
                                 "train; one is a"});
}

TEST_CASE("an update keeps the files of folders that cannot be listed among its files") {
  const TempFolder folder;
  for (const char* p : {"s1/a.wav", "s1/b.wav", "s1/note.txt", "s2/c.wav", "s3/d.wav"})
    folder.write(p, "x");
  const std::map<std::string, std::string> earlier{{"s1/a.wav", "train"},    {"s1/b.wav", "train"},
                                                   {"s1/note.txt", "train"}, {"s1/", "-"},
                                                   {"s2/c.wav", "val"},      {"s3/d.wav", "test"}};
  const FolderFault fault(FolderFault::Where::opendir, "s1", EIO);
  List list(root(folder, "closed_folders: failed, splits: ratio, labels: parent_dir"), earlier);
  CHECK(lines(list) == Texts{"train: s1/a.wav=s1", "train: s1/b.wav=s1", "val: s2/c.wav=s2",
                             "test: s3/d.wav=s3", "-: s1/="});
}

TEST_CASE("a manifest's columns that nobody reads are named") {
  const TempFolder folder;
  struct Row {
    const char* name;
    const char* text;
    const char* options;
    const char* unread;
  };
  const Row rows[] = {
      {"l.csv", "path,from,to\na,0,1\n", "", "from, to"},
      {"l.csv", "path,label,split\na,x,train\n", ", labels: manifest", ""},
      {"l.csv", "path,label,split\na,x,train\n", ", splits: none", "label, split"},
      {"l.csv", "path,age,who\na,1,x\n",
       ", targets: age, split_group: who, splits: ratio, split_ratios: {train: 1}", ""},
      {"l.csv", "path,age,who\na,1,x\n", ", targets: age", "who"},
      {"l.csv", "path,age,who\na,1,x\n", ", columns: [who]", "age"},
      {"l.jsonl", "{\"path\": \"a\"}\n{\"path\": \"b\", \"split\": \"test\"}\n", ", splits: none",
       "split"},
      {"l.csv", ",path,age\n0,a,1\n", "",
       "one without a name (the index of pandas, which to_csv(index=False) omits), age"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.text));
    CAPTURE(std::string(row.options));
    const std::string path = folder.write(row.name, row.text);
    List list("{manifest: '" + path + "'" + row.options + "}");
    CHECK(list.warnings() ==
          (*row.unread == '\0' ? Texts{} : Texts{path + ": columns not used: " + row.unread}));
  }
}

TEST_CASE("paths that stand in a manifest more than once are counted") {
  const TempFolder folder;
  struct Row {
    const char* name;
    const char* text;
    const char* warning;
  };
  const Row rows[] = {
      {"l.txt", "a.wav\nb.wav\na.wav\n# no path\n./a.wav\n",
       ": 2 of 4 lines name a path that was listed before, such as a.wav (lines 1 and 3). Every "
       "line gives rows of its own"},
      {"l.txt", "x/a.wav\nx//a.wav\nx/./a.wav\nx/y/../a.wav\n@/x/a.wav\nx/b.wav\n",
       ": 4 of 6 lines name a path that was listed before, such as x//a.wav (lines 1 and 2). "
       "Every line gives rows of its own"},
      {"l.csv", "path,split\na,train\nb,train\na,train\nb,test\n",
       ": 2 of 4 lines name a path that was listed before, such as a (lines 2 and 4); 1 in "
       "another split: b is in train and in test. Every line gives rows of its own"},
      {"l.txt", "a.wav\nb.wav\nx/a.wav\nA.wav\n", nullptr},
  };
  for (const char* p : {"a.wav", "a", "x/a.wav"}) folder.write(p, "x");
  for (const Row& row : rows) {
    std::string text = row.text;
    if (const std::size_t at = text.find('@'); at != text.npos) text.replace(at, 1, folder.path());
    const std::string path = folder.write(row.name, text);
    List list("{manifest: '" + path + "', root: '" + folder.path() + "'}");
    CHECK(list.warnings() == (row.warning == nullptr ? Texts{} : Texts{path + row.warning}));
  }
  std::filesystem::remove_all(folder / "x");
  for (const char* p : {"a.wav", "b.wav"}) folder.write(p, "x");
  const std::string table = folder.write("labels.csv", "path,label\na.wav,x\nb.wav,y\na.wav,z\n");
  List list(root(folder, "labels: file, label_file: '" + table + "'"));
  CHECK(lines(list) == Texts{"-: a.wav=z", "-: b.wav=y"});
  CHECK(list.warnings() ==
        Texts{table + ": 1 line names a path that was listed before, such as a.wav (line 4); the "
                      "last one counts"});
}

TEST_CASE("a bad line of a table fails alone, and what is behind it is listed") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b.wav", "c.wav"}) folder.write(p, "x");
  struct Row {
    const char* name;
    std::string text, options, bad, why;  // `bad`: the entry that fails; @: the table
    int line = 3;
  };
  const Row rows[] = {
      {"t.csv", "path,age\na.wav,1\nb.wav\nc.wav,3\n", "targets: age", "@:3",
       "1 cell, but the header has 2; put a cell with commas in quotes, and keep the comma of an "
       "empty cell"},
      {"t.csv", "path,age\na.wav,1\n,2\nc.wav,3\n", "targets: age", "@:3", "the path is empty"},
      {"t.csv", "path,age\na.wav,1\nb.wav,old\nc.wav,3\n", "targets: age", "b.wav",
       "age is 'old', which is not a number; leave the cell empty where no number is known, or "
       "leave the column out of targets"},
      {"t.jsonl", "{\"path\": \"a.wav\", \"age\": 1}\n{\n{\"path\": \"c.wav\", \"age\": 3}\n",
       "targets: age", "@:2", "this is not a JSON object; one per line is expected", 2},
      {"t.jsonl",
       "{\"path\": \"a.wav\", \"age\": 1}\n{\"path\": \"b.wav\", \"age\": {}}\n"
       "{\"path\": \"c.wav\", \"age\": 3}\n",
       "targets: age", "b.wav", "'age' is neither text, a number nor a list of these", 2},
      {"t.jsonl",
       "{\"path\": \"b.wav\", \"who\": \"x\\u0000y\"}\n{\"path\": \"a.wav\", \"age\": 1}\n"
       "{\"path\": \"c.wav\", \"age\": 3}\n",
       "targets: age, labels: manifest, columns_are: {label: who}", "b.wav",
       "'who' has a zero byte, which cannot be stored; take it out", 1},
      {"t.jsonl",
       "{\"path\": \"a.wav\\u0000.txt\", \"age\": 2}\n{\"path\": \"a.wav\", \"age\": 1}\n"
       "{\"path\": \"c.wav\", \"age\": 3}\n",
       "targets: age", "@:1", "'path' has a zero byte, which cannot be stored; take it out", 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string path = folder.write(row.name, row.text);
    std::string bad = row.bad;
    if (bad.starts_with('@')) bad.replace(0, 1, path);
    // Holds also with drawn splits and grouped files.
    for (const std::string more : {"", ", splits: ratio, split_ratios: {train: 1, test: 1}"}) {
      CAPTURE(more);
      List list(root(folder, "manifest: '" + path + "', " + row.options + more));
      const Manifest& m = list.manifest();
      REQUIRE(m.size() == 3);
      std::set<std::string> good;
      for (std::size_t i = 0; i < 3; ++i) {
        if (!m.problem(i).empty()) {
          CHECK(m.relative(i) == bad);
          CHECK(m.problem(i) == fmt::format("{}:{}: {}", path, row.line, row.why));
        } else {
          good.insert(fmt::format("{} {}", m.relative(i), m.target(i, 0)));
          CHECK((m.split(i) >= 0) == !more.empty());
        }
      }
      CHECK(good == std::set<std::string>{"a.wav 1", "c.wav 3"});
      REQUIRE_FALSE(list.warnings().empty());
      CHECK(list.warnings().front() ==
            fmt::format("{0}: 1 of 3 lines cannot be used and fails alone; the first: {0}:{1}: {2}",
                        path, row.line, row.why));
    }
  }
  // For a table beside a folder, the file that the line names.
  const std::string table = folder.write("l.csv", "path,age\na.wav,1\nb.wav,old\nc.wav,3\n");
  List list(root(folder, "label_file: '" + table + "', targets: age"));
  CHECK(list.manifest().problem(1).starts_with(table + ":3: age is 'old'"));
  CHECK(list.manifest().target(2, 0) == 3);
  REQUIRE(list.warnings().size() == 1);
  CHECK(
      list.warnings().front().starts_with(table + ": 1 of 3 lines cannot be used and fails alone"));
  const std::string json = folder.write(
      "l.jsonl",
      "{\"path\": \"a.wav\", \"who\": \"x\"}\n{\"path\": \"b.wav\", \"who\": \"x\\u0000y\"}\n");
  List named(root(folder, "label_file: '" + json + "', labels: file, columns_are: {label: who}"));
  CHECK(named.manifest().label_names() == Texts{"x"});
  CHECK(named.manifest().problem(1) ==
        json + ":2: 'who' has a zero byte, which cannot be stored; take it out");
  // What nothing reads can be anything.
  const std::string more = folder.write("m.jsonl", R"({"path": "a.wav", "meta": {"x": 1}, "s": "1"}
{"path": "b.wav", "meta": "\u0000", "s": {}}
)");
  List unused(root(folder, "manifest: '" + more + "'"));
  CHECK(unused.manifest().problem(0).empty());
  CHECK(unused.manifest().problem(1).empty());
  for (const char* reads : {"columns: [s]", "labels: manifest, columns_are: {label: s}",
                            "columns_are: {split: s}", "columns: [id], columns_are: {id: '{s}'}",
                            "splits: ratio, split_ratios: {x: 1}, split_group: s"}) {
    CAPTURE(reads);
    List used(root(folder, "manifest: '" + more + "', " + reads));
    REQUIRE(used.manifest().size() == 2);
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(used.manifest().problem(i).empty() == (used.manifest().relative(i) == "a.wav"));
  }
  // Other utterances of the same recording are cut.
  const std::string cut = folder.write(
      "u.csv", "path,start,end,age\na.wav,0,1,1\na.wav,1,2,old\na.wav,2,3,3\na.wav,3,4,4\n");
  List utterances(root(folder, "manifest: '" + cut + "', utterances: {}, targets: age"));
  CHECK_FALSE(utterances.manifest().problem(1).empty());
  CHECK(utterances.manifest().entries_of_recording(0) == 1);
  CHECK(utterances.manifest().entries_of_recording(1) == 1);
  CHECK(utterances.manifest().entries_of_recording(2) == 2);
  // An unreadable line could be the label of any file.
  folder.write("l.csv", "path,age\na.wav,1\nb.wav\n");
  CHECK(complaint(folder, root(folder, "label_file: '" + table + "', targets: age"))
            .starts_with("@/l.csv:3: 1 cell, but the header has 2"));
}

TEST_CASE("a line of NeMo's without an offset begins with its recording") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b.wav"}) folder.write(p, "x");
  const std::string path = folder.write(
      "t.jsonl",
      "{\"audio_filepath\": \"a.wav\", \"duration\": 2.5}\n"
      "{\"audio_filepath\": \"b.wav\", \"duration\": 3, \"offset\": 1.5, \"text\": \"hi\"}\n");
  List list(root(folder, "manifest: '" + path +
                             "', columns: [text], utterances: {}, columns_are: "
                             "{path: audio_filepath, start: offset}"));
  CHECK(list.paths() == Texts{"a.wav#t=0,2.5", "b.wav#t=1.5,4.5"});
  CHECK(list.manifest().text(1, 0) == "hi");
  CHECK(list.warnings() ==
        Texts{path + ": 1 of 2 lines have no 'offset' (line 1); it is empty there",
              path + ": 1 of 2 lines have no 'text' (line 1); it is empty there"});
  CHECK(complaint(folder, root(folder, "manifest: '" + path +
                                           "', utterances: {}, columns_are: {path: "
                                           "audio_filepath, start: begin}")) ==
        "@/t.jsonl: there is no column 'begin', which columns_are.start asks for; it has "
        "audio_filepath, duration");
}

TEST_CASE("texts that are not UTF-8 are refused in every list, by file and line") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b.wav"}) folder.write(p, "x");
  const std::string bad = "Ren\xE9", of_manifest = "manifest: '@/";
  struct Row {
    const char* name;
    std::string text, options;
  };
  const std::string
      csv = "path,who\na.wav,x\nb.wav," + bad + "\n",
      json = "{\"path\": \"a.wav\", \"who\": \"x\"}\n\n{\"path\": \"b.wav\", \"who\": \"" + bad +
             "\"}\n",
      words = "u1 x\n\nu2 " + bad + "\n";
  const Row rows[] = {
      {"l.csv", csv, of_manifest + "l.csv', columns: [who]"},
      {"l.csv", csv, of_manifest + "l.csv', labels: manifest, columns_are: {label: who}"},
      {"l.csv", csv, "label_file: '@/l.csv', labels: file, columns_are: {label: who}"},
      {"l.jsonl", json, of_manifest + "l.jsonl', columns: [who]"},
      {"l.jsonl", json, "label_file: '@/l.jsonl', columns: [who]"},
      {"text", words, of_manifest + "segments', columns: [text]"},
      {"utt2spk", words, of_manifest + "segments', split_group: speaker, splits: ratio"},
      {"segments", "u1 r1 0 1\n\n" + bad + " r2 0 1\n",
       of_manifest + "segments', columns: [utterance]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    folder.write("segments", "u1 r1 0 1\nu2 r2 0 1\n");
    folder.write("wav.scp", "r1 a.wav\nr2 b.wav\n");
    folder.write("text", "u1 x\nu2 y\n");
    folder.write("utt2spk", "u1 x\nu2 y\n");
    folder.write(row.name, row.text);
    std::string options = row.options;
    options.replace(options.find('@'), 1, folder.path());
    const std::string said = complaint(folder, root(folder, options));
    CAPTURE(said);
    CHECK(said.starts_with(fmt::format("@/{}:3: '", row.name)));
    CHECK(said.find("Ren\\xe9") != said.npos);
    CHECK(said.ends_with(
        fmt::format("convert it: iconv -f WINDOWS-1252 -t UTF-8 @/{} > NEW", row.name)));
  }
}

TEST_CASE("Kaldi's files: recordings that cannot be read fail alone, missing texts are told") {
  const TempFolder folder;
  folder.write("segments", "u1 r1 0 1\nu2 r2 0 1\nu3 r1 1 2\nu4 r3 0 1\n");
  folder.write("wav.scp", "r1 a.wav\nr2 sox b.wav -t wav - |\nr3 c.wav\n");
  folder.write("text", "u1 HI\nu4 \"YES\"\n");
  for (const char* p : {"a.wav", "c.wav"}) folder.write(p, "x");
  const std::string f = folder.path() + "/";
  List list(
      root(folder, "manifest: '" + f + "segments', utterances: {}, columns: [utterance, text]"));
  const Manifest& m = list.manifest();
  CHECK(list.paths() == Texts{"a.wav#t=0,1", "a.wav#t=1,2", "r2#t=0,1", "c.wav#t=0,1"});
  CHECK(m.problem(2).starts_with(f + "wav.scp:2: r2 is a command (sox b.wav -t wav - |)"));
  CHECK(m.text(3, 1) == "\"YES\"");
  REQUIRE(list.warnings().size() == 2);
  CHECK(
      list.warnings()[0].starts_with(f + "segments: 1 of 4 lines cannot be used and fails alone"));
  CHECK(list.warnings()[1] ==
        f + "text: 2 of 4 utterances have no line there (u2, u3); text is empty for them");
  // A file that is not asked for needs no lines.
  List without(root(folder, "manifest: '" + f + "segments', utterances: {}"));
  CHECK(without.warnings().size() == 1);
}

TEST_CASE("texts of a table are as they stand there, or refused by their line") {
  const TempFolder folder;
  // Texts as in Common Voice.
  const Texts texts{"\"Hi,\" she said, \"yes?\"", "a lone \" here", "\"one at the start",
                    "one at the end\"",           "\"\"",           "plain",
                    "\"another at the start"};
  std::string tsv = "client_id\tpath\tsentence\n";
  for (std::size_t i = 0; i < texts.size(); ++i)
    tsv += fmt::format("c{}\t{}.mp3\t{}\n", i % 2, i, texts[i]);
  const std::string path = folder.write("train.tsv", tsv);
  List list(root(folder, "manifest: '" + path + "', columns: [sentence, client_id]"));
  REQUIRE(list.manifest().size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) CHECK(list.manifest().text(i, 0) == texts[i]);
  CHECK(complaint(folder, root(folder, "quoting: csv, manifest: '" + path + "'"))
            .starts_with("@/train.tsv:2: text behind a closing quote: "));
  // Latin-1 is refused in texts, but accepted in names.
  folder.write("caf\xE9.wav", "x");
  const std::string latin = folder.write("l.csv", "path,who\ncaf\xE9.wav,Ren\xE9\n");
  CHECK(List(root(folder, "manifest: '" + latin + "', splits: none")).manifest().relative(0) ==
        "caf\xE9.wav");
  const std::string gone = folder.write("gone.txt", "caf\xE9.wav\nno\xE9.wav\n");
  CHECK(List(root(folder, "manifest: '" + gone + "'")).warnings().empty());
  folder.write("gone.txt", "no\xE9.wav\ncaf\xE9.wav\n");
  CHECK(List(root(folder, "manifest: '" + gone + "'")).warnings() ==
        Texts{gone +
              ": 2 of 2 paths are not UTF-8 (no\\xe9.wav, caf\\xe9.wav), and the first is not "
              "there; if the list is Latin-1, convert it: iconv -f WINDOWS-1252 -t UTF-8 " +
              gone + " > NEW"});
}

TEST_CASE("names from paths that are the folder of the split are told") {
  const TempFolder folder;
  for (const char* p : {"test/ann/1.wav", "test/top.wav", "train/ann/2.wav", "train/bob/3.wav"})
    folder.write(p, "x");
  struct Row {
    std::string options, remark;  // end of the warning; "" for none
  };
  const std::string cure =
      "; find it in the path by a regular expression whose ( ) marks it, or put the files into "
      "folders below";
  const Row rows[] = {
      {"labels: top_dir", ""},
      {"columns: {who: '^[^/]+/([^/]+)/.'}", ""},
      {"labels: parent_dir",
       "labels: for 1 of 4 files this is the folder of the split (splits: top_dir), test for "
       "test/top.wav" +
           cure},
      {"columns: {who: '^([a-z]+)/'}",
       "columns: who: for 4 of 4 files this is the folder of the split (splits: top_dir), test for "
       "test/ann/1.wav" +
           cure},
      {"split_group: parent_dir",
       "split_group: for 1 of 4 files this is the folder of the split (splits: top_dir), test for "
       "test/top.wav" +
           cure},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    List list(root(folder, "splits: top_dir, " + row.options));
    Texts said;
    for (const std::string& w : list.warnings())
      if (w.find("folder of the split") != w.npos) said.push_back(w);
    CHECK(said == (row.remark.empty() ? Texts{} : Texts{row.remark}));
  }
}

}  // namespace melflow::test::file_splits_test
