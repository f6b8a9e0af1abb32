// Splits, several labels and targets of file_list.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/stage/listed_files.h"
#include "tests/support/printing.h"

using namespace melflow;
using namespace melflow::test;

namespace {

using Texts = std::vector<std::string>;

// "split: path=label,label" of every file.
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

  List named(
      root(folder, "splits: top_dir, split_names: [test, val, train], exclude: 'extra/**'"));
  CHECK(lines(named) == Texts{"test: test/dog/a.wav=", "val: val/cat/d.wav=",
                               "train: train/cat/b.wav=", "train: train/dog/c.wav=", "-: f.wav="});
  CHECK(complaint(folder, root(folder, "splits: top_dir, split_names: [train, val, test]")) ==
        "@/extra; leave its files out with exclude: 'extra' is not among split_names (train, val, "
        "test)");
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
        "@/none.csv: there is no column 'split', which splits: manifest asks for");
}

TEST_CASE("a label that training lacks is named") {
  const TempFolder folder;
  const std::string csv = folder.write(
      "list.csv",
      "path,split,label\na,train,cat\nb,test,dog\nc,test,cat\nd,val,fox\ne,,hen\nf,train,ox\n");
  List list("{manifest: '" + csv + "', labels: manifest}");
  CHECK(list.warnings() ==
        Texts{"2 of 5 labels have no file in train, but in other splits: dog, fox"});
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
        "@/list.csv: there is no column 'person', which split_group asks for");
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
            "', labels: manifest, label_column: tags, label_separator: '|'}");
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
        "@/t.tsv:2: age is 'old', which is no number");
  CHECK(complaint(folder, root(folder, "label_file: '" + tsv + "', targets: size")) ==
        "@/t.tsv: there is no column 'size', which targets asks for");
  // In the order of the splits, as everything else.
  const std::string manifest =
      folder.write("m.csv", "path,split,age\na.wav,test,1\nb.wav,train,2\n");
  List split("{manifest: '" + manifest + "', targets: age}");
  CHECK(split.manifest().target(0, 0) == 2);
  CHECK(split.manifest().target(1, 0) == 1);
}
