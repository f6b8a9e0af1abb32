// mfcc and deltas as stages: what they refuse, and which files they cannot do. Their values are
// tested with the steps (unit_finish, deltas), their blocks with whole jobs (same_bytes).
#include <doctest/doctest.h>

#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

using namespace melflow;
using namespace melflow::test;

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
  LoadOptions options;
  options.vars = {{"DATA", folder / "clips"}, {"OUT", folder / "out.h5"}};
  return options;
}

}  // namespace

TEST_CASE("mfcc, deltas: what cannot be is refused before the run, with the value and what can") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  struct Row {
    std::string mel, last, segment, message;
  };
  const Row rows[] = {
      {"log: db", "stage: mfcc, n_mfcc: 21", "tail: drop",
       "test.yaml:9:31: last.n_mfcc: n_mfcc is 21, must be from 1 to the number of bands (20)"},
      {"log: db, use_energy: true", "stage: mfcc, n_mfcc: 21", "tail: drop",
       "test.yaml:9:31: last.n_mfcc: n_mfcc is 21, must be from 1 to the number of bands (20)"},
      {"log: db, output: spectrogram", "stage: mfcc", "tail: drop",
       "test.yaml:9:3: last: needs mel bands, what arrives are bin columns"},
      {"log: db", "stage: mfcc, dct_type: 4", "tail: drop",
       "test.yaml:9:33: last.dct_type: 4 is out of range, allowed is 2 to 3"},
      {"log: db", "stage: deltas, width: 4", "tail: drop",
       "test.yaml:9:32: last.width: width is 4, must be odd: 3 or 5"},
      {"log: db", "stage: deltas, width: 3, order: 3, method: librosa", "tail: drop",
       "test.yaml:9:32: last.width: width is 3, must be more than order (3)"},
      {"log: db", "stage: deltas, width: 9, method: librosa", "length: 512",
       "test.yaml:9:3: last: needs 9 frames, a segment has 5"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    std::string error;
    try {
      run_job(pipeline(row.mel, row.last, row.segment), in_out(folder));
    } catch (const ConfigError& e) {
      error = e.what();
    }
    CHECK(error == row.message);
  }
}

TEST_CASE("deltas: a recording with too few frames for librosa's fit fails, the others are done") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  write_wav(folder.file("clips/short.wav"), 600, 8000);
  const JobResult job = run_job(
      pipeline("log: db", "stage: deltas, width: 9, method: librosa, order: 1"), in_out(folder));
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(job.remarks_by_name().at("short.wav") == "failed: last: has 5 frames, 9 are needed");
  const Output out = read_output(folder / "out.h5");
  CHECK(out.rows() == 32);
  CHECK(out.shape.at(1) == 40);
}

TEST_CASE("mfcc: bands without a logarithm are a warning") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  const JobResult job = run_job(pipeline("log: none", "stage: mfcc"), in_out(folder));
  REQUIRE(job.complete());
  REQUIRE(job.plan_warnings.size() == 1);
  CHECK(job.plan_warnings[0].find("of mel bands without a logarithm; set log in mel") !=
        std::string::npos);
}
