// What every sink of rows guarantees about its output: hdf5_write as read by another reader,
// npy_write as compared with that by Python.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "tests/stage/sink_jobs.h"
#include "tests/support/concurrency_probe.h"
#include "tests/support/h5_reader.h"
#include "tests/support/hold.h"
#include "tests/support/printing.h"

namespace melflow::test::sink_rows_test {

TEST_CASE("sinks: a manifest's labels and splits are kept, and within a split its order") {
  const TempFolder folder;
  for (unsigned i = 0; i < 4; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 2000 + 300 * i, kRate, i);
  folder.write("list.csv",
               "path,label,split\n2.wav,b,train\n0.wav,,test\n3.wav,a,\n0.wav,b,train\n");
  completed(run_sinks(
      pipeline_of_both({.files = "labels: manifest, manifest: '" + (folder / "list.csv") + "'",
                        .write = "split_files: false"}),
      folder));
  const Output out = read_output(folder / "out.h5");
  CHECK(out.labels == std::vector<std::string>{"a", "b"});
  CHECK(out.splits == std::vector<std::string>{"train", "test"});
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> expected{
      {{1, 0}, {1, 0}, {-1, 1}, {0, -1}}};
  REQUIRE(out.files.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(out.files[i].label == expected[i].first);
    CHECK(out.files[i].split == expected[i].second);
  }
  CHECK(out.files[0].path == "2.wav");
  // A file that is named twice has its rows twice.
  const auto per_row = static_cast<std::ptrdiff_t>(out.values_per_row());
  const auto rows = [&](const Output::File& f) {
    return std::vector<float>(out.mel.begin() + f.offset * per_row,
                              out.mel.begin() + (f.offset + f.count) * per_row);
  };
  CHECK(rows(out.files[1]) == rows(out.files[2]));
  CHECK(check_h5(folder / "out.h5") == "");
  CHECK(difference_from_h5(folder) == "");
}

TEST_CASE("sinks: float16 is what numpy makes of float32, bfloat16 the nearest there is") {
  const Filled<make_corpus> folder;
  // Plain powers cover the whole range of a half; files with larger values fail, which is tested
  // elsewhere.
  for (const std::string mel : {"log: db", "log: none", "log: none, power: 6"}) {
    CAPTURE(mel);
    for (const std::string type : {"float32", "float16", "bfloat16"}) {
      for (const SinkKind& sink : kSinks)
        for (const std::string& ending : sink.endings)
          std::filesystem::remove(folder / (type + ending));
      const JobResult job =
          run_sinks(pipeline_of_both({.mel = mel, .write = "dtype: " + type}), folder, type);
      // With this power all files have values beyond a half's range.
      REQUIRE_MESSAGE(job.complete() == (mel != "log: none, power: 6" || type != "float16"),
                      job.text());
      // One warning per sink.
      CHECK(job.plan_warnings.size() == (mel != "log: db" && type == "float16" ? 2 : 0));
    }
    for (const std::string type : {"float16", "bfloat16"}) {
      if (mel == "log: none, power: 6" && type == "float16") continue;
      CHECK(check_h5(folder / (type + ".h5"), folder / "float32.h5") == "");
      CHECK(check_npy(fmt::format("'{}.npy' --float32 '{}'", folder / type,
                                  folder / "float32.npy")) == "");
    }
  }
}

TEST_CASE("sinks: values that need the whole file are the same in blocks as in one") {
  const TempFolder folder;
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(300'000));
  write_wav(folder.file("clips/b.wav"), 3000, kRate, 5);
  // Loud only at the end, so that the first blocks cannot know it.
  auto late = test_signal(200'000, 1, 3);
  for (std::size_t i = 0; i < 190'000; ++i) late[i] *= 0.001F;
  write_audio(folder.file("clips/c.flac"), audio_kind("flac s16"), kRate, late);
  for (const std::string mel :
       {"log: db, top_db: 30", "log: db, ref: max", "log: db, ref: max, top_db: 60",
        "log: log10, ref: max, center: false"}) {
    for (const std::string type : {"float32", "float16", "bfloat16"}) {
      CAPTURE(mel);
      CAPTURE(type);
      for (const auto& [out, block] : {std::pair{"one", "8MiB"}, std::pair{"blocks", "64KiB"}}) {
        completed(run_sinks(pipeline_of_both({.decode = std::string("block: ") + block,
                                              .mel = mel,
                                              .write = "overwrite: true, dtype: " + type}),
                            folder, out));
        CHECK(difference_from_h5(folder, out) == "");
      }
      const Output expected = read_output(folder / "one.h5");
      CHECK(expected.rows() > 3000);
      CHECK(read_output(folder / "blocks.h5").difference(expected) == "");
      CHECK((rows_file(folder, "one") == rows_file(folder, "blocks")));
      CHECK((read_bytes(folder / "one.index.npy") == read_bytes(folder / "blocks.index.npy")));
      if (mel.find("ref: max") == std::string::npos) continue;
      for (const Output::File& f : expected.files) {
        const auto rows = expected.rows_of(f.path);
        CHECK(*std::max_element(rows.begin(), rows.end()) == 0.0F);
      }
    }
  }
  // Clips and two outputs of four files: no temporary files are left.
  CHECK(names_in(folder.path()).size() == 9);
}

TEST_CASE("sinks: a long file that fails midway leaves no rows, spilled or not") {
  const TempFolder folder;
  auto bad = test_signal(100'000);
  bad[90'000] = std::numeric_limits<float>::quiet_NaN();
  for (const char* clips : {"clips", "good"}) {
    write_wav(folder.file(fmt::format("{}/a.wav", clips)), 5000, kRate, 1);
    write_wav(folder.file(fmt::format("{}/c.wav", clips)), 7000, kRate, 2);
  }
  for (const char* name : {"b", "d"})  // also the last one, after whose rows there are none
    write_audio(folder.file(fmt::format("clips/{}.wav", name)), audio_kind("wav float"), kRate,
                bad);
  for (const char* mel : {"log: db", "log: db, ref: max"}) {
    CAPTURE(std::string(mel));
    const JobResult job = completed(run_sinks(
        pipeline_of_both({.decode = "block: 64KiB", .mel = mel, .write = "overwrite: true"}),
        folder));
    CHECK(job.report.counts.failed == 2);
    const JobResult clean =
        completed(run_job(pipeline_of_both({.mel = mel, .write = "overwrite: true"}),
                          in_out(folder / "good", folder / "clean")));
    const Output out = read_output(folder / "out.h5");
    CHECK(out.mel_bytes == read_output(folder / "clean.h5").mel_bytes);
    for (const char* name : {"b.wav", "d.wav"}) {
      CHECK(out.file(name).count == 0);
      CHECK(out.file(name).status == 2);
    }
    CHECK(out.remarks.at(0).reason == "sample 90000 is not a finite number");
    CHECK((rows_file(folder, "out") == rows_file(folder, "clean")));
    CHECK(difference_from_h5(folder) == "");
  }
}

TEST_CASE("sinks: a file that fails in one branch leaves no rows in the other either") {
  const TempFolder folder;
  for (unsigned i = 0; i < 30; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), i % 3 == 1 ? 500 : 3000 + 100 * i,
              kRate, i);
  // The second branch needs 1024 samples for a frame: every third file is too short for it.
  const std::string yaml =
      pipeline_of_both({.mel = "center: false"}) +
      "  wide: {stage: mel, from: batch, sample_rate: 8000, n_fft: 1024, n_mels: 8, center: false}"
      "\n" +
      sink_node("other", kNpy, "wide", "${OUT}.wide") +
      sink_node("other5", kHdf5, "wide", "${OUT}.wide");
  const JobResult job = completed(run_sinks(yaml, folder));
  CHECK(job.report.counts.ok == 20);
  CHECK(job.report.counts.skipped == 10);
  CHECK(difference_from_h5(folder) == "");
  CHECK(difference_from_h5(folder, "out.wide") == "");
  for (unsigned i = 1; i < 30; i += 3)
    std::filesystem::remove(folder / fmt::format("clips/{:02}.wav", i));
  const JobResult clean =
      completed(run_sinks(pipeline_of_both({.mel = "center: false"}), folder, "clean"));
  for (const char* name : {"out.h5", "out.wide.h5"}) {
    const Output out = read_output(folder / name);
    CAPTURE(std::string(name));
    CHECK(out.files.size() == 30);
    CHECK(out.remarks.size() == 10);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < 30; ++i) {
      CHECK((out.files[i].count == 0) == (i % 3 == 1));
      CHECK((out.files[i].status == 1) == (i % 3 == 1));
      CHECK(out.files[i].offset == offset);
      offset += out.files[i].count;
    }
    CHECK(offset == static_cast<std::int64_t>(out.rows()));
    CHECK(check_h5(folder / name) == "");
  }
  CHECK(read_output(folder / "out.h5").mel_bytes == read_output(folder / "clean.h5").mel_bytes);
  CHECK((rows_file(folder, "out") == rows_file(folder, "clean")));
}

TEST_CASE("sinks: rows of files that fail when they are written already are closed up") {
  const TempFolder folder;
  // One file per batch is too short for the second branch, after the first has written all.
  std::size_t rows = 0;
  for (unsigned i = 0; i < 9; ++i) {
    const unsigned length = i % 3 == 1 ? 500 : 3000;
    rows += (length - 256) / 128 + 1;
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), length, kRate, i);
    if (i % 3 != 1) write_wav(folder.file(fmt::format("good/{}.wav", i)), length, kRate, i);
  }
  const std::string yaml = pipeline_of_both({.files = "labels: none", .mel = "center: false"}) +
                           "  late: {stage: hold_batch, from: batch, queue: 8}\n"
                           "  wide: {stage: mel, from: late, sample_rate: 8000, n_fft: 1024, "
                           "n_mels: 8, center: false}\n" +
                           sink_node("other", kNpy, "wide", "${OUT}.wide");
  Gate written;
  const Hold hold([&](std::size_t) { written.wait(); });
  const JobResult job =
      run_job(yaml, in_out(folder / "clips", folder / "out"), [&](Runner& runner) {
        // Both sinks of the first branch have taken the rows.
        while (runner.progress().rows < 2 * rows) std::this_thread::yield();
        written.open();
      });
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.report.counts.skipped == 3);
  // This depends on timing, so no output may mention it.
  CHECK(job.report.warnings.empty());
  int closed_up = 0;
  for (const StageReport& stage : job.report.stages)
    for (const auto& [name, value] : stage.summary)
      if (name == "late_files") ++closed_up;
  CHECK(closed_up == 2);
  CHECK(difference_from_h5(folder) == "");
  const JobResult clean = completed(
      run_job(pipeline(kNpy, {.mel = "center: false"}), in_out(folder / "good", folder / "clean")));
  CHECK((rows_file(folder, "out") == rows_file(folder, "clean")));
}

TEST_CASE("sinks: a run that leaves no row at all has failed and writes nothing") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 0, kRate);
  folder.folder("clips/b.wav");
  for (const char* segment : {"tail: drop", "length: 1024"}) {
    CHECK(run_sinks(pipeline_of_both({.segment = segment, .write = "overwrite: true"}), folder)
              .report.error ==
          "all files were skipped (2): 1 by decode: holds no samples; 1 by read: is a folder, not "
          "a file; change the files, or the options of decode, read; nothing is written, and an "
          "existing output stays as it was");
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
    CHECK_FALSE(std::filesystem::exists(folder / "out.npy"));
  }
}

