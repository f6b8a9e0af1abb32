// melflow update: what a run does with the output of an earlier one.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "stages/files/part_file.h"
#include "stages/files/undo_file.h"
#include "stages/files/unique_fd.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/npy_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/h5_reader.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/python.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::update_test {
namespace {

constexpr int kRate = 8000;

std::string pipeline(const std::string& write = "overwrite: false", const std::string& more = "",
                     const std::string& mel = "n_mels: 20") {
  return fmt::format(R"(version: 1
{}
graph:
  files: {{stage: file_list, root: "${{DATA}}", splits: top_dir, labels: top_dir}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode, length: 256, hop: 32}}
  batch: {{stage: batch, from: segment, files: 3}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 256, center: false, {}}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}", {}}}
)",
                     more, mel, write);
}

JobResult run(const std::string& yaml, const TempFolder& folder, const std::string& out = "out.h5",
              Update update = Update::none) {
  return run_job(yaml, in_out(folder / "clips", folder / out), {}, update);
}

void clip(const TempFolder& folder, const std::string& name, unsigned seed) {
  write_wav(folder.file("clips/" + name), 3000 + 200 * (seed % 7), kRate, seed);
}

// Rows of 32 KiB and more, so that they are stored at their final offset in the file.
void make_corpus(const TempFolder& folder) {
  unsigned seed = 1;
  for (const char* split : {"train", "test"})
    for (const char* label : {"a", "b"})
      for (int i = 0; i < 4; ++i)
        clip(folder, fmt::format("{}/{}/{}.wav", split, label, 2 * i), seed++);
  folder.write("clips/train/a/broken.wav", "no sound");
  write_wav(folder.file("scratch.wav"), 3000, kRate, 9);
  copy_truncated(folder / "scratch.wav", folder / "clips/test/b/cut.wav", 5544);
}

std::int64_t kept_by(const JobResult& job) {
  for (const auto& [name, value] : job.stage("write").summary)
    if (name == "kept_files") return std::stoll(value.text());
  return 0;
}

// Returns the rows of each file, by its path.
std::map<std::string, std::vector<float>> rows_by_path(const Output& out) {
  std::map<std::string, std::vector<float>> rows;
  for (const Output::File& f : out.files) rows[f.path] = out.rows_of(f.path);
  return rows;
}

Output full_build(const TempFolder& folder, const std::string& write = "overwrite: true") {
  completed(run(pipeline(write), folder, "full.h5"));
  return read_output(folder / "full.h5");
}

}  // namespace

TEST_CASE("update: rows of new files come behind those that were there, which do not move") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  const Output before = read_output(folder / "out.h5");
  clip(folder, "train/a/1.wav", 51);
  clip(folder, "train/c/1.wav", 52);
  clip(folder, "test/a/9.wav", 53);
  folder.write("clips/test/a/worse.wav", "no sound either");

  const JobResult job = completed(run(pipeline(), folder, "out.h5", Update::append));
  const Output after = read_output(folder / "out.h5");
  CHECK(job.report.counts.found == 22);
  CHECK(job.report.counts.failed == 2);
  CHECK(kept_by(job) == 17);  // all but the bad ones
  CHECK(job.report.kept == 17);
  CHECK(job.stage("read").items_in == 5);
  CHECK(names_in(folder.path()) == Names{"clips", "out.h5", "scratch.wav"});

  const Output full = full_build(folder);
  CHECK(rows_by_path(after) == rows_by_path(full));
  CHECK(after.mel_bytes.substr(0, before.mel_bytes.size()) == before.mel_bytes);
  for (const Output::File& f : before.files) {
    CAPTURE(f.path);
    if (f.count > 0) CHECK(after.file(f.path).offset == f.offset);
  }
  CHECK(after.remarks == full.remarks);
  CHECK(after.labels == std::vector<std::string>{"a", "b", "c"});
  CHECK(python_says("jobs/read_splits.py", "one '" + (folder / "out.h5") + "'") == "");

  SUBCASE("--compact makes it what a run from the beginning makes") {
    CHECK(kept_by(completed(run(pipeline(), folder, "out.h5", Update::compact))) == 20);
    CHECK(read_output(folder / "out.h5").difference(full) == "");
    CHECK(H5File(folder / "out.h5").raw("train/mel") ==
          H5File(folder / "full.h5").raw("train/mel"));
  }
  SUBCASE("and once more, with nothing new") {
    CHECK(kept_by(completed(run(pipeline(), folder, "out.h5", Update::append))) == 20);
    CHECK(rows_by_path(read_output(folder / "out.h5")) == rows_by_path(full));
  }
}

