// Training sets: splits, labels and targets in the output of whole runs, as read by Python.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "pipeline/base/problem.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/hdf5.h"
#include "tests/jobs/shared.h"
#include "tests/support/audio_files.h"
#include "tests/support/h5_reader.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/python.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::splits_test {
namespace {

constexpr int kRate = 8000;

JobResult run(const std::string& yaml, const TempFolder& folder, const std::string& out) {
  return run_job(yaml, in_out(folder / "clips", folder / out));
}

// Two languages in three splits; a bad file in each, and one that is alone in its split.
void make_corpus(const TempFolder& folder) {
  unsigned seed = 0;
  for (const char* split : {"train", "val", "test"})
    for (const char* label : {"en", "fr"})
      for (int i = 0; i < 3; ++i, ++seed)
        write_wav(folder.file(fmt::format("clips/{}/{}/{}.wav", split, label, i)),
                  2000 + 300 * seed, kRate, seed);
  for (const char* split : {"train", "val", "test"})
    folder.write(fmt::format("clips/{}/en/broken.wav", split), "no sound");
  folder.write("clips/bad/en/broken.wav", "no sound");
  write_wav(folder.file("clips/loose.wav"), 3000, kRate, 99);
}

const char* const kFolders = "splits: top_dir, labels: top_dir";

}  // namespace

TEST_CASE("splits: each is a dataset of its own in one file, with a label for every row") {
  const Filled<make_corpus> folder;
  for (const char* write :
       {"layout: contiguous", "compression: deflate", "dtype: float16", "dtype: bfloat16"}) {
    CAPTURE(std::string(write));
    const std::string name = "out.h5";
    completed(run(rows_pipeline(kFolders, std::string(write) + ", overwrite: true"), folder, name));
    const Output all = read_output(folder / name);
    CHECK(all.splits == std::vector<std::string>{"train", "val", "test", "bad"});
    const H5File h5(folder / name);
    const std::size_t row_bytes = all.mel_bytes.size() / all.rows();
    std::size_t row = 0;
    for (std::size_t s = 0; s < all.splits.size(); ++s) {
      CAPTURE(all.splits[s]);
      std::vector<std::int64_t> labels;  // of every row, by the index of files
      for (const Output::File& f : all.files)
        if (f.split == static_cast<std::int64_t>(s))
          labels.insert(labels.end(), static_cast<std::size_t>(f.count), f.label);
      CHECK(h5.integers(all.splits[s] + "/label") == labels);
      CHECK(h5.raw(all.splits[s] + "/mel") ==
            all.mel_bytes.substr(row * row_bytes, labels.size() * row_bytes));
      CHECK(h5.axis_label(all.splits[s] + "/mel", 1) == "band");
      CHECK(h5.axis_scale(all.splits[s] + "/mel", 1) == "/band_hz");
      row += labels.size();
    }
    CHECK(all.rows() - row == 11);  // of the file without a split, 3000 / 256
    CHECK(python_says("jobs/read_splits.py", "one '" + (folder / name) + "'") == "");
  }
}

TEST_CASE("splits: a file for each of them holds what one file for all does") {
  const Filled<make_corpus> folder;
  REQUIRE(run(rows_pipeline(kFolders, "overwrite: true"), folder, "all.h5").complete());
  for (const char* write : {"layout: contiguous", "compression: deflate, chunk: 4096"}) {
    CAPTURE(std::string(write));
    completed(
        run(rows_pipeline(kFolders, std::string(write) + ", split_files: true, overwrite: true"),
            folder, "each.h5"));
    CHECK(python_says("jobs/read_splits.py",
                      "each '" + (folder / "all.h5") + "' '" + (folder / "each.h5") + "'") == "");
  }
  const JobResult npy =
      completed(run(rows_pipeline(kFolders, "overwrite: true", "npy_write"), folder, "each.npy"));
  CHECK(python_says("jobs/read_splits.py",
                    "each '" + (folder / "all.h5") + "' '" + (folder / "each.npy") + "'") == "");
  const JobResult single = completed(
      run(rows_pipeline(kFolders, "split_files: false", "npy_write"), folder, "single.npy"));
  CHECK_FALSE(std::filesystem::exists(folder / "single.train.npy"));
  CHECK(std::filesystem::exists(folder / "single.npy"));
}

TEST_CASE("splits: files for each of them begin and end together") {
  const Filled<make_corpus> folder;
  folder.write("out.val.h5", "somebody's");
  const JobResult job = run(rows_pipeline(kFolders, "split_files: true"), folder, "out.h5");
  CHECK_FALSE(job.started);
  CHECK(job.error.find("out.val.h5") != std::string::npos);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"clips", "out.val.h5"});
}