TEST_CASE("sinks: columns that are no bands have their own label, an energy no frequency") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const auto run = [&](const SinkJob& o, const std::string& last = "") {
    std::string yaml = pipeline_of_both(o);
    yaml.insert(yaml.find("  write:"), last);
    completed(run_sinks(yaml, folder));
    CHECK(difference_from_h5(folder) == "");
  };
  const std::string again = "overwrite: true";
  run({.mel = "use_energy: true, htk_compat: true", .write = again});
  {
    const H5File h5(folder / "out.h5");
    CHECK(h5.shape("mel").at(1) == 21);
    CHECK(std::isnan(h5.doubles("band_hz").at(20)));
    CHECK(h5.doubles("band_hz").at(19) > 3000);
    CHECK(h5.integer_attribute("mel", "energy_column") == 20);
  }
  run({.mel = "output: spectrogram, power: 1", .write = again});
  {
    const H5File h5(folder / "out.h5");
    CHECK(h5.text_attribute("/", "rows") == "spectrogram");
    CHECK(h5.shape("spectrogram").at(1) == 129);
    CHECK(h5.axis_scale("spectrogram", 1) == "/band_hz");
    CHECK_FALSE(h5.has("mel"));
    CHECK(h5.doubles("band_hz").at(128) == 4000);
    CHECK(h5.text_attribute("spectrogram", "unit") == "amplitude");
  }
  run({.write = again, .from = "last"}, "  last: {stage: mfcc, n_mfcc: 7, from: mel}\n");
  const H5File h5(folder / "out.h5");
  CHECK(h5.text_attribute("/", "rows") == "mfcc");
  CHECK(h5.shape("mfcc").at(1) == 7);
  CHECK_FALSE(h5.has("band_hz"));
  CHECK_FALSE(h5.has("mel"));
  CHECK(h5.text_attribute("mfcc", "unit") == "cepstrum of dB");
  const std::string document = read_bytes(folder / "out.index.json");
  CHECK(document.find(R"("axes": ["row", "coefficient"])") != document.npos);
  CHECK(document.find("\n\"rows\": \"mfcc\"") != document.npos);
  CHECK(document.find("\n\"band_hz\"") == document.npos);
}

