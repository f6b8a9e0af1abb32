// The existing files that a run finds at its output's path, and the files that it leaves there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "stages/files/part_file.h"
#include "stages/files/publication.h"
#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/commit_file.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::outputs_test {
namespace {

constexpr int kRate = 8000;

std::string pipeline(const std::string& write, const std::string& files = "") {
  return fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}"{}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment, files: 3}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 128, n_mels: 8}}
  write: {{{}, from: mel, path: "${{OUT}}"}}
)",
                     files, write);
}

JobResult run(const TempFolder& folder, const std::string& out, const std::string& write,
              const std::string& files = "", Update update = Update::none) {
  return run_job(pipeline(write, files), in_out(folder / "clips", folder / out), {}, update);
}

void make_corpus(const TempFolder& folder) {
  for (unsigned i = 0; i < 6; ++i)
    write_wav(folder.file(fmt::format("clips/{}/{}.wav", i % 2 == 0 ? "train" : "test", i)),
              4000 + 100 * i, kRate, i);
}

Names names_in(const TempFolder& folder) {
  Names out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    out.insert(entry.path().filename());
  out.erase("clips");
  return out;
}

const std::vector<std::string> kSet{"out.index.npy", "out.index.json", "out.npy"};

}  // namespace

TEST_CASE(
    "outputs: a run that was interrupted between its renames is completed, then the next is "
    "refused") {
  const Filled<make_corpus> folder;
  REQUIRE(run(folder, "out.npy", "stage: npy_write").complete());
  const std::string rows = read_bytes(folder / "out.npy");
  for (std::size_t named = 0; named < kSet.size(); ++named) {
    for (const bool replaces : {false, true}) {
      CAPTURE(named);
      CAPTURE(replaces);
      // What an interrupted run leaves: some files have their names, others are .part.
      write_commit(folder / "out.npy.commit", replaces ? '1' : '0', kSet);
      for (std::size_t i = named; i < kSet.size(); ++i)
        std::filesystem::rename(folder / kSet[i], folder / (kSet[i] + ".part"));
      if (replaces) folder.write("out.npy.replaced", "the earlier rows");
      const JobResult job = run(folder, "out.npy", "stage: npy_write");
      CHECK_FALSE(job.started);
      CHECK(job.error.starts_with(folder / "out.npy: exists already"));
      CHECK(read_bytes(folder / "out.npy") == rows);
      CHECK(names_in(folder) == Names(kSet.begin(), kSet.end()));
      CHECK(FeatureFile(folder / "out.npy").complete());
    }
  }
  // A run that may replace the output reports it, too.
  write_commit(folder / "out.npy.commit", '0', kSet);
  std::filesystem::rename(folder / "out.npy", folder / "out.npy.part");
  const JobResult job = completed(run(folder, "out.npy", "stage: npy_write, overwrite: true"));
  REQUIRE(job.report.warnings.size() == 1);
  CHECK(job.report.warnings[0].find("an interrupted run was complete but unpublished") !=
        std::string::npos);
  CHECK(names_in(folder) == Names(kSet.begin(), kSet.end()));
}

TEST_CASE("outputs: a refused run touches nothing, whichever file of the output is there") {
  const Filled<make_corpus> folder;
  for (const std::string& there : kSet) {
    const TempFolder other;
    std::filesystem::copy(folder / "clips", other / "clips",
                          std::filesystem::copy_options::recursive);
    other.write(there, "precious");
    std::string left = std::string(PartFile::kMark) + "of a run that was stopped";
    for (const std::string& name : kSet) other.write(name + ".part", left);
    const JobResult job = run(other, "out.npy", "stage: npy_write");
    CHECK_FALSE(job.started);
    CHECK(job.error.starts_with(other / there + ": exists already"));
    CHECK(read_bytes(other / there) == "precious");
    for (const std::string& name : kSet) CHECK(read_bytes(other / (name + ".part")) == left);
  }
}

TEST_CASE("outputs: what the run reads is not replaced") {
  const Filled<make_corpus> folder;
  const std::string wav = read_bytes(folder / "clips/train/2.wav");
  const std::string overwrite = "stage: hdf5_write, overwrite: true";
  const auto refused = [&](const std::string& out, const std::string& what,
                           const std::string& files = "") {
    const JobResult job = run(folder, out, overwrite, files);
    CAPTURE(job.text());
    CHECK_FALSE(job.started);
    CHECK(job.error == folder / out + ": this is " + what +
                           " and would be replaced by the output; write elsewhere");
  };
  refused("clips/train/2.wav", "a file of the corpus");
  refused("clips/train/../train/2.wav", "a file of the corpus");
  std::filesystem::create_symlink("clips/train/2.wav", folder / "link.h5");
  refused("link.h5", "a file of the corpus");
  CHECK(read_bytes(folder / "clips/train/2.wav") == wav);
  const std::string list = folder.write("list.csv", "path\ntrain/0.wav\ntest/1.wav\n");
  refused("list.csv", "what this run reads", ", manifest: " + list);
  const std::string labels = folder.write("labels.csv", "path,label\ntrain/0.wav,a\n");
  refused("labels.csv", "what this run reads", ", labels: file, label_file: " + labels);
  CHECK(read_bytes(list).starts_with("path\n"));
  // A file of the same name elsewhere is another file.
  folder.write("2.wav", "old");
  CHECK(run(folder, "2.wav", overwrite).complete());
}

