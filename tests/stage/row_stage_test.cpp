// mfcc and deltas as stages: what they refuse, and which files they cannot process. The tests of
// the steps (utterance_steps, deltas) check their values, whole jobs (same_bytes) their blocks.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/problems.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::row_stage_test {
namespace {

std::string pipeline(const std::string& mel, const std::string& last,
                     const std::string& segment = "tail: drop") {
  return "version: 1\ngraph:\n"
         "  files: {stage: file_list, root: \"${DATA}\", labels: none}\n"
         "  read: {stage: disk_read, from: files}\n"
         "  decode: {stage: decode, from: read}\n"
         "  segment: {stage: segment, from: decode, " +
         segment +
         "}\n"
         "  batch: {stage: batch, from: segment}\n"
         "  mel: {stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 128, n_mels: 20, " +
         mel + "}\n  last: {" + last +
         ", from: mel}\n"
         "  write: {stage: hdf5_write, from: last, path: \"${OUT}\"}\n";
}

LoadOptions in_out(const TempFolder& folder) {
  return test::in_out(folder / "clips", folder / "out.h5");
}

}  // namespace

TEST_CASE("mfcc, deltas: what cannot be is refused before the run, with the value and what can") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  struct Row {
    std::string mel, last, segment, message;
  };
  const Row rows[] = {
      {"log: db, use_energy: true", "stage: mfcc, n_mfcc: 21", "tail: drop",
       "test.yaml:9:31: last.n_mfcc: is 21 but must be from 1 to the number of bands (20)"},
      {"log: db, output: spectrogram", "stage: mfcc", "tail: drop",
       "test.yaml:9:3: last: needs mel bands, what arrives are bin columns"},
      {"log: db", "stage: pcen", "tail: drop",
       "test.yaml:9:3: last: needs linear bands or bins (power or amplitude), what arrives is in "
       "dB; set log: none and normalize: none in mel"},
      {"normalize: per_feature", "stage: pcen", "tail: drop",
       "test.yaml:9:3: last: needs linear bands or bins (power or amplitude), what arrives is in "
       "power, normalized; set log: none and normalize: none in mel"},
      {"use_energy: true", "stage: pcen", "tail: drop",
       "test.yaml:9:3: last: needs rows without an energy, which is a logarithm; set use_energy: "
       "false in mel"},
      {"log: db", "stage: deltas, width: 3, order: 3, method: librosa", "tail: drop",
       "test.yaml:9:32: last.width: is 3 but must be more than order (3)"},
      {"log: db", "stage: deltas, width: 9, method: librosa", "length: 512",
       "test.yaml:9:3: last: needs 9 frames, a segment has 5"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const std::string error = problems_in(
        [&] { return run_job(pipeline(row.mel, row.last, row.segment), in_out(folder)); });
    CHECK(error == row.message);
  }
}

TEST_CASE(
    "deltas: a recording with too few frames for librosa's fit is skipped, the others are done") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  write_wav(folder.file("clips/short.wav"), 600, 8000);
  const JobResult job = completed(run_job(
      pipeline("log: db", "stage: deltas, width: 9, method: librosa, order: 1"), in_out(folder)));
  CHECK(job.remarks_by_name().at("short.wav") == "skipped: last: has 5 frames, 9 are needed");
  const Output out = read_output(folder / "out.h5");
  CHECK(out.rows() == 32);
  CHECK(out.shape.at(1) == 40);
}

TEST_CASE("mel: branches that want other sample rates are refused, and say who wants what") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  const std::string yaml =
      "version: 1\ngraph:\n"
      "  files: {stage: file_list, root: \"${DATA}\", labels: none}\n"
      "  read: {stage: disk_read, from: files}\n"
      "  decode: {stage: decode, from: read}\n"
      "  segment: {stage: segment, from: decode}\n"
      "  batch: {stage: batch, from: segment}\n"
      "  a: {stage: mel, from: batch, preset: whisper}\n"
      "  b: {stage: mel, from: batch, preset: librosa}\n"
      "  w1: {stage: hdf5_write, from: a, path: \"${OUT}\"}\n"
      "  w2: {stage: hdf5_write, from: b, path: \"${OUT}2\"}\n";
  const std::string error = problems_in([&] { return run_job(yaml, in_out(folder)); });
  CHECK(
      error.starts_with("test.yaml:7:3: batch: the branches after it want different values of "
                        "sample_rate: 22050 (from 'b' on) and 16000"));
}

TEST_CASE("mel: what a changed preset brings with it is said before the run") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  const auto text_of = [&](const std::string& mel) {
    std::string yaml = pipeline(mel, "stage: deltas");
    const std::string own = "n_fft: 256, hop: 128, n_mels: 20, ";
    yaml.replace(yaml.find(own), own.size(), "");
    try {
      const JobResult job = run_job(yaml, in_out(folder));
      std::filesystem::remove(folder / "out.h5");
      return job.plan_warnings.empty() ? std::string() : job.plan_warnings[0];
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
  };
  CHECK(text_of("preset: kaldi")
            .find("kaldi has frames of 400 samples every 160 at 16000 Hz; at 8000 "
                  "Hz they last 2 times as long. Set n_fft, win_length and hop, or "
                  "resample to 16000 Hz") != std::string::npos);
  CHECK(text_of("preset: kaldi, n_fft: 256, win_length: 200, hop: 80") == "");
  CHECK(text_of("preset: torchaudio, n_mels: 20") == "");
  CHECK(text_of("preset: whisper, n_fft: 200, hop: 80")
            .ends_with("whisper's model takes windows of 30 s, and the recordings are not cut; put "
                       "segment with length: 30s, tail: pad before this node"));
  CHECK(
      text_of("preset: whisper, log: none")
          .find("top_db: is 80 but must be absent when log is none (preset whisper sets it; write "
                "top_db: null to unset it, in Python node.options[\"top_db\"] = None)") !=
      std::string::npos);
}

TEST_CASE("hdf5_write: values that float16 cannot hold are a warning") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  std::string yaml = pipeline("log: none", "stage: deltas");
  yaml.replace(yaml.find("path: "), 6, "dtype: float16, path: ");
  const JobResult job = run_job(yaml, in_out(folder));
  REQUIRE(job.complete());
  REQUIRE(job.plan_warnings.size() == 1);
  CHECK(job.plan_warnings[0].find("write.dtype: float16 holds 6e-8 to 65504") != std::string::npos);
}

TEST_CASE("mfcc: bands without a logarithm are a warning") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  const JobResult job = run_job(pipeline("log: none", "stage: mfcc"), in_out(folder));
  REQUIRE(job.complete());
  REQUIRE(job.plan_warnings.size() == 1);
  CHECK(job.plan_warnings[0].find(
            "takes the logarithm of mel bands, but these are linear; set log: db in mel") !=
        std::string::npos);
}

}  // namespace melflow::test::row_stage_test