TEST_CASE("update: a second name of the output, as in a backup of links, keeps its bytes") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  const std::string before = read_bytes(folder / "out.h5");
  std::filesystem::create_hard_link(folder / "out.h5", folder / "backup.h5");
  clip(folder, "train/a/1.wav", 51);
  CHECK(kept_by(completed(run(pipeline(), folder, "out.h5", Update::append))) == 17);
  CHECK(read_bytes(folder / "backup.h5") == before);
  CHECK(rows_by_path(read_output(folder / "out.h5")) == rows_by_path(full_build(folder)));
}

TEST_CASE("update: files that are gone or have changed leave no rows behind") {
  for (const char* write :
       {"layout: contiguous", "dtype: float16", "dtype: bfloat16",
        "dtype: bfloat16, compression: deflate", "compression: deflate", "split_files: true"}) {
    const TempFolder folder;
    CAPTURE(std::string(write));
    make_corpus(folder);
    REQUIRE(run(pipeline(write), folder).complete());
    std::filesystem::remove(folder / "clips/train/b/2.wav");
    clip(folder, "train/a/0.wav", 77);  // other samples, another length
    clip(folder, "test/a/2.wav", 78);
    clip(folder, "train/a/3.wav", 79);
    // Same length, other samples: only the time tells.
    const std::string touched = folder / "clips/test/b/0.wav";
    const auto time = std::filesystem::last_write_time(touched);
    const auto size = std::filesystem::file_size(touched);
    write_wav(touched, static_cast<std::int64_t>((size - 44) / 2), kRate, 80);
    std::filesystem::last_write_time(touched, time + std::chrono::microseconds(1));

    CHECK(kept_by(completed(run(pipeline(write), folder, "out.h5", Update::append))) == 13);
    REQUIRE(run(pipeline(std::string(write) + ", overwrite: true"), folder, "full.h5").complete());
    for (const char* split : {"", ".train", ".test"}) {
      const std::string out = folder / (std::string("out") + split + ".h5");
      if (!std::filesystem::exists(out)) continue;
      CHECK(read_output(out).difference(
                read_output(folder / (std::string("full") + split + ".h5"))) == "");
    }
  }
}

TEST_CASE("update: by contents, the time of a file says nothing") {
  const std::string source = "root: \"${DATA}\", update_by: content";
  for (const char* more : {"", ", feed: preload"}) {
    for (const bool npy : {false, true}) {
      CAPTURE(std::string(more));
      CAPTURE(npy);
      const Filled<make_corpus> folder;
      const std::string ending = npy ? "npy" : "h5";
      const std::string out = "out." + ending, full = "full." + ending;
      std::string yaml = pipeline("split_files: false");
      yaml.replace(yaml.find("root: \"${DATA}\""), 15, source + more);
      // Small files at once, large ones piece by piece.
      yaml.replace(yaml.find("disk_read"), 9, "disk_read, whole: 8KiB");
      if (npy) yaml.replace(yaml.find("hdf5_write"), 10, "npy_write");
      REQUIRE(run(yaml, folder, out).complete());

      const std::filesystem::path touched = folder / "clips/train/a/2.wav";
      std::filesystem::last_write_time(
          touched, std::filesystem::last_write_time(touched) + std::chrono::seconds(5));
      CHECK(kept_by(completed(run(yaml, folder, out, Update::append))) == 17);

      const std::filesystem::path changed = folder / "clips/test/a/4.wav";
      const auto time = std::filesystem::last_write_time(changed);
      const auto size = std::filesystem::file_size(changed);
      write_wav(changed, static_cast<std::int64_t>((size - 44) / 2), kRate, 80);
      std::filesystem::last_write_time(changed, time);
      CHECK(kept_by(completed(run(yaml, folder, out, Update::append))) == 16);
      REQUIRE(run(yaml, folder, full).complete());
      if (npy) {
        CHECK(read_bytes(folder / out) == read_bytes(folder / full));
        CHECK(read_bytes(folder / "out.index.npy") == read_bytes(folder / "full.index.npy"));
      } else {
        CHECK(read_output(folder / out).difference(read_output(folder / full)) == "");
        CHECK(H5File(folder / out).raw("files/content") ==
              H5File(folder / full).raw("files/content"));
      }
    }
  }
}

TEST_CASE("update: by contents, of an output without their hashes") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  std::string yaml = pipeline();
  yaml.replace(yaml.find("splits: top_dir"), 15, "splits: top_dir, update_by: content");
  const JobResult first = completed(run(yaml, folder, "out.h5", Update::append));
  CHECK(kept_by(first) == 0);
  REQUIRE(first.report.warnings.size() == 1);
  CHECK(first.report.warnings[0].find("all are recomputed") != std::string::npos);
  const JobResult second = run(yaml, folder, "out.h5", Update::append);
  CHECK(kept_by(second) == 17);
  CHECK(second.report.warnings.empty());
}

