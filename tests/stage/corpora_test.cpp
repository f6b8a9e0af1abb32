// Lists of well-known corpora, as they are published: their names of columns, delimiters and
// quirks. The rows are made up.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/stage/list_entries.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::corpora_test {

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
        fmt::format("manifest.train: {}: include matches no files besides those in the lists "
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

}  // namespace melflow::test::corpora_test