TEST_CASE("targets, sets of labels and texts are in the index, as the manifest has them") {
  const TempFolder folder;
  std::string csv = "path,label,age,split,who,text\n";
  const char* const rows[] = {
      "0.wav,a|b,31.5,train,ann,\"says: \"\"gr\xC3\xBC\xC3\x9F dich\"\", twice\"",
      "1.wav,,,train,ann,", "2.wav,b,-2,val,,a\ttab", "3.wav,c|a|d,7,val,bob,\"two\nlines\""};
  for (unsigned i = 0; i < 4; ++i) {
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 3000, kRate, i);
    csv += std::string(rows[i]) + "\n";
  }
  const std::string manifest = folder.write("list.csv", csv);
  const std::string files = "manifest: '" + manifest +
                            "', labels: manifest, label_separator: '|', targets: age, "
                            "columns: {speaker: who, text: text, stem: '^([0-9])[.]'}";
  REQUIRE(run(rows_pipeline(files, ""), folder, "out.h5").complete());
  REQUIRE(
      run(rows_pipeline(files, "split_files: false", "npy_write"), folder, "out.npy").complete());
  for (const char* out : {"out.h5", "out.npy"})
    CHECK(python_says("jobs/read_splits.py",
                      fmt::format("targets '{}' '{}'", folder / out, manifest)) == "");
  CHECK_FALSE(H5File(folder / "out.h5").has("train/label"));
  // Both kinds of output are read in the same way.
  for (const char* out : {"out.h5", "out.npy"}) {
    CAPTURE(std::string(out));
    const FeatureFile read(folder / out);
    REQUIRE(read.files().size() == 4);
    CHECK(read.files()[0].targets == std::vector<float>{31.5});
    CHECK(std::isnan(read.files()[1].targets.at(0)));
    CHECK(read.files()[3].path == "3.wav");
    CHECK(read.files()[3].labels == std::vector<std::int32_t>{0, 2, 3});
    CHECK(read.files()[3].label == -1);
    CHECK(read.files()[3].split == 1);
    std::map<std::string, std::string> of_last;
    for (std::size_t c = 0; c < read.columns().size(); ++c)
      of_last[read.columns()[c]] = read.files()[3].texts.at(c);
    CHECK(of_last == std::map<std::string, std::string>{
                         {"speaker", "bob"}, {"stem", "3"}, {"text", "two\nlines"}});
  }
  {
    const Hid file(H5Fopen((folder / "out.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose,
                   "file");
    REQUIRE(H5Ldelete(file, "files/targets", H5P_DEFAULT) >= 0);
  }
  CHECK_THROWS_WITH_AS(FeatureFile{folder / "out.h5"},
                       doctest::Contains("no dataset /files/targets"), RunError);
}

TEST_CASE("splits: names that the output cannot have are refused before anything is written") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 3000, kRate, 1);
  const std::string rule =
      "' cannot be the name of a split: it becomes part of names in the output, so it has 1 to 100 "
      "bytes of UTF-8, no '/' and no control characters, does not begin with '.', and is none of "
      "band_hz, columns, features, files, index, labels, mel, mfcc, remarks, spectrogram, splits, "
      "statistics, targets, warnings, waveform, windows";
  struct Row {
    std::string name, shown;
  };
  const Row rows[] = {{"mel", "mel"},
                      {"mfcc", "mfcc"},
                      {"windows", "windows"},
                      {"files", "files"},
                      {"a/b", "a/b"},
                      {"..", ".."},
                      {".hidden", ".hidden"},
                      {"index", "index"},
                      {"x\x1b[2J", "x\\u001b[2J"},
                      {"M\xFCnchen", "M\\xfcnchen"},
                      {std::string(101, 's'), std::string(100, 's') + "… (101 bytes)"}};
  for (const auto& [name, shown] : rows) {
    const std::string manifest =
        folder.write("list.csv", fmt::format("path,split\na.wav,{}\n", name));
    const JobResult job = run(rows_pipeline("manifest: '" + manifest + "'", ""), folder, "out.h5");
    CHECK(job.error == manifest + ":2: '" + shown + rule);
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5.part"));
    if (name.find('/') != name.npos || name.starts_with('.')) continue;
    write_wav(folder.file("clips/" + name + "/a.wav"), 3000, kRate, 1);
    const JobResult by_folder = run(rows_pipeline("splits: top_dir", ""), folder, "out.h5");
    CHECK(by_folder.error.find("'" + shown + rule) != std::string::npos);
    std::filesystem::remove_all(folder / ("clips/" + name));
  }
}

}  // namespace melflow::test::splits_test
