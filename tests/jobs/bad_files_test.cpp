// A folder with every kind of bad file between good ones: the good files' rows equal those of a run
// without the bad ones, and every bad file is named with its reason.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/jobs/shared.h"
#include "tests/support/skip.h"

namespace melflow::test::bad_files_test {
namespace {

void make_good(const TempFolder& folder, const std::string& where) {
  for (unsigned i = 0; i < 12; ++i)
    write_wav(folder.file(where + "/" + std::string(1, static_cast<char>('a' + i)) + "_good.wav"),
              4000 + 997 * i, 16000, i);
}

}  // namespace

TEST_CASE("bad files: each is named with its reason and the good ones' rows do not change") {
  TempFolder folder;
  make_good(folder, "clean");
  make_good(folder, "mixed");
  const std::string mixed = folder / "mixed";
  const std::string wav = read_bytes(folder / "clean/c_good.wav");
  write_audio(folder.file("scratch/x.flac"), audio_kind("flac s16"), 16000, test_signal(150000));
  const std::string flac = read_bytes(folder / "scratch/x.flac");

  folder.write("mixed/a1_empty.wav", "");
  folder.write("mixed/a2_text.wav", "Once upon a time there was no sound at all.");
  folder.write("mixed/b1_header_only.wav", wav.substr(0, 44));
  folder.write("mixed/b2_cut_in_header.wav", wav.substr(0, 20));
  folder.write("mixed/c1_cut.wav", wav.substr(0, wav.size() * 19 / 20));
  folder.write("mixed/c2_cut.flac", flac.substr(0, flac.size() * 19 / 20));
  folder.write("mixed/c3_half.wav", wav.substr(0, wav.size() / 2));
  std::string lying = wav;
  set_wav_sizes(lying, 0x7FFFFFFF, 0x7FFFFFDB);
  folder.write("mixed/d1_lying.wav", lying);
  folder.write("mixed/d2_noise.mp3", std::string(5000, '\x5a'));
  folder.folder("mixed/e1_folder.wav");
  REQUIRE(mkfifo((mixed + "/e2_fifo.wav").c_str(), 0644) == 0);
  REQUIRE(symlink("nowhere.wav", (mixed + "/f1_dangling.wav").c_str()) == 0);
  write_wav(folder.file("mixed/g1_unreadable.wav"), 5000);
  REQUIRE(chmod((mixed + "/g1_unreadable.wav").c_str(), 0) == 0);
  write_wav(folder.file("mixed/h1_tiny.wav"), 0);
  auto nan = test_signal(8000);
  nan[4321] = std::numeric_limits<float>::quiet_NaN();
  write_audio(folder.file("mixed/i1_nan.wav"), audio_kind("wav float"), 16000, nan);
  write_wav(folder.file("closed/j_in_closed.wav"), 5000);
  std::filesystem::rename(folder / "closed", mixed + "/j_closed");
  REQUIRE(chmod((mixed + "/j_closed").c_str(), 0) == 0);

  folder.folder("out");
  REQUIRE(chmod((folder / "out").c_str(), 0777) == 0);
  CHECK(completed(run_job(speech_pipeline({}), in_out(folder / "clean", folder / "out/clean.h5")))
            .report.counts.ok == 12);

  const OtherUser nobody;  // root ignores permissions
  if (!nobody.ok()) return skip("cannot act as a user without rights");
  for (const Knobs& k : {Knobs{}, Knobs{.concurrency = 1, .queue = 1, .batch = 1, .workers = 1},
                         Knobs{.concurrency = 4, .batch = 64, .whole = "4KiB", .engine = "threads"},
                         Knobs{.concurrency = 4, .engine = "io_uring"}}) {
    CAPTURE(k.text());
    const std::string path = folder / "out/mixed.h5";
    std::filesystem::remove(path);
    std::string yaml = speech_pipeline(k);
    yaml.insert(yaml.find("labels: parent_dir"), "closed_folders: failed, ");
    yaml.insert(yaml.find("\"**/*\""), "\"*.wav\", ");  // also matches the folder e1_folder.wav
    const JobResult job = completed(run_job(yaml, in_out(mixed, path)));
    const Output out = read_output(path), expected = read_output(folder / "out/clean.h5");
    for (const Output::File& f : expected.files) {
      CAPTURE(f.path);
      CHECK(out.file(f.path).status == 0);
      CHECK(out.rows_of(f.path) == expected.rows_of(f.path));
    }
    const std::map<std::string, std::string> reasons = job.remarks_by_name();
    const std::pair<const char*, const char*> wanted[] = {
        {"a1_empty.wav", "failed: read: empty file (0 bytes)"},
        {"a2_text.wav", "failed: decode: is not an audio file (begins with 'Once upon a time"},
        {"b1_header_only.wav", "failed: decode: no sample can be read: short"},
        {"b2_cut_in_header.wav", "failed: decode: begins like WAV but cannot be decoded"},
        {"c1_cut.wav", "ok: decode: short: the header promises"},
        {"c2_cut.flac", "ok: decode: "},
        {"c3_half.wav", "failed: decode: short: the header promises"},
        {"d1_lying.wav", "ok: decode: short: the header promises"},
        {"d2_noise.mp3", "failed: decode: "},
        {"e1_folder.wav", "skipped: read: is a folder"},
        {"e2_fifo.wav", "skipped: read: is a FIFO"},
        {"f1_dangling.wav", "failed: read: is a link that leads nowhere"},
        {"g1_unreadable.wav", "failed: read: cannot be read: Permission denied"},
        {"h1_tiny.wav", "skipped: decode: holds no samples"},
        {"i1_nan.wav", "failed: decode: sample 4321 is not a finite number"},
        {"j_closed", "failed: read: cannot be listed: Permission denied; what is in it is missing"},
    };
    std::size_t named = 0;
    for (const auto& file : wanted) {
      CAPTURE(file.first);
      for (const auto& entry : reasons) {
        if (entry.first.find(file.first) == entry.first.npos) continue;
        ++named;
        CHECK_MESSAGE(entry.second.starts_with(file.second), entry.second);
      }
    }
    CHECK_MESSAGE(named == std::size(wanted), job.text());
    CHECK(reasons.size() == std::size(wanted));
    CHECK(out.remarks.size() == std::size(wanted));
    const Ledger::Counts& c = job.report.counts;
    CHECK(c.ok + c.skipped + c.failed == c.found);
    CHECK(c.found == 12 + std::size(wanted));
  }
}

TEST_CASE("bad files: one that vanishes after it was listed is named, the others are done") {
  TempFolder folder;
  make_good(folder, "clips");
  std::string list;
  for (char c = 'a'; c <= 'l'; ++c) list += std::string(1, c) + "_good.wav\n";
  folder.write("list.txt", "gone.wav\n" + list + "gone_too.wav\n");
  std::string yaml = speech_pipeline({});
  yaml.replace(yaml.find("include: [\"**/*\"]"), 17, "manifest: \"" + (folder / "list.txt") + "\"");
  const JobResult job = completed(run_job(yaml, in_out(folder / "clips", folder / "out.h5")));
  CHECK(job.report.counts.ok == 12);
  const auto reasons = job.remarks_by_name();
  CHECK(reasons.at("gone.wav") == "failed: read: does not exist (any more)");
  CHECK(reasons.at("gone_too.wav") == "failed: read: does not exist (any more)");
  const Output out = read_output(folder / "out.h5");
  CHECK(out.files.front().path == "gone.wav");
  CHECK(out.files.back().path == "gone_too.wav");
}

TEST_CASE("bad files: max_failures ends the run and keeps what is done in a readable .part") {
  TempFolder folder;
  make_good(folder, "clips");
  for (int i = 0; i < 20; ++i) folder.write("clips/e" + std::to_string(i) + ".wav", "no sound");
  for (const char* limit : {"max_failures: 3\n", "max_failures: 10%\n", "max_failures: 0\n"}) {
    CAPTURE(limit);
    const JobResult job =
        run_job(speech_pipeline({}, "", "", limit), in_out(folder / "clips", folder / "out.h5"));
    CHECK(job.started);
    CHECK(job.report.ending == Ending::failed);
    CHECK_MESSAGE(job.error.find("max_failures") != job.error.npos, job.error);
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
    CHECK(read_output(folder / "out.h5.part").integers.at("complete") == 0);
    const Ledger::Counts& c = job.report.counts;
    CHECK(c.ok + c.skipped + c.failed + c.not_run == c.found);
    CHECK(c.found == 32);
  }
  const JobResult job = run_job(speech_pipeline({}, "", "", "max_failures: 20\n"),
                                in_out(folder / "clips", folder / "out.h5"));
  CHECK_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.failed == 20);
}

}  // namespace melflow::test::bad_files_test