TEST_CASE("sinks: names that are not text are kept as bytes, wherever they stand") {
  const TempFolder folder;
  const std::string odd = "d\xE9j\xE0";  // Latin-1
  write_wav(folder.file("clips/" + odd + "/a\xFF.wav"), 3000, kRate);
  write_wav(folder.file("clips/\xED\x95\x9C\xEA\xB8\x80/\xF0\x9F\x90\x95\"\\\n.wav"), 3000, kRate);
  // Byte sequences similar to UTF-8: a surrogate, an overlong form, a truncated one.
  folder.write("clips/" + odd + "/\xED\xB3\xA9 \xC0\xAF \xE2\x82.wav", "no sound");
  std::filesystem::rename(folder / "clips", folder / ("clips" + odd));
  const JobResult job = completed(
      run_job(pipeline_of_both(), in_out(folder / ("clips" + odd), folder / ("out" + odd))));
  CHECK(job.report.counts.failed == 1);
  CHECK(read_output(folder / ("out" + odd + ".h5")).files.at(0).path == odd + "/a\xFF.wav");
  CHECK(difference_from_h5(folder, "out" + odd) == "");
}

TEST_CASE("sinks: rows, and the feature fingerprint, do not depend on the format of the file") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    completed(run_sinks(pipeline_of_both({.write = std::string("overwrite: true, dtype: ") + type}),
                        folder));
    // The script compares `feature_fingerprint`, `feature_settings` and rows with the HDF5 file's.
    CHECK(difference_from_h5(folder) == "");
  }
}

}  // namespace melflow::test::sink_rows_test
