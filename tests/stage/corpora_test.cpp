// Lists of well-known corpora, as they are published: their names of columns, delimiters and
// quirks. The rows are made up.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/value.h"
#include "stages/corpus/corpus_guess.h"
#include "tests/stage/listed_files.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::corpora_test {
namespace {

using Texts = std::vector<std::string>;

// Returns "split: path=label|text|...", by entry; behind a path in brackets why it fails.
Texts entries(List& list) {
  Texts out;
  const Manifest& m = list.manifest();
  for (std::size_t i = 0; i < m.size(); ++i) {
    std::string& line = out.emplace_back(list.split_of(i) + ": " + m.name(i));
    if (!m.problem(i).empty()) line += " [" + std::string(m.problem(i)) + "]";
    std::string labels;
    for (const std::int32_t l : m.labels(i))
      labels += (labels.empty() ? "=" : ",") + m.label_names()[static_cast<std::size_t>(l)];
    line += labels;
    for (std::size_t t = 0; t < m.text_names().size(); ++t) line.append("|").append(m.text(i, t));
  }
  return out;
}

// The warnings, but that the made-up files are not there.
Texts warnings(List& list) {
  Texts out;
  for (const std::string& warning : list.warnings())
    if (warning.find("its first file") == warning.npos) out.push_back(warning);
  return out;
}

// The options of file_list that are written for a corpus.
std::string written(const CorpusGuess& guess) {
  std::string out;
  for (const auto& [option, value] : guess.options)
    out += (out.empty() ? "{" : ", ") + option + ": " + to_json(value);
  return out + "}";
}

std::string of(const TempFolder& folder, std::string options) {
  for (std::size_t at; (at = options.find('@')) != options.npos;)
    options.replace(at, 1, folder.path());
  return "{" + options + "}";
}

// Why the options are refused, by themselves or with the corpus; the folder is @.
std::string refusal(const TempFolder& folder, const std::string& options) {
  try {
    return complaint(folder, of(folder, options));
  } catch (const ConfigError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("LJSpeech: no header, no quoting, '|' between the cells, a path made of the id") {
  const TempFolder folder;
  folder.write("metadata.csv",
               "LJ001-0001|Printing, in the \"only\" sense|Printing, in the \"only\" sense\n"
               "LJ001-0002|\"born in 1890.|\"born in eighteen ninety.\n");
  List list(of(folder,
               "root: @, manifest: @/metadata.csv, delimiter: '|', header: [id, text, normalized], "
               "columns_are: {path: 'wavs/{id}.wav'}, columns: {text: normalized, id: id}"));
  CHECK(entries(list) == Texts{"-: wavs/LJ001-0001.wav|Printing, in the \"only\" sense|LJ001-0001",
                               "-: wavs/LJ001-0002.wav|\"born in eighteen ninety.|LJ001-0002"});
  CHECK(warnings(list).empty());  // another column gives the text
  List other(of(folder,
                "root: @, manifest: @/metadata.csv, delimiter: '|', header: [id, raw, normalized], "
                "columns_are: {path: 'wavs/{id}.wav'}, columns: {text: normalized}"));
  CHECK(warnings(other) == Texts{folder / "metadata.csv" + ": columns not used: raw"});
}

TEST_CASE("Speech Commands: lists of paths give splits, and the rest is the third") {
  const TempFolder folder;
  for (const char* p : {"no/a_nohash_0.wav", "no/b_nohash_0.wav", "yes/a_nohash_0.wav",
                        "yes/b_nohash_0.wav", "yes/c_nohash_1.wav", "_background_noise_/pink.wav"})
    folder.write(p, "x");
  folder.write("validation_list.txt", "yes/c_nohash_1.wav\n");
  folder.write("testing_list.txt", "./no/b_nohash_0.wav\n");
  const std::string options =
      "root: @, labels: parent_dir, exclude: [_background_noise_], manifest: {train: rest, "
      "validation: @/validation_list.txt, test: @/testing_list.txt}";
  List list(of(folder, options));
  CHECK(entries(list) == Texts{"train: no/a_nohash_0.wav=no", "train: yes/a_nohash_0.wav=yes",
                               "train: yes/b_nohash_0.wav=yes",
                               "validation: yes/c_nohash_1.wav=yes", "test: no/b_nohash_0.wav=no"});
  CHECK(warnings(list).empty());
  // Where the lists name all files, the third split has none.
  List none(of(folder, options + ", include: ['none/*']"));
  REQUIRE_FALSE(warnings(none).empty());
  CHECK(warnings(none).front() ==
        fmt::format("manifest.train: {}: there is no other file than those that the lists name "
                    "(there are 5 .wav, 2 .txt)",
                    folder.path()));
  // Where their paths begin elsewhere, their files would be among the rest.
  CHECK(
      complaint(folder, of(folder, "root: @/no, manifest: {train: rest, test: @/testing_list.txt}"))
          .starts_with("manifest.train: none of the files that the lists name is below @/no, such "
                       "as no/b_nohash_0.wav"));
  const std::pair<const char*, const char*> wrong[] = {
      {"manifest: {a: @/testing_list.txt, b: rest}",
       "plan: manifest: b: the rest are the other files of root, and there is no root; set it"},
      {"root: @, manifest: {a: rest, b: rest, c: @/testing_list.txt}",
       "manifest: a and b: only one split gets the rest; for a list of that name write ./rest"},
      {"root: @, manifest: {a: rest}",
       "manifest: a: the rest is what no list names, and there is no list; write {test: test.txt, "
       "train: rest}"},
      {"root: @, manifest: {a/b: rest, c: @/testing_list.txt}",
       "plan: manifest: 'a/b' cannot be the name of a split"},
  };
  for (const auto& [text, message] : wrong) {
    CAPTURE(std::string(text));
    const std::string said = refusal(folder, text);
    CAPTURE(said);
    CHECK(said.find(message) != said.npos);
  }
}

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

TEST_CASE("Common Voice: several official tables give the splits, paths are below clips") {
  const TempFolder folder;
  const std::string header = "client_id\tpath\tsentence\tage\n";
  folder.write("train.tsv", header + "c1\tb.mp3\tHe said \"no\".\t\nc1\ta.mp3\tYes\ttwenties\n");
  folder.write("test.tsv", header + "c2\tc.mp3\tTest\t\nc2\td.mp3\t\n");
  folder.write("dev.tsv", header + "c1\ta.mp3\tYes\ttwenties\n");
  List list(of(folder,
               "root: @, manifest: {test: @/test.tsv, train: @/train.tsv, dev: @/dev.tsv}, "
               "columns_are: {path: 'clips/{path}'}, columns: {speaker: client_id, text: "
               "sentence}"));
  CHECK(entries(list) ==
        Texts{"train: clips/b.mp3|c1|He said \"no\".", "train: clips/a.mp3|c1|Yes",
              "dev: clips/a.mp3|c1|Yes", "test: clips/c.mp3|c2|Test",
              fmt::format("test: {0}:3 [{0}:3: 3 cells, but the header has 4; keep the tab of an "
                          "empty cell]||",
                          folder / "test.tsv")});
  // A file in two splits is told, by its path: lines of several lists have no one number.
  bool is_told = false;
  for (const std::string& warning : warnings(list)) {
    // A template has the column path.
    CHECK((warning.find("columns not used") == warning.npos || warning.ends_with(": age")));
    is_told = is_told || warning.find(
                             "1 of 5 lines name a path that was listed before, such as "
                             "clips/a.mp3; 1 in another split: clips/a.mp3 is in ") != warning.npos;
  }
  CHECK(is_told);
}

TEST_CASE("ESC-50: other names of columns, a fold as the split") {
  const TempFolder folder;
  folder.write("meta/esc50.csv",
               "filename,fold,target,category,esc10,src_file,take\n"
               "1-100032-A-0.wav,2,0,dog,True,100032,A\n1-100038-A-14.wav,1,14,\"chirping, birds\","
               "False,100038,A\n");
  List list(of(folder,
               "root: @/audio, manifest: @/meta/esc50.csv, labels: manifest, columns_are: {path: "
               "filename, label: category, split: fold}, targets: target, columns: {take: take}"));
  CHECK(entries(list) ==
        Texts{"2: 1-100032-A-0.wav=dog|A", "1: 1-100038-A-14.wav=chirping, birds|A"});
  CHECK(list.manifest().target(1, 0) == 14);
  // A column that the table lacks is no missing split.
  CHECK(complaint(folder, of(folder,
                             "root: @/audio, manifest: @/meta/esc50.csv, columns_are: {path: "
                             "filename, split: folds}")) ==
        "@/meta/esc50.csv: there is no column 'folds', which columns_are.split asks for; it has "
        "filename, fold, target, category, esc10, src_file, take. Did you mean 'fold'?");
}

TEST_CASE("AudioSet: comments, ', ' between the cells, several labels in quotes") {
  const TempFolder folder;
  folder.write("eval_segments.csv",
               "# Segments csv created Sun Mar  5 10:54:25 2017\n"
               "# num_ytids=2\n# YTID, start_seconds, end_seconds, positive_labels\n"
               "--4gqARaEJE, 0.000, 10.000, \"/m/068hy,/m/07q6cd_\"\n"
               "-0BIyqJj9ZU, 30.000, 40.000, \"/m/07rgt08\"\n");
  List list(of(folder,
               "root: @, manifest: @/eval_segments.csv, delimiter: ', ', comment: '#', header: "
               "[ytid, start, end, labels], columns_are: {path: '{ytid}.wav', label: labels}, "
               "labels: manifest, label_separator: ',', utterances: {}"));
  CHECK(entries(list) == Texts{"-: --4gqARaEJE.wav#t=0,10=/m/068hy,/m/07q6cd_",
                               "-: -0BIyqJj9ZU.wav#t=30,40=/m/07rgt08"});
  CHECK(warnings(list).empty());
  // The names of classes are in a second table.
  folder.write(
      "class_labels_indices.csv",
      "index,mid,display_name\n0,/m/068hy,\"Domestic animals, pets\"\n1,/m/07q6cd_,Squeak\n");
  List named(of(folder,
                "root: @, manifest: @/eval_segments.csv, delimiter: ', ', comment: '#', header: "
                "[ytid, start, end, labels], columns_are: {path: '{ytid}.wav', label: labels}, "
                "labels: manifest, label_separator: ',', utterances: {}, join: {table: "
                "@/class_labels_indices.csv, on: label, key: mid, label: display_name}"));
  CHECK(entries(named) == Texts{"-: --4gqARaEJE.wav#t=0,10=Domestic animals, pets,Squeak",
                                "-: -0BIyqJj9ZU.wav#t=30,40=/m/07rgt08"});
  CHECK(warnings(named) ==
        Texts{folder / "class_labels_indices.csv" +
              ": its column mid lacks 1 of the values of label in this corpus, such as "
              "/m/07rgt08; they occur 1 times, and stay as they are"});
}

TEST_CASE("VoxCeleb: speakers and videos are folders") {
  const TempFolder folder;
  for (const char* p : {"wav/id10001/1zcIwhmdeo4/00001.wav", "wav/id10002/xTV/00002.wav"})
    folder.write(p, "x");
  List list(
      of(folder, "root: @/wav, labels: top_dir, columns: {speaker: top_dir, video: parent_dir}"));
  CHECK(entries(list) == Texts{"-: id10001/1zcIwhmdeo4/00001.wav=id10001|id10001|1zcIwhmdeo4",
                               "-: id10002/xTV/00002.wav=id10002|id10002|xTV"});
}

TEST_CASE("VoxCeleb: a second table gives splits and columns of speakers") {
  const TempFolder folder;
  for (const char* p : {"wav/id1/v/1.wav", "wav/id2/v/1.wav", "wav/id3/v/1.wav", "wav/id3/v/2.wav"})
    folder.write(p, "x");
  const std::string options =
      "root: @/wav, labels: top_dir, columns: {speaker: top_dir}, constants: {corpus: v}, ";
  folder.write("vox1_meta.csv",
               "VoxCeleb1 ID\tGender\tSet\nid9\tm\tdev\nid1\tf\ttest\nid2\t m "
               "\tdev\nid2\tf\n");
  const std::string join =
      "join: {table: @/vox1_meta.csv, delimiter: \"\\t\", on: speaker, key: VoxCeleb1 ID, "
      "columns: {gender: Gender}, split: Set}";
  List list(of(folder, options + join));
  CHECK(entries(list) == Texts{"dev: id2/v/1.wav=id2|id2|v|m", "test: id1/v/1.wav=id1|id1|v|f",
                               "-: id3/v/1.wav=id3|id3|v|", "-: id3/v/2.wav=id3|id3|v|"});
  const std::string table = folder / "vox1_meta.csv";
  REQUIRE(warnings(list).size() == 2);
  CHECK(warnings(list)[0].starts_with(
      table + ": 1 line cannot be used and is left out; the first: " + table +
      ":5: 2 cells, but the header has 3"));
  CHECK(warnings(list)[1] ==
        table +
            ": its column VoxCeleb1 ID lacks 1 of the values of speaker in this corpus, such "
            "as id3; they occur 2 times, and what the table would give is empty there");
  // Several tables, one of lines of JSON; a label from one; the last of two lines counts.
  folder.write("rooms.jsonl",
               "{\"id\": \"v\", \"room\": \"hall\"}\n{\"id\": \"v\", \"room\": \"cell\"}\n");
  List several(of(folder,
                  "root: @/wav, columns: {speaker: top_dir, video: parent_dir}, join: [{table: "
                  "@/vox1_meta.csv, delimiter: \"\\t\", on: speaker, columns: [Gender]}, {table: "
                  "@/rooms.jsonl, on: video, key: id, label: room}]"));
  CHECK(entries(several) == Texts{"-: id1/v/1.wav=cell|id1|v|f", "-: id2/v/1.wav=cell|id2|v|m",
                                  "-: id3/v/1.wav=cell|id3|v|", "-: id3/v/2.wav=cell|id3|v|"});
  REQUIRE(warnings(several).size() == 3);
  CHECK(warnings(several)[1] ==
        folder / "rooms.jsonl" +
            ": 1 line has a id that was listed before, such as v; the last one counts");
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
       "it has id\tsex; where that are several columns, write delimiter: \"\\t\""},
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

TEST_CASE(
    "VCTK: a table of speakers with blanks between the cells, whose last ones may be missing") {
  const TempFolder folder;
  for (const char* p : {"wav48/p225/p225_001.wav", "wav48/p226/p226_001.wav"}) folder.write(p, "x");
  folder.write("speaker-info.txt",
               "ID  AGE  GENDER  ACCENTS  REGION COMMENTS\np225  23  F    English    Southern  "
               "England\np226  22  M    English\n");
  List list(
      of(folder,
         "root: @/wav48, labels: top_dir, columns: {speaker: top_dir}, join: {table: "
         "@/speaker-info.txt, delimiter: ' ', comment: ID, header: [id, age, gender, accent], "
         "on: speaker, columns: [gender, accent]}"));
  CHECK(entries(list) == Texts{"-: p225/p225_001.wav=p225|p225|F|English    Southern  England",
                               "-: p226/p226_001.wav=p226|p226|M|English"});
  CHECK(warnings(list).empty());
}

TEST_CASE("LibriSpeech: a list beside the files of each chapter, texts with blanks") {
  const TempFolder folder;
  folder.write("train/19/198/19-198.trans.txt", "19-198-0000 NORTHANGER ABBEY\n19-198-0001 A  B\n");
  folder.write("dev/84/121123/84-121123.trans.txt", "84-121123-0000 GO\n84-121123-0001\n\n");
  folder.write("README.TXT", "no list\n");
  const std::string options =
      "header: [id, text], delimiter: ' ', columns_are: {path: '{folder}{id}.flac'}, columns: "
      "{text: text, speaker: '^[^/]+/([^/]+)/'}, splits: top_dir";
  const Texts wanted{"train: train/19/198/19-198-0000.flac|NORTHANGER ABBEY|19",
                     "train: train/19/198/19-198-0001.flac|A  B|19",
                     "dev: dev/84/121123/84-121123-0000.flac|GO|84",
                     "dev: dev/84/121123/84-121123-0001.flac||84"};
  List list(of(folder, "root: @, manifest: '@/**/*.trans.txt', " + options));
  CHECK(entries(list) == wanted);
  CHECK(warnings(list).empty());
  CHECK(complaint(folder, of(folder, "root: @, manifest: '@/*.trans.txt', " + options)) ==
        "@/*.trans.txt: no file matches this pattern of manifest");
  // What holds for thousands of lists is told of the first.
  List unused(of(folder,
                 "root: @, manifest: '@/**/*.trans.txt', header: [id, text], delimiter: "
                 "' ', columns_are: {path: '{folder}{id}.flac'}"));
  CHECK(warnings(unused) ==
        Texts{folder / "dev/84/121123/84-121123.trans.txt" + ": columns not used: text"});
  // A root elsewhere: paths are as they are found.
  List elsewhere(of(folder,
                    "root: @/dev/84, manifest: '@/dev/**/*.trans.txt', header: [id, text], "
                    "delimiter: ' ', columns_are: {path: '{folder}{id}.flac'}, limit: 1"));
  CHECK(elsewhere.paths() == Texts{"121123/84-121123-0000.flac"});
}

TEST_CASE("constants: a label, a split and columns for all files of a source") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b.wav"}) folder.write(p, "x");
  folder.write("t.csv", "path,split,n\na.wav,test,1\n,train,2\n");
  const std::string constants =
      ", constants: {label: speech, split: train, corpus: TIMIT}, columns: {room: '([a-z])[.]'}";
  List scanned(of(folder, "root: @" + constants));
  CHECK(entries(scanned) == Texts{"train: a.wav=speech|a|TIMIT", "train: b.wav=speech|b|TIMIT"});
  List listed(of(folder, "root: @, manifest: @/t.csv" + constants));
  CHECK(entries(listed) ==
        Texts{"train: a.wav=speech|a|TIMIT",
              fmt::format("train: {0}:3 [{0}:3: the path is empty]=speech||TIMIT",
                          folder / "t.csv")});
  const std::pair<const char*, const char*> wrong[] = {
      {"labels: parent_dir, constants: {label: a}",
       "plan: constants: label: the files have labels already (labels); remove one"},
      {"splits: ratio, constants: {split: a}",
       "plan: constants: split: the files have splits already (splits); remove one"},
      {"constants: {corpus: '{source}'}",
       "constants.corpus: {source} is the name of one of several file_list nodes, and there is "
       "one; write the text itself"},
      {"columns: {a: parent_dir}, constants: {a: b}", "plan: columns: 'a' is listed twice"},
      {"manifest: {a/b: @/t.csv}",
       "plan: manifest: 'a/b' cannot be the name of a split: it becomes part of names in the "
       "output"},
      {"manifest: {a: @/t.csv}, splits: top_dir",
       "plan: manifest: each list is for a split, which splits would set otherwise; remove splits"},
      {"columns_are: {lable: a}, manifest: @/t.csv",
       "plan: columns_are: nothing reads a column 'lable'. Did you mean 'label'?; allowed: path, "
       "label, split, start, end, duration, channel, channel_from_0, and names that columns, "
       "targets or split_group read"},
      {"columns_are: {path: path, channel: n, channel_from_0: n}, manifest: @/t.csv",
       "plan: columns_are: channel and channel_from_0 are both given; remove one"},
      {"columns_are: {channel: side}, manifest: @/t.csv",
       "@/t.csv: there is no column 'side', which columns_are.channel asks for; it has path, "
       "split, "
       "n"},
      {"columns_are: {path: a}",
       "plan: columns_are: these are columns of a table, and there is none; set manifest or "
       "label_file"},
      {"delimiter: '|', header: [id], manifest: @/t.csv",
       "@/t.csv: there is no column 'path'; header names id"},
      {"delimiter: '|', manifest: @/t.csv, columns_are: {path: '{n}.wav'}",
       "@/t.csv:1: there is no column 'n'; the first line is 'path,split,n', with ',' between its "
       "cells; write delimiter: ',' and, where the first line is no header, the names of the "
       "columns as header: [...]"},
  };
  for (const auto& [options, message] : wrong) {
    CAPTURE(std::string(options));
    CHECK(complaint(folder, of(folder, "root: @, " + std::string(options))).starts_with(message));
  }
}

TEST_CASE("Kaldi: a data folder without segments, and with them") {
  const TempFolder folder;
  folder.write("data/wav.scp", "r1 a.wav\nr2 flac -dc b.flac |\nr3 sox c.wav -t wav - |\n");
  folder.write("data/utt2spk", "r1 ann\nr2 bob\nr3 eve\n");
  const std::string options = "root: @, manifest: @/data, columns: [utterance, speaker]";
  List whole(of(folder, options));
  CHECK(entries(whole)[0] == "-: a.wav|r1|ann");
  CHECK(entries(whole)[1] == "-: b.flac|r2|bob");
  CHECK(entries(whole)[2].starts_with("-: r3 ["));
  CHECK(entries(whole)[2].ends_with("]|r3|eve"));
  CHECK(warnings(whole).size() == 1);
  List as_utterances(of(folder, options + ", utterances: {}"));
  CHECK(as_utterances.paths() == Texts{"a.wav#t=0", "b.flac#t=0", "r3#t=0"});
  folder.write("data/segments", "u1 r2 1 2.5\nu2 r2 0 1\n");
  folder.write("data/utt2spk", "u1 ann\nu2 bob\n");
  List parts(of(folder, options + ", utterances: {}"));
  CHECK(entries(parts) == Texts{"-: b.flac#t=0,1|u2|bob", "-: b.flac#t=1,2.5|u1|ann"});
  CHECK(warnings(parts).empty());
  // Each split may be a folder.
  folder.write("test/wav.scp", "r4 d.wav\n");
  List splits(of(folder, "root: @, manifest: {test: @/test, train: @/data}, utterances: {}"));
  CHECK(entries(splits) ==
        Texts{"train: b.flac#t=0,1", "train: b.flac#t=1,2.5", "test: d.wav#t=0"});
}

TEST_CASE("NeMo: audio_filepath and offset are known") {
  const TempFolder folder;
  folder.write("train.json",
               "{\"audio_filepath\": \"b.wav\", \"duration\": 3.5, \"text\": \"one\"}\n"
               "{\"audio_filepath\": \"a.wav\", \"offset\": 1.5, \"duration\": 0.25, \"text\": "
               "\"two\", \"speaker\": \"s\"}\n");
  List list(
      of(folder, "root: @, manifest: @/train.json, columns: [text, speaker], utterances: {}"));
  CHECK(entries(list) == Texts{"-: b.wav#t=0,3.5|one|", "-: a.wav#t=1.5,1.75|two|s"});
  folder.write("whole.jsonl", "{\"audio_filepath\": \"b.wav\", \"duration\": 3.5}\n");
  List whole(of(folder, "root: @, manifest: @/whole.jsonl"));
  CHECK(whole.paths() == Texts{"b.wav"});
  CHECK(warnings(whole) == Texts{folder / "whole.jsonl" + ": columns not used: duration"});
  // What columns_are say comes first.
  List other(of(folder, "root: @, manifest: @/train.json, columns_are: {path: '{text}.wav'}"));
  CHECK(other.paths() == Texts{"one.wav", "two.wav"});
}

TEST_CASE("a channel of its file for each line") {
  const TempFolder folder;
  folder.write("calls.csv",
               "file,side,who,zero\nx/1.wav,1,agent,0\nx/1.wav,2,caller,1\nx/2.wav,,both,\n"
               "x/3.wav,0,nobody,-1\nx/3.wav,b,nobody,1024\nno,2,none,1\n");
  const std::string options =
      "root: @, manifest: @/calls.csv, columns: {who: who}, columns_are: {path: file, channel";
  const auto bad = [&](const char* what, const char* advice) {
    return fmt::format(
        "-: x/3.wav [{}:{}: the channel is '{}', which is not a number from 1 to 1024{}]|nobody",
        folder / "calls.csv", *advice == 0 ? 6 : 5, what, advice);
  };
  List list(of(folder, options + ": side}"));
  CHECK(entries(list) ==
        Texts{"-: x/1#channel=1.wav|agent", "-: x/1#channel=2.wav|caller", "-: x/2.wav|both",
              bad("0", "; where channels are counted from 0, write channel_from_0"), bad("b", ""),
              "-: no#channel=2|none"});
  List from_0(of(folder, options + "_from_0: zero}"));
  CHECK(entries(from_0).at(1) == "-: x/1#channel=2.wav|caller");
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

TEST_CASE("Lhotse: recordings, supervisions and cuts; what is no part of one file fails alone") {
  const TempFolder folder;
  const auto recording = [](const std::string& id, const std::string& more = "",
                            const std::string& type = "file") {
    return "{\"id\": \"" + id + "\", \"sources\": [{\"type\": \"" + type +
           "\", \"channels\": [0], \"source\": \"" + id +
           ".wav\"}], \"sampling_rate\": 16000, \"num_samples\": 64000, \"duration\": 4.0, "
           "\"channel_ids\": [0]" +
           more + "}";
  };
  folder.write("x_recordings_train.jsonl",
               recording("r1") + "\n" + recording("r2", "", "url") + "\n" +
                   recording("r3", ", \"transforms\": [{\"name\": \"Speed\"}]") + "\n");
  const std::string columns = ", columns: [utterance, text, speaker], utterances: {}";
  List recordings(of(folder, "root: @, manifest: @/x_recordings_train.jsonl" + columns));
  CHECK(
      entries(recordings) ==
      Texts{"-: r1.wav#t=0|r1||",
            fmt::format("-: r2#t=0 [{}:2: r2 has a source of type url, which is not read; save it "
                        "as a file]|r2||",
                        folder / "x_recordings_train.jsonl"),
            fmt::format("-: r3#t=0 [{}:3: r3 is changed when it is read (transforms); save it as "
                        "it is then]|r3||",
                        folder / "x_recordings_train.jsonl")});
  const auto supervision = [](const std::string& id, const std::string& of, double start,
                              double duration, int channel = 0) {
    return fmt::format(
        "{{\"id\": \"{}\", \"recording_id\": \"{}\", \"start\": {}, \"duration\": {}, "
        "\"channel\": {}, \"text\": \"text of {}\", \"speaker\": \"ann\"}}",
        id, of, start, duration, channel, id);
  };
  folder.write("x_supervisions_train.jsonl", supervision("s1", "r1", 0.5, 1) + "\n" +
                                                 supervision("s2", "r1", 2, 1, 1) + "\n" +
                                                 supervision("s3", "r9", 0, 1) + "\n");
  const std::string list = folder / "x_supervisions_train.jsonl";
  List supervisions(of(folder, "root: @, manifest: @/x_supervisions_train.jsonl" + columns));
  CHECK(entries(supervisions) ==
        Texts{"-: r1.wav#t=0.5,1.5|s1|text of s1|ann",
              fmt::format("-: r1.wav#t=2,3 [{}:2: s2 is channel 1 of a file with the channels 0; "
                          "save that channel as a file and name it]|s2|text of s2|ann",
                          list),
              fmt::format("-: s3#t=0 [{}:3: s3 is in the recording 'r9', which the recordings "
                          "lack]|s3|text of s3|ann",
                          list)});
  const auto cut = [&](const std::string& id, double start, double duration,
                       const std::string& inner) {
    return fmt::format(
        "{{\"id\": \"{}\", \"start\": {}, \"duration\": {}, \"channel\": 0, \"supervisions\": "
        "[{}], \"recording\": {}, \"type\": \"MonoCut\"}}",
        id, start, duration, inner, recording("r1"));
  };
  folder.write("cuts.jsonl",
               cut("c1", 0, 4, supervision("a", "r1", 0, 1) + "," + supervision("b", "r1", 1, 1)) +
                   "\n" + cut("c2", 1.25, 0.5, "") + "\n" +
                   "{\"id\": \"c3\", \"tracks\": [], \"type\": \"MixedCut\"}\nno json\n");
  List cuts(of(folder, "root: @, manifest: @/cuts.jsonl" + columns));
  CHECK(entries(cuts) ==
        Texts{"-: r1.wav#t=0|c1|text of a text of b|ann", "-: r1.wav#t=1.25,1.75|c2||",
              fmt::format(
                  "-: c3#t=0 [{0}:3: c3 is a MixedCut, which is no part of one file; save its "
                  "audio (save_audio) and name that]|c3||",
                  folder / "cuts.jsonl"),
              fmt::format("-: {0}:4#t=0 [{0}:4: this is no JSON object; one per line is "
                          "expected]|||",
                          folder / "cuts.jsonl")});
  // Without utterances the parts are not what is taken.
  List whole(of(folder, "root: @, manifest: @/cuts.jsonl"));
  bool is_told = false;
  for (const std::string& warning : warnings(whole))
    is_told = is_told || warning == folder / "cuts.jsonl" +
                                        ": the whole recording is taken for each entry; for its "
                                        "part write utterances: {}";
  CHECK(is_told);
  CHECK(complaint(folder, of(folder, "root: @, manifest: @/cuts.jsonl, columns: [custom]")) ==
        "@/cuts.jsonl: there is no column 'custom', which columns asks for; it has path, start, "
        "duration, utterance, recording, channel, text, speaker, language, gender");
  folder.write("supervisions.jsonl", supervision("s1", "r1", 0.5, 1) + "\n");
  CHECK(complaint(folder, of(folder, "root: @, manifest: @/supervisions.jsonl")) ==
        "@/supervisions.jsonl: these are supervisions; their recordings are read from the file "
        "beside it that has recordings in place of supervisions in its name, and "
        "@/recordings.jsonl is not there");
}

TEST_CASE("Lhotse: a channel that is no whole number is no channel of the file") {
  const TempFolder folder;
  const auto cut = [](const std::string& channel) {
    return R"({"id": "c", "start": 0.5, "duration": 1, "channel": )" + channel +
           R"(, "supervisions": [], "recording": {"id": "r", "sources": [{"type": "file", )"
           R"("channels": [0, 1], "source": "r.wav"}], "sampling_rate": 16000, "duration": 4.0}, )"
           R"("type": "MonoCut"})"
           "\n";
  };
  folder.write("c.jsonl", cut("1") + cut("1.5") + cut("4294967296") + cut("\"1\"") + cut("1.0"));
  List list(of(folder, "manifest: @/c.jsonl, utterances: {}"));
  const auto refused = [&](int line, const std::string& channel) {
    return fmt::format(
        "-: r.wav#t=0.5,1.5 [{}:{}: c is channel {} of a file with the channels 0, 1; save that "
        "channel as a file and name it]",
        folder / "c.jsonl", line, channel);
  };
  CHECK(entries(list) == Texts{"-: r#channel=2.wav#t=0.5,1.5", "-: r#channel=2.wav#t=0.5,1.5",
                               refused(2, "1.5"), refused(3, "4294967296"), refused(4, "1")});
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

TEST_CASE("a header whose last name ends in '...' gives that column the rest of the line") {
  const TempFolder folder;
  folder.write("s/1/a.wav", "x");
  folder.write("s/2/b.wav", "x");
  folder.write("S.TXT", ";ID | NAME\n1 | Ann | of | York\n2 | Bob\n");
  List list(of(folder,
               "root: @/s, columns: {speaker: parent_dir}, join: {table: @/S.TXT, delimiter: '|', "
               "comment: ';', header: [id, name...], on: speaker, columns: [name]}"));
  CHECK(entries(list) == Texts{"-: 1/a.wav|1|Ann | of | York", "-: 2/b.wav|2|Bob"});
  CHECK(warnings(list).empty());
}

TEST_CASE("lists packed by gzip are read as they are, and damaged ones refused") {
  const TempFolder folder;
  // Two members: printf 'path,label\na.wav,x\n' | gzip -n; printf 'b.wav,y\n' | gzip -n
  const unsigned char packed[] = {
      0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x2b, 0x48, 0x2c, 0xc9,
      0xd0, 0xc9, 0x49, 0x4c, 0x4a, 0xcd, 0xe1, 0x4a, 0xd4, 0x2b, 0x4f, 0x2c, 0xd3, 0xa9,
      0xe0, 0x02, 0x00, 0xf0, 0x1a, 0x55, 0xbd, 0x13, 0x00, 0x00, 0x00, 0x1f, 0x8b, 0x08,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x4b, 0xd2, 0x2b, 0x4f, 0x2c, 0xd3, 0xa9,
      0xe4, 0x02, 0x00, 0x8f, 0x32, 0x30, 0xbb, 0x08, 0x00, 0x00, 0x00};
  const std::string all(reinterpret_cast<const char*>(packed), sizeof packed);
  List list(of(folder, "manifest: '" + folder.write("l.csv.gz", all) + "', labels: manifest"));
  CHECK(entries(list) == Texts{"-: a.wav=x", "-: b.wav=y"});
  const std::string padded = all + std::string(20'000, '\0');
  List zeros(of(folder, "manifest: '" + folder.write("z.csv.gz", padded) + "', labels: manifest"));
  CHECK(entries(zeros) == Texts{"-: a.wav=x", "-: b.wav=y"});
  const std::string first = all.substr(0, 30);
  CHECK(complaint(folder, of(folder, "manifest: '" + folder.write("a.csv.gz", first) + "'"))
            .starts_with("@/a.csv.gz: this file packed by gzip ends too early"));
  CHECK(complaint(folder,
                  of(folder, "manifest: '" + folder.write("b.csv.gz", first + "\xff\xff") + "'"))
            .starts_with("@/b.csv.gz: this file packed by gzip is damaged"));
}

TEST_CASE("a folder is recognized, and the options that are written for it read it") {
  struct Row {
    const char* what;
    std::vector<std::pair<const char*, const char*>> files;
    Texts entries, remarks = {};  // the folder is @
  };
  const char* const lhotse_cut =
      "{\"id\": \"c\", \"start\": 0.5, \"duration\": 1, \"channel\": 0, \"supervisions\": "
      "[{\"id\": \"s\", \"text\": \"t\", \"speaker\": \"p\"}], \"type\": \"MonoCut\", "
      "\"recording\": "
      "{\"id\": \"r\", \"duration\": 4, \"sampling_rate\": 8000, \"sources\": [{\"type\": "
      "\"file\", "
      "\"channels\": [0], \"source\": \"/a.wav\"}]}}\n";
  const Row rows[] = {
      {"a data folder of Kaldi (wav.scp, segments, text)",
       {{"wav.scp", "r /a.wav\n"}, {"segments", "u r 0 1\n"}, {"text", "u HI\n"}},
       {"-: /a.wav#t=0,1|u|HI"}},
      {"data folders of Kaldi, each a split (test, train)",
       {{"data/train/wav.scp", "r /a.wav\n"},
        {"data/train/text", "r HI\n"},
        {"data/test/wav.scp", "s /b.wav\n"}},
       {"train: /a.wav|r", "test: /b.wav|s"},
       {"the column text is not used: of 2 lists 1 has it (train)"}},
      {"LJSpeech (metadata.csv with |, wavs/ID.wav)",
       {{"metadata.csv", "a|b \"|c\n"}, {"wavs/a.wav", "x"}},
       {"-: wavs/a.wav|c"}},
      {"Common Voice (train.tsv, test.tsv, clips)",
       {{"train.tsv", "client_id\tpath\tsentence\nc\ta.mp3\tYes\n"},
        {"test.tsv", "client_id\tpath\tsentence\nd\tb.mp3\tNo\n"},
        {"other.tsv", "client_id\tpath\tsentence\n"},
        {"clips/a.mp3", "x"}},
       {"train: clips/a.mp3|Yes|c", "test: clips/b.mp3|No|d"},
       {"a table is not used: other.tsv"}},
      {"a folder of 1 sound file",
       {{"de/train.tsv", "client_id\tpath\tsentence\nc\ta.mp3\tYes\n"}, {"de/clips/a.mp3", "x"}},
       {"-: de/clips/a.mp3"},
       {"@/de has Common Voice (train.tsv, clips), which is not used; to use it: --from @/de"}},
      {"Speech Commands (validation_list.txt, testing_list.txt, all others for training; labels "
       "from the names of folders; without _background_noise_)",
       {{"validation_list.txt", "up/b_nohash_0.wav\n"},
        {"testing_list.txt", "up/c_nohash_0.wav\n"},
        {"up/a_nohash_0.wav", "x"},
        {"up/b_nohash_0.wav", "x"},
        {"up/c_nohash_0.wav", "x"},
        {"_background_noise_/pink.wav", "x"}},
       {"train: up/a_nohash_0.wav=up|a", "validation: up/b_nohash_0.wav=up|b",
        "test: up/c_nohash_0.wav=up|c"}},
      {"LibriSpeech (*.trans.txt beside the files)",
       {{"train-clean/1/2/1-2.trans.txt", "1-2-0 A B\n"}, {"dev/3/4/3-4.trans.txt", "3-4-0 C\n"}},
       {"train-clean: train-clean/1/2/1-2-0.flac|A B|1", "dev: dev/3/4/3-4-0.flac|C|3"}},
      {"LibriSpeech (*.trans.txt beside the files; SPEAKERS.TXT)",
       {{"dev/3/4/3-4.trans.txt", "3-4-0 C\n"},
        {"SPEAKERS.TXT",
         "; speakers\n;ID  |SEX| SUBSET |MINUTES| NAME\n3    | F | dev | 1.5 | A|B\n"}},
       {"dev: dev/3/4/3-4-0.flac|C|3|F"}},
      {"VoxCeleb1 (wav/SPEAKER/VIDEO; vox1_meta.csv has splits and speakers)",
       {{"wav/id1/v/1.wav", "x"},
        {"vox1_meta.csv",
         "VoxCeleb1 ID\tVGGFace1 ID\tGender\tNationality\tSet\nid1\tA\tf\tUSA\tdev\n"}},
       {"dev: id1/v/1.wav=id1|id1|v|f"}},
      {"VCTK (wav48/SPEAKER; speaker-info.txt)",
       {{"wav48/p225/p225_001.wav", "x"},
        {"speaker-info.txt",
         "ID  AGE  GENDER  ACCENTS  REGION\n225  23  F    English    Southern\n"}},
       {"-: p225/p225_001.wav=p225|225|F"}},
      {"VCTK (wav48/SPEAKER; txt; speaker-info.txt)",
       {{"wav48/p225/p225_001.wav", "x"},
        {"txt/p225/p225_001.txt", "Hello\n"},
        {"speaker-info.txt", "ID  AGE  GENDER  ACCENTS\np225  23  F    English\n"}},
       {"-: wav48/p225/p225_001.wav=p225|p225|Hello|F"}},
      {"VCTK (wav48_silence_trimmed/SPEAKER; speaker-info.txt)",
       {{"wav48_silence_trimmed/p225/p225_001_mic1.flac", "x"},
        {"txt/p225/p225_001.txt", "Hello\n"},
        {"speaker-info.txt",
         "ID  AGE  GENDER  ACCENTS  REGION COMMENTS\np225  23  F    English\n"}},
       {"-: p225/p225_001_mic1.flac=p225|p225|F"},
       {"the texts in txt are not used: they are called like the recordings without _mic1 and "
        "_mic2"}},
      {"AudioSet (eval_segments.csv)",
       {{"eval_segments.csv",
         "# Segments csv\n# YTID, start_seconds, end_seconds, positive_labels\n"
         "--4gqARaEJE, 0.000, 10.000, \"/m/068hy,/m/07q6cd_\"\n"},
        {"class_labels_indices.csv",
         "index,mid,display_name\n0,/m/068hy,\"Animals, pets\"\n1,/m/07q6cd_,Squeak\n"},
        {"audio/--4gqARaEJE.wav", "x"}},
       {"-: audio/--4gqARaEJE.wav#t=0,10=Animals, pets,Squeak"},
       {"the files are taken for whole videos, and the segments for parts of them; where the "
        "files are the segments themselves, remove utterances"}},
      {"AudioSet (balanced_train_segments.csv, eval_segments.csv)",
       {{"balanced_train_segments.csv", "# YTID, a\n-0BIyqJj9ZU, 30.000, 40.000, \"/m/1\"\n"},
        {"eval_segments.csv", "# YTID, a\n--4gqARaEJE, 0.000, 10.000, \"/m/2\"\n"},
        {"Y-0BIyqJj9ZU.flac", "x"},
        {"Y--4gqARaEJE.flac", "x"}},
       {"eval: Y--4gqARaEJE.flac#t=0,10=/m/2", "balanced_train: Y-0BIyqJj9ZU.flac#t=30,40=/m/1"},
       {"the files are taken for whole videos, and the segments for parts of them; where the "
        "files are the segments themselves, remove utterances"}},
      {"a manifest of Lhotse (cuts in cuts.jsonl)",
       {{"cuts.jsonl", lhotse_cut}},
       {"-: /a.wav#t=0.5,1.5|c|t|p"}},
      {"manifests of Lhotse, each a split (cuts in cuts_dev.jsonl, cuts_train.jsonl)",
       {{"cuts_train.jsonl", lhotse_cut}, {"cuts_dev.jsonl", lhotse_cut}},
       {"train: /a.wav#t=0.5,1.5|c|t|p", "dev: /a.wav#t=0.5,1.5|c|t|p"}},
      {"a manifest of NeMo (m.json, 4 columns)",
       {{"m.json",
         "{\"audio_filepath\": \"a.wav\", \"offset\": 1, \"duration\": 1, \"text\": \"x\"}\n"},
        {"a.wav", "x"}},
       {"-: a.wav#t=1,2|x"}},
      {"manifests of NeMo, each a split (train_manifest.json, val_manifest.json)",
       {{"train_manifest.json",
         "{\"audio_filepath\": \"a.wav\", \"text\": \"x\", \"speaker\": \"s\"}\n"},
        {"val_manifest.json", "{\"audio_filepath\": \"b.wav\", \"text\": \"y\"}\n"},
        {"all.json", "{\"audio_filepath\": \"b.wav\", \"text\": \"y\"}\n"},
        {"a.wav", "x"},
        {"b.wav", "x"}},
       {"train: a.wav|x", "val: b.wav|y"},
       {"the column speaker is not used: of 2 lists 1 has it (train_manifest.json)",
        "a table is not used: all.json"}},
      {"a manifest of NeMo (m.json, 2 columns)",
       {{"m.json", "{\"audio_filepath\": \"a.wav\", \"text\": \"x\"}\n"},
        {"n.json", "{\"audio_filepath\": \"a.wav\", \"text\": \"x\"}\n"},
        {"a.wav", "x"}},
       {"-: a.wav|x"},
       {"a table is not used: n.json"}},
      {"a table with paths (turns.csv, 6 columns)",
       {{"turns.csv",
         "class,call_file,channel,start_s,end_s,transcript\nx,2024/a.wav,0,1,2,hi\n"
         "x,2024/a.wav,1,2,3,ho\n"},
        {"2024/a.wav", "x"}},
       {"-: 2024/a#channel=1.wav#t=1,2|hi", "-: 2024/a#channel=2.wav#t=2,3|ho"},
       {"the column class is not used: all its texts are the same"}},
      {"a table with paths (t.csv, 2 columns)",
       {{"t.csv", "file,channel\na.wav,L\na.wav,\n"}, {"a.wav", "x"}},
       {"-: a.wav", "-: a.wav"},
       {"the column channel is not used: its texts are not all numbers; where each line is one "
        "channel of its file, write columns_are: {channel: COLUMN} with a column of numbers from "
        "1, or channel_from_0"}},
      {"a table with paths (t.csv, 2 columns)",
       {{"t.csv", "file,channel\na.wav,1\na.wav,\na.wav,2\n"}, {"a.wav", "x"}},
       {"-: a#channel=1.wav", "-: a.wav", "-: a#channel=2.wav"}},
      {"a table with paths (meta/esc50.csv, 3 columns)",
       {{"meta/esc50.csv", "filename,fold,category\na.wav,2,dog\nb.wav,1,cat\n"},
        {"audio/b.wav", "x"}},
       {"2: a.wav=dog", "1: b.wav=cat"}},
      {"a folder of 2 sound files, in one for each split (test, train), with labels from the names "
       "of folders",
       {{"train/dog/a.wav", "x"}, {"test/cat/b.wav", "x"}},
       {"train: train/dog/a.wav=dog", "test: test/cat/b.wav=cat"}},
      {"a folder of 2 sound files, with labels from the names of folders",
       {{"dog/a.wav", "x"}, {"cat/b.wav", "x"}, {"readme.csv", "a,b\n1,2\n"}},
       {"-: cat/b.wav=cat", "-: dog/a.wav=dog"},
       {"a table is not used: readme.csv"}},
      {"a folder of 1 sound file", {{"a.wav", "x"}, {"text.txt", "x"}}, {"-: a.wav"}},
      // One label for all files is none.
      {"a folder of 2 sound files",
       {{"wav/a.wav", "x"}, {"wav/b.wav", "x"}},
       {"-: wav/a.wav", "-: wav/b.wav"}},
      {"a folder of 2 sound files, with labels from the names of folders",
       {{"wav/dog/a.wav", "x"}, {"wav/cat/b.wav", "x"}},
       {"-: wav/cat/b.wav=cat", "-: wav/dog/a.wav=dog"}},
      {"a folder of 2 sound files, in one for each split (test, train)",
       {{"train/dog/a.wav", "x"}, {"test/dog/b.wav", "x"}},
       {"train: train/dog/a.wav", "test: test/dog/b.wav"}},
      {"a folder of 1 sound file, with .txt beside them",
       {{"a.wav", "x"}, {"a.txt", "HI"}, {"a.json", "{}"}},
       {"-: a.wav|HI"},
       {"1 file called like sound files, such as a.json, is not used; to use them: columns: "
        "{NAME: \".json:KEY\"}"}},
      {"a folder of 2 sound files, with txt/{parent_dir}/{name}.txt beside them",
       {{"wav/p/a.wav", "x"}, {"wav/p/b.wav", "x"}, {"txt/p/a.txt", "A"}, {"txt/p/b.txt", "B"}},
       {"-: wav/p/a.wav|A", "-: wav/p/b.wav|B"}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const TempFolder folder;
    for (const auto& [name, text] : row.files) folder.write(name, text);
    const auto guess = guess_corpus(folder.path() + "/");
    REQUIRE(guess.has_value());
    CHECK(guess->what == row.what);
    CAPTURE(written(*guess));
    List list(written(*guess));
    CHECK(entries(list) == row.entries);
    Texts remarks = row.remarks;
    for (std::string& remark : remarks)
      for (std::size_t at; (at = remark.find('@')) != remark.npos;)
        remark.replace(at, 1, folder.path());
    CHECK(guess->remarks == remarks);
  }
  const TempFolder none;
  none.write("text.txt", "x");
  CHECK_FALSE(guess_corpus(none.path()).has_value());
}

TEST_CASE("names that would mean something else in options are not written") {
  struct Row {
    const char* what;
    std::vector<std::pair<const char*, const char*>> files;
    Texts entries, remarks = {};
  };
  const Row rows[] = {
      {"a folder of 2 sound files, with labels from the names of folders",
       {{"train\nx/a.wav", "x"}, {"test/b.wav", "x"}},
       {"-: test/b.wav=test", "-: train\nx/a.wav=train\nx"}},
      // A ( makes an expression, a : the name of a value.
      {"a folder of 1 sound file",
       {{"wav/p/a.wav", "x"}, {"(txt)/p/a.txt", "A"}},
       {"-: wav/p/a.wav"},
       {"1 file called like sound files, such as (txt)/p/a.txt, is not used"}},
      {"a folder of 1 sound file",
       {{"wav/p/a.wav", "x"}, {"x.json:y/p/a.txt", "A"}},
       {"-: wav/p/a.wav"},
       {"1 file called like sound files, such as x.json:y/p/a.txt, is not used"}},
      {"a folder of 1 sound file",
       {{"wav/p/a.wav", "x"}, {"{name}/p/a.txt", "A"}},
       {"-: wav/p/a.wav"}},
      {"a folder of 1 sound file",
       {{"t.csv", "a{b},x\nf.wav,1\n"}, {"f.wav", "x"}},
       {"-: f.wav"},
       {"a table is not used: t.csv"}},
      {"a table with paths (t.csv, 2 columns)",
       {{"t.csv", "a\": $X #,x\nf.wav,1\n"}, {"f.wav", "x"}},
       {"-: f.wav"}},
      {"data folders of Kaldi, each a split (train)",
       {{"train/wav.scp", "u /a.wav\n"}, {"two\nlines/wav.scp", "u /b.wav\n"}},
       {"train: /a.wav|u"},
       {"not used, since no split of its own can be called so: two\nlines"}},
      {"AudioSet (eval_segments.csv)",
       {{"eval_segments.csv", "# YTID, a\n--4gqARaEJE, 0.000, 10.000, \"/m/2\"\n"},
        {"two\nlines_segments.csv", "# YTID, a\n--4gqARaEJE, 0.000, 10.000, \"/m/2\"\n"},
        {"Y--4gqARaEJE.flac", "x"}},
       {"-: Y--4gqARaEJE.flac#t=0,10=/m/2"},
       {"the files are taken for whole videos, and the segments for parts of them; where the "
        "files are the segments themselves, remove utterances",
        "not used, since no split of its own can be called so: two\nlines_segments.csv",
        "a table is not used: two\nlines_segments.csv"}},
      {"a folder of 1 sound file",
       {{"$(x)/train.tsv", "client_id\tpath\tsentence\nc\ta.mp3\tYes\n"},
        {"$(x)/clips/a.mp3", "x"}},
       {"-: $(x)/clips/a.mp3"},
       {"@/$(x) has Common Voice (train.tsv, clips), which is not used; to use it: --from "
        "'@/$(x)'"}},
  };
  for (const Row& row : rows) {
    const TempFolder folder;
    for (const auto& [name, text] : row.files) folder.write(name, text);
    const auto guess = guess_corpus(folder.path());
    REQUIRE(guess.has_value());
    CHECK(guess->what == row.what);
    CAPTURE(written(*guess));
    List list(written(*guess));
    CHECK(entries(list) == row.entries);
    Texts remarks = row.remarks;
    for (std::string& remark : remarks)
      for (std::size_t at; (at = remark.find('@')) != remark.npos;)
        remark.replace(at, 1, folder.path());
    CHECK(guess->remarks == remarks);
  }
}

TEST_CASE("what a corpus is taken for does not depend on where its links lead") {
  const TempFolder folder, elsewhere;
  folder.write("a.wav", "x");
  folder.write("lj/metadata.csv", "a|b|c\n");
  folder.write("lj/wavs/a.wav", "x");
  elsewhere.write("speech/84/1/84-1.trans.txt", "84-1-0 HI\n");
  elsewhere.write("speech/84/1/84-1-0.flac", "x");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "link");
  std::filesystem::create_directory_symlink("/", folder / "root");
  const auto guess = guess_corpus(folder.path());
  REQUIRE(guess.has_value());
  REQUIRE(guess->remarks.size() == 1);  // and none about what is searched behind a link
  CHECK(guess->remarks.front().starts_with(folder / "lj has LJSpeech"));
}

TEST_CASE("an archive, or a folder of archives, is recognized by its members") {
  const TempFolder folder;
  for (const char* p : {"m/dog/a.wav", "m/cat/b.wav", "n/0.flac", "n/1.flac"}) folder.write(p, "x");
  folder.write("n/0.txt", "nought");
  folder.write("n/1.txt", "one");
  folder.write("n/0.cls", "5");
  folder.write("n/1.cls", "6");
  const std::string made = fmt::format(
      "cd '{}' && tar cf m.tar -C m dog cat && mkdir s && tar cf s/0.tar -C n 0.flac "
      "0.txt 0.cls && tar cf s/1.tar -C n 1.flac 1.txt 1.cls && mkdir 'x{{y}}*' && cp m.tar "
      "'x{{y}}*'",
      folder.path());
  REQUIRE(std::system(made.c_str()) == 0);
  struct Row {
    const char *given, *what;
    Texts entries;
  };
  const Texts shards{"-: 0.tar/0.flac=5|nought", "-: 1.tar/1.flac=6|one"};
  const Row rows[] = {
      {"m.tar",
       "an archive of 2 sound files, with labels from the names of folders",
       {"-: cat/b.wav=cat", "-: dog/a.wav=dog"}},
      {"x{y}*/m.tar",
       "an archive of 2 sound files, with labels from the names of folders",
       {"-: cat/b.wav=cat", "-: dog/a.wav=dog"}},
      {"s/0.tar",
       "an archive of 1 sound file, with .cls, .txt beside them",
       {"-: 0.flac=5|nought"}},
      {"s", "2 archives, the first of 1 sound file, with .cls, .txt beside them", shards},
      {"s/{0..1}.tar", "2 archives, the first of 1 sound file, with .cls, .txt beside them",
       shards},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.given));
    const auto guess = guess_corpus(folder / row.given);
    REQUIRE(guess.has_value());
    CHECK(guess->what == row.what);
    CAPTURE(written(*guess));
    List list(written(*guess));
    CHECK(entries(list) == row.entries);
  }
}

TEST_CASE("a list is recognized by itself, and the options that are written for it read it") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "meta/b.wav", "lists/none.wav"}) folder.write(p, "x");
  folder.write("meta/t.csv", "file,class\na.wav,dog\na.wav,cat\n");
  folder.write("meta/u.csv", "file,class\nb.wav,dog\nb.wav,cat\n");
  folder.write("lists/l.txt", "# all\n\nmeta/b.wav\na.wav\n");
  folder.write("lists/other.txt", "a text\n");
  folder.write("lists/other.csv", "a,b\n1,2\n");
  folder.write("wav.scp", "r /a.wav\n");
  folder.write("lj/metadata.csv", "a|b|c\n");
  folder.write("lj/wavs/a.wav", "x");
  struct Row {
    const char *list, *what;
    Texts entries;
  };
  const Row rows[] = {
      {"meta/t.csv",
       "a table with paths (meta/t.csv, 2 columns)",
       {"-: a.wav=dog", "-: a.wav=cat"}},
      {"meta/u.csv", "a table with paths (u.csv, 2 columns)", {"-: b.wav=dog", "-: b.wav=cat"}},
      {"lists/l.txt", "a list of paths", {"-: meta/b.wav", "-: a.wav"}},
      {"wav.scp", "a data folder of Kaldi (wav.scp)", {"-: /a.wav|r"}},
      {"lj/metadata.csv", "LJSpeech (metadata.csv with |, wavs/ID.wav)", {"-: wavs/a.wav|c"}},
      {"lists/other.txt", nullptr, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.list));
    const auto guess = guess_corpus(folder / row.list);
    REQUIRE(guess.has_value() == (row.what != nullptr));
    if (!guess) continue;
    CHECK(guess->what == row.what);
    CAPTURE(written(*guess));
    List list(written(*guess));
    CHECK(entries(list) == row.entries);
  }
  const std::string other = folder / "lists/other.csv";
  CHECK_THROWS_WITH_AS(
      guess_corpus(other),
      fmt::format(
          "{0}: no column has paths of files that are there, from the folder of the table or the "
          "one above it; its columns are a, b. Write the pipeline by hand: root: FOLDER, manifest: "
          "{0}, columns_are: {{path: COLUMN}}, where paths lack a folder or an ending columns_are: "
          "{{path: \"wavs/{{COLUMN}}.wav\"}}; if that is its first row, header: [NAME, ...] too "
          "(docs/corpora.md)",
          other)
          .c_str(),
      RunError);
}

}  // namespace melflow::test::corpora_test