TEST_CASE("update: rows of .npy stay in place, too, where files are only added") {
  const Filled<make_corpus> folder;
  std::string yaml = pipeline("split_files: false");
  yaml.replace(yaml.find("hdf5_write"), 10, "npy_write");
  REQUIRE(run(yaml, folder, "out.npy").complete());
  const auto names = names_in(folder.path());
  const auto inode = [&] {
    struct stat st {};
    REQUIRE(::stat((folder / "out.npy").c_str(), &st) == 0);
    return st.st_ino;
  };
  const auto before = inode();
  const std::string old = read_bytes(folder / "out.npy");
  clip(folder, "train/a/1.wav", 51);
  clip(folder, "train/c/1.wav", 52);

  CHECK(kept_by(completed(run(yaml, folder, "out.npy", Update::append))) == 17);
  CHECK(inode() == before);
  CHECK(names_in(folder.path()) == names);
  const std::string now = read_bytes(folder / "out.npy");
  CHECK(now.size() > old.size());
  CHECK(now.compare(NpyFile::kDataOffset, old.size() - NpyFile::kDataOffset, old,
                    NpyFile::kDataOffset) == 0);
  REQUIRE(run(yaml, folder, "full.npy").complete());
  const FeatureFile out(folder / "out.npy"), full(folder / "full.npy");
  REQUIRE(out.files().size() == full.files().size());
  CHECK(out.flaw() == "");
  for (std::size_t i = 0; i < full.files().size(); ++i) {
    const FeatureFile::Entry &mine = out.files()[i], &theirs = full.files()[i];
    CAPTURE(mine.path);
    CHECK(mine.path == theirs.path);
    CHECK(mine.count == theirs.count);
    CHECK(out.read_rows(static_cast<std::uint64_t>(mine.offset),
                        static_cast<std::uint64_t>(mine.count)) ==
          full.read_rows(static_cast<std::uint64_t>(theirs.offset),
                         static_cast<std::uint64_t>(theirs.count)));
  }

  // First nothing new; then everything in the order of the files.
  REQUIRE(run(yaml, folder, "out.npy", Update::append).complete());
  CHECK(inode() == before);
  CHECK(read_bytes(folder / "out.npy") == now);
  REQUIRE(run(yaml, folder, "out.npy", Update::compact).complete());
  CHECK(inode() != before);
  CHECK(read_bytes(folder / "out.npy") == read_bytes(folder / "full.npy"));
  CHECK(read_bytes(folder / "out.index.npy") == read_bytes(folder / "full.index.npy"));
}

TEST_CASE("update: a small output, a first one, and a split that is new") {
  const TempFolder folder;
  clip(folder, "train/a/0.wav", 1);
  CHECK(kept_by(completed(run(pipeline(), folder, "out.h5", Update::append))) == 0);
  CHECK(read_output(folder / "out.h5").difference(full_build(folder)) == "");
  clip(folder, "test/a/0.wav", 2);
  for (const char* write : {"overwrite: false", "split_files: true"}) {
    REQUIRE(run(pipeline(write), folder, "out.h5", Update::append).complete());
    REQUIRE(std::filesystem::exists(folder / "out.h5"));
  }
  CHECK(read_output(folder / "out.h5").difference(full_build(folder)) == "");
  CHECK(read_output(folder / "out.test.h5").rows() > 0);
}

TEST_CASE("update: what cannot be gone on with is refused and left as it is") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  const std::string before = read_bytes(folder / "out.h5");
  CHECK(run(pipeline("overwrite: false", "", "n_mels: 21"), folder, "out.h5", Update::append)
            .error.starts_with((folder / "out.h5") +
                               ": holds other features than this pipeline makes"));
  folder.write("text.h5", "no output");
  CHECK(run(pipeline(), folder, "text.h5", Update::append).error.find("text.h5") !=
        std::string::npos);
  CHECK(read_bytes(folder / "out.h5") == before);
  CHECK(read_bytes(folder / "text.h5") == "no output");
}