TEST_CASE("outputs: files of all splits get their names together") {
  const Filled<make_corpus> folder;
  const std::string write = "stage: hdf5_write, split_files: true, overwrite: true";
  REQUIRE(run(folder, "out.h5", write, ", splits: top_dir").complete());
  CHECK(names_in(folder) == Names{"out.train.h5", "out.test.h5"});
  const std::string train = read_bytes(folder / "out.train.h5");
  // A foreign file in the way of one of them is found before anything is touched.
  folder.write("out.test.h5.part", "precious");
  const JobResult job = run(folder, "out.h5", write, ", splits: top_dir");
  CHECK_FALSE(job.started);
  CHECK(
      job.error.starts_with(folder / "out.test.h5.part: this exists already and is not melflow's"));
  CHECK(read_bytes(folder / "out.test.h5.part") == "precious");
  CHECK(read_bytes(folder / "out.train.h5") == train);
  CHECK(names_in(folder) == Names{"out.train.h5", "out.test.h5", "out.test.h5.part"});
}

TEST_CASE("outputs: a run without rows does not replace an output that has some") {
  struct Row {
    const char *out, *write;
    std::set<std::string> names;
  };
  const Row rows[] = {
      {"out.h5", "stage: hdf5_write", {"out.h5"}},
      {"out.h5", "stage: hdf5_write, compression: deflate", {"out.h5"}},
      {"out.npy", "stage: npy_write, split_files: false", Names(kSet.begin(), kSet.end())},
      {"out.h5", "stage: hdf5_write, split_files: true", {"out.train.h5", "out.test.h5"}}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.write));
    const Filled<make_corpus> folder;
    const std::string overwrite = std::string(row.write) + ", overwrite: true";
    const auto made = [&](Update update) {
      return run(folder, row.out, overwrite, ", splits: top_dir", update);
    };
    REQUIRE(made(Update::none).complete());
    std::map<std::string, std::string> before;
    for (const std::string& name : row.names) before[name] = read_bytes(folder / name);
    const auto spoil = [&](const std::function<void(const std::string&)>& each) {
      for (unsigned i = 0; i < 6; ++i)
        each(folder.file(fmt::format("clips/{}/{}.wav", i % 2 == 0 ? "train" : "test", i)));
    };
    const auto stays = [&](const Ledger::Counts& counts, const std::string& error) {
      for (const Update update : {Update::none, Update::append, Update::compact}) {
        const JobResult job = made(update);
        CHECK(job.report.ending == Ending::failed);
        CHECK(job.report.counts.failed == counts.failed);
        CHECK(job.report.counts.skipped == counts.skipped);
        CHECK(job.error == error);
        CHECK(names_in(folder) == row.names);
        for (const auto& [name, bytes] : before) CHECK(read_bytes(folder / name) == bytes);
      }
    };
    spoil([](const std::string& file) { std::ofstream(file) << "no sound"; });
    const std::string all_failed =
        "all files failed (6) by decode: is not an audio file (begins with 'no sound'); correct "
        "the pipeline or the files, and run it again; nothing is written, and an existing output "
        "stays as it was";
    stays({.failed = 6}, all_failed);
    spoil([](const std::string& file) { write_wav(file, 0); });
    stays({.skipped = 6},
          "all files were skipped (6) by decode: holds no samples; change the files, or the "
          "options of decode; nothing is written, and an existing output stays as it was");
    std::ofstream(folder.file("clips/train/0.wav")) << "no sound";
    stays({.skipped = 5, .failed = 1},
          "no file is ok: 1 failed (by decode: is not an audio file (begins with 'no sound')), 5 "
          "skipped (by decode: holds no samples); change the files, or the options of decode; "
          "nothing is written, and an existing output stays as it was");
    // Where no output exists, an error in every file makes none, either.
    for (const std::string& name : row.names) std::filesystem::remove(folder / name);
    for (const Update update : {Update::none, Update::append}) {
      CHECK(made(update).report.ending == Ending::failed);
      CHECK(names_in(folder).empty());
    }
    // A foreign file stays, since its purpose is unknown.
    const std::string foreign = folder.write(*row.names.rbegin(), "precious");
    CHECK(made(Update::none).report.ending == Ending::failed);
    CHECK(read_bytes(foreign) == "precious");
  }
}

TEST_CASE("outputs: chunks that an interrupted run left are known as such") {
  const Filled<make_corpus> folder;
  REQUIRE(
      run(folder, "out.h5", "stage: hdf5_write, layout: chunked, compression: deflate").complete());
  // An unfinished file has HDF5's first bytes and no index yet; here, one that is complete.
  std::filesystem::rename(folder / "out.h5", folder / "out.h5.part");
  completed(run(folder, "out.h5", "stage: hdf5_write, layout: chunked"));
  CHECK(names_in(folder) == Names{"out.h5"});
}

TEST_CASE("outputs: who asks for one that is not there is told what is") {
  const Filled<make_corpus> folder;
  const auto told = [&] {
    try {
      const FeatureFile file(folder / "out.npy");
    } catch (const RunError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  folder.write("out.npy.part", "rows");
  CHECK(told().ends_with(
      "out.npy.part is there: a run is still writing it, or was interrupted before it "
      "was complete"));
  write_commit(folder / "out.npy.commit", '0', kSet);
  CHECK(told().find("out.npy.part is complete, but an interrupted run left it unpublished") !=
        std::string::npos);
  std::filesystem::remove(folder / "out.npy.commit");
  folder.write("out.npy.undo", "what it was");
  CHECK(told().find("out.npy.part and " + (folder / "out.npy.undo") + ", from which the next") !=
        std::string::npos);
}

}  // namespace melflow::test::outputs_test
