// What a folder, an archive or a list is taken for, and the options that are written for it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/value.h"
#include "stages/corpus/guess/corpus_guess.h"
#include "tests/stage/list_entries.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::corpus_guess_test {
namespace {

// The options of file_list that are written for a corpus.
std::string written(const CorpusGuess& guess) {
  std::string out;
  for (const auto& [option, value] : guess.options)
    out += (out.empty() ? "{" : ", ") + option + ": " + to_json(value);
  return out + "}";
}

}  // namespace

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
       {"the texts in txt are not used: their names lack the _mic1 or _mic2 of the recordings"}},
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
       {"1 file named like sound files, such as a.json, is not used; to use them: columns: "
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
       {"1 file named like sound files, such as (txt)/p/a.txt, is not used"}},
      {"a folder of 1 sound file",
       {{"wav/p/a.wav", "x"}, {"x.json:y/p/a.txt", "A"}},
       {"-: wav/p/a.wav"},
       {"1 file named like sound files, such as x.json:y/p/a.txt, is not used"}},
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
      "'x{{y}}*' && mkdir both packed && cp m.tar n/0.flac both && cp m.tar both/o.tar && gzip -c "
      "m.tar > both/p.tar.gz "
      "&& cp both/p.tar.gz packed && cp both/p.tar.gz packed/q.tgz",
      folder.path());
  REQUIRE(std::system(made.c_str()) == 0);
  struct Row {
    const char *given, *what;
    Texts entries, remarks = {};
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
      {"packed",
       "an archive of 2 sound files, with labels from the names of folders",
       {"-: cat/b.wav=cat", "-: dog/a.wav=dog"},
       {"packed/q.tgz is not used; to use it: --from packed/q.tgz"}},
      {"both",
       "a folder of 1 sound file",
       {"-: 0.flac"},
       {"both/*.tar are not used; to use them: --from 'both/*.tar'",
        "both/p.tar.gz is not used; to use it: --from both/p.tar.gz"}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.given));
    const auto guess = guess_corpus(folder / row.given);
    REQUIRE(guess.has_value());
    CHECK(guess->what == row.what);
    CAPTURE(written(*guess));
    List list(written(*guess));
    CHECK(entries(list) == row.entries);
    Texts remarks = guess->remarks;
    for (std::string& remark : remarks)
      for (std::size_t at; (at = remark.find(folder.path() + '/')) != remark.npos;)
        remark.erase(at, folder.path().size() + 1);
    CHECK(remarks == row.remarks);
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
  for (const auto& [name, head, is] :
       {std::tuple{"x.tar.bz2", std::string("BZh91AY&SY") + std::string(20, 'x'), "bzip2"},
        {"x.tar.xz", std::string("\xFD\x37zXZ\0", 6) + std::string(20, 'x'), "xz"},
        {"x.tar.zst", std::string("\x28\xB5\x2F\xFD") + std::string(20, 'x'), "zstd"}}) {
    const std::string packed = folder.write(name, head);
    CHECK_THROWS_WITH_AS(guess_corpus(packed),
                         doctest::Contains(fmt::format("{}: this is a file packed by {}; unpack it "
                                                       "(",
                                                       packed, is)
                                               .c_str()),
                         RunError);
    CHECK_THROWS_WITH_AS(
        guess_corpus(packed),
        doctest::Contains(
            fmt::format(") and name {}", packed.substr(0, packed.rfind('.'))).c_str()),
        RunError);
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

}  // namespace melflow::test::corpus_guess_test