TEST_CASE("update: one that fails or is stopped leaves the output as it was") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  const std::string before = read_bytes(folder / "out.h5");
  const auto names = names_in(folder.path());
  for (int i = 0; i < 40; ++i) clip(folder, fmt::format("train/z/{}.wav", i), 100);
  SUBCASE("too many bad files") {
    for (int i = 0; i < 9; ++i) folder.write(fmt::format("clips/train/zz/{}.wav", i), "no sound");
    CHECK(run(pipeline("overwrite: false", "max_failures: 3"), folder, "out.h5", Update::append)
              .report.ending == Ending::failed);
  }
  SUBCASE("no room for all rows") {
    const FileSizeLimit limit(before.size() + 250'000);
    const JobResult job = run(pipeline(), folder, "out.h5", Update::append);
    CHECK_MESSAGE(job.error.find("out.h5.part: ") != std::string::npos, job.error);
    CHECK(job.error.find("it is restored to its state before the update") != std::string::npos);
  }
  SUBCASE("no room for the new rows") {
    const FileSizeLimit limit(100'000);
    const JobResult job = run(pipeline(), folder, "out.h5", Update::append);
    CHECK_MESSAGE(job.error.find("out.h5.new.part: ") != std::string::npos, job.error);
  }
  CHECK(read_bytes(folder / "out.h5") == before);
  // The new rows computed so far are kept for the next update.
  auto now = names_in(folder.path());
  CHECK(now.erase("out.h5.journal") == now.erase("out.h5.new.part"));
  CHECK(now == names);
  for (int i = 0; i < 9; ++i)
    std::filesystem::remove(folder / fmt::format("clips/train/zz/{}.wav", i));
  completed(run(pipeline(), folder, "out.h5", Update::append));
  CHECK(rows_by_path(read_output(folder / "out.h5")) == rows_by_path(full_build(folder)));
}

TEST_CASE("update: a program that was interrupted in the middle of it loses nothing") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  const std::string before = read_bytes(folder / "out.h5");
  const Output whole = read_output(folder / "out.h5");
  // The leftovers of such a program: the saved part, and a .part with rows and no index.
  {
    const UniqueFd file(::open((folder / "out.h5").c_str(), O_RDONLY));
    UndoFile::write(folder / "out.h5", file.get(), 65536, 65536 + whole.mel_bytes.size(),
                    before.size());
  }
  const auto interrupt = [&] {
    std::filesystem::rename(folder / "out.h5", folder / "out.h5.part");
    std::string torn = before.substr(0, 65536 + whole.mel_bytes.size()) + std::string(300'000, 'x');
    torn.replace(0, 2000, std::string(2000, 'y'));
    folder.write("out.h5.part", torn);
  };
  SUBCASE("the next update begins with what was there") {
    interrupt();
    clip(folder, "train/a/1.wav", 51);
    CHECK(kept_by(completed(run(pipeline(), folder, "out.h5", Update::append))) == 17);
    CHECK(rows_by_path(read_output(folder / "out.h5")) == rows_by_path(full_build(folder)));
  }
  SUBCASE("a run that may not replace it finds it there") {
    interrupt();
    CHECK(run(pipeline(), folder).error.find("exists already") != std::string::npos);
    CHECK(read_bytes(folder / "out.h5") == before);
  }
  SUBCASE("ended before the first byte, or after the last") {
    CHECK(run(pipeline(), folder).error.find("exists already") != std::string::npos);
    CHECK(read_bytes(folder / "out.h5") == before);
  }
  SUBCASE("what was saved is damaged") {
    interrupt();
    std::string undo = read_bytes(folder / "out.h5.undo");
    undo.back() = static_cast<char>(undo.back() ^ 1);
    folder.write("out.h5.undo", undo);
    CHECK(run(pipeline(), folder)
              .error.starts_with((folder / "out.h5.undo") + ": this file is damaged"));
    return;
  }
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5.undo"));
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5.part"));
}

TEST_CASE("update: beside another run that makes the same output, and behind one that was killed") {
  const Filled<make_corpus> folder;
  REQUIRE(run(pipeline(), folder).complete());
  const std::string before = read_bytes(folder / "out.h5");
  clip(folder, "train/a/1.wav", 51);
  {
    const PartFile other(folder / "out.h5", "hdf5_write", Existing::replace);
    other.put("rows", 4, 0);
    CHECK(run(pipeline(), folder, "out.h5", Update::append).error ==
          (folder / "out.h5.part") + ": another run is writing it");
    CHECK(read_bytes(folder / "out.h5.part").starts_with("rows"));
    CHECK(read_bytes(folder / "out.h5") == before);
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5.undo"));
  }
  folder.write("out.h5.part", std::string(PartFile::kMark) + "what a killed run left");
  CHECK(kept_by(completed(run(pipeline(), folder, "out.h5", Update::append))) == 17);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5.part"));
  // An update that has saved but not begun: no other update may take its undo file away.
  {
    PartFile file(folder / "out.h5", "hdf5_write", Existing::extend);
    const UniqueFd own(::open((folder / "out.h5").c_str(), O_RDONLY));
    UndoFile::write(folder / "out.h5", own.get(), 10, 20, 30);
    CHECK(run(pipeline(), folder).error == (folder / "out.h5") + ": another run is writing it");
    CHECK(std::filesystem::exists(folder / "out.h5.undo"));
    UndoFile::remove(folder / "out.h5");
  }
  CHECK(rows_by_path(read_output(folder / "out.h5")) == rows_by_path(full_build(folder)));
}

}  // namespace melflow::test::update_test
