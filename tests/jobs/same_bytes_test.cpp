// Two runs that differ only in how the work is distributed make the same datasets, bit for bit.
#include <doctest/doctest.h>

#include "tests/jobs/shared.h"

namespace same_bytes_test {

using namespace melflow::test;

namespace {

// Clips of many lengths and kinds, one much longer than the smallest block, and some between them
// that leave no rows.
void make_corpus(const TempFolder& folder) {
  write_clips(
      folder, {"wav s16", "wav float", "flac s16", "ogg vorbis", "mp3", "wav s16 stereo"},
      {.seed = 7, .count = 36, .longest = 40'000, .long_ones = {11}, .long_frames = 300'000});
}

}  // namespace

TEST_CASE("same bytes: any concurrency, queue, batch, block, memory, engine and worker count") {
  struct Row {
    const char* what;
    const char* segment;
    const char* mel;
    std::vector<std::string> after = {};
  };
  const Row rows[] = {
      {"whole recordings", "", ""},
      {"whole recordings, floor below the file's maximum", "", ", top_db: 60"},
      {"whole recordings, reference is the file's maximum", "", ", ref: max, top_db: 80"},
      {"not centred", "", ", center: false"},
      {"windows with a padded tail", ", length: 4000, hop: 1500, tail: pad", ""},
      {"two stages", ", long: {length: 4096, hop: 2048}, short: {length: 1024, hop: 512}", ""},
      {"without snip_edges, dither", "", ", preset: kaldi, snip_edges: false, dither: 1"},
      {"each band's mean and variance, last frame dropped", "", ", preset: nemo"},
      {"windows with a floor and statistics of their own", ", length: 4000",
       ", preset: speechbrain, normalize: all_features"},
      {"cepstra of the floored levels, and their derivatives",
       "",
       ", top_db: 60",
       {"stage: mfcc, n_mfcc: 13", "stage: deltas, method: librosa, width: 5"}},
      {"energy, cepstra and derivatives as Kaldi has them",
       "",
       ", preset: kaldi, use_energy: true",
       {"stage: mfcc, lifter: 22, lifter_style: kaldi", "stage: deltas, method: kaldi"}},
      {"pcen", "", ", log: none", {"stage: pcen"}},
      {"pcen in windows", ", length: 4000", ", log: none", {"stage: pcen, b: 0.1"}},
      {"derivatives in windows", ", length: 4000", "", {"stage: deltas, order: 1"}},
  };
  const Knobs knobs[] = {
      {.concurrency = 1,
       .queue = 1,
       .batch = 1,
       .memory = "64MiB",
       .block = "64KiB",
       .whole = "4KiB",
       .workers = 1},
      {.concurrency = 3,
       .queue = 2,
       .batch = 5,
       .memory = "80MiB",
       .block = "100KiB",
       .whole = "64KiB",
       .workers = 3},
      {.concurrency = 7,
       .queue = 1,
       .batch = 64,
       .memory = "2GiB",
       .block = "16MiB",
       .engine = "threads",
       .workers = 2},
      {.concurrency = 2,
       .queue = 9,
       .batch = 2,
       .memory = "256MiB",
       .block = "333KiB",
       .workers = 5},
      {.concurrency = 5, .queue = 2, .batch = 3, .engine = "io_uring", .workers = 2},
  };
  const Filled<make_corpus> folder;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Knobs plain;
    const std::string reference = folder / "reference.h5";
    std::filesystem::remove(reference);
    const JobResult job =
        completed(run_job(speech_pipeline(plain, row.segment, row.mel, "", row.after),
                          in_out(folder / "clips", reference)));
    const Output expected = read_output(reference);
    CHECK(expected.rows() > 200);
    CHECK(job.report.counts.ok > 30);
    CHECK(job.report.counts.failed >= 2);
    for (const Knobs& k : knobs) {
      CAPTURE(k.text());
      const std::string path = folder / "other.h5";
      std::filesystem::remove(path);
      completed(run_job(speech_pipeline(k, row.segment, row.mel, "", row.after),
                        in_out(folder / "clips", path)));
      CHECK(expected.difference(read_output(path)) == "");
    }
  }
}

}  // namespace same_bytes_test
