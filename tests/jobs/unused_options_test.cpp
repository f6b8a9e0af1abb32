// The options of real stages that are reported as having no effect.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "config/load.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::unused_options_test {
namespace {

struct Written {
  std::string files, read, mel, write;
};

// Returns the remarks, one per line.
std::string remarks(const Written& w) {
  const TempFolder folder;
  const auto more = [](const std::string& options) {
    return options.empty() ? std::string() : ", " + options;
  };
  const std::string yaml = fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: {}{}}}
  read: {{stage: disk_read, from: files{}}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, backend: cpu{}}}
  write: {{stage: hdf5_write, from: mel, path: {}{}}}
)",
                                       folder.path(), more(w.files), more(w.read), more(w.mel),
                                       folder / "out.h5", more(w.write));
  std::string out;
  for (const Problem& p : load_plan_text(yaml, "test.yaml").warnings)
    if (p.message.find("has no effect") != std::string::npos) out += p.message + "\n";
  return out;
}

}  // namespace

TEST_CASE("unused options: what has no effect is said") {
  struct Row {
    Written written;
    std::string remark;
  };
  const auto of_mel = [](const std::string& options) { return Written{"", "", options, ""}; };
  const Row rows[] = {
      {{"uses: 2", "", "", ""}, "files.uses: has no effect without feed: auto"},
      {{"cache_path: /tmp", "", "", ""},
       "files.cache_path: has no effect without feed: cache or auto"},
      {{"preload_overflow: stream", "", "", ""},
       "files.preload_overflow: has no effect without feed: preload"},
      {{"split_seed: 3", "", "", ""}, "files.split_seed: has no effect without splits: ratio"},
      {{"splits: none, split_group: parent_dir", "", "", ""},
       "files.split_group: has no effect without splits"},
      {{"delimiter: x", "", "", ""},
       "files.delimiter: has no effect without a table with delimiters (.csv, .tsv)"},
      {{"", "engine: inline, depth: 8", "", ""},
       "read.depth: has no effect without engine: auto, threads or io_uring"},
      {of_mel("dither_seed: 3"), "mel.dither_seed: has no effect without dither"},
      {of_mel("preemphasis_of: frame"), "mel.preemphasis_of: has no effect without preemphasis"},
      {of_mel("align: left"), "mel.align: has no effect without win_length below n_fft"},
      {of_mel("window: boxcar, periodic: false"),
       "mel.periodic: has no effect without a window that is not boxcar or values"},
      {of_mel("tukey_alpha: 0.2"), "mel.tukey_alpha: has no effect without window: tukey"},
      {of_mel("hamming_alpha: 0.6"), "mel.hamming_alpha: has no effect without window: hamming"},
      {of_mel("blackman_coeff: 0.4"), "mel.blackman_coeff: has no effect without window: blackman"},
      {of_mel("log: ln, db_factor: 10"), "mel.db_factor: has no effect without log: db"},
      {of_mel("normalize: per_feature, norm_variance: false, norm_ddof: 0"),
       "mel.norm_ddof: has no effect without normalize: per_feature or all_features, and "
       "norm_variance"},
      {of_mel("energy_eps: 1e-15"), "mel.energy_eps: has no effect without use_energy"},
      {of_mel("kaiser_beta: 3"), "mel.kaiser_beta: has no effect without window: kaiser"},
      {of_mel("gauss_std: 30"), "mel.gauss_std: has no effect without window: gauss"},
      {of_mel("center: false, pad_mode: edge"),
       "mel.pad_mode: has no effect without padding (center, pad or snip_edges)"},
      {of_mel("output: spectrogram, n_mels: 40"), "mel.n_mels: has no effect without output: mel"},
      {of_mel("vtln_low: 200"), "mel.vtln_low: has no effect without vtln_warp"},
      {of_mel("raw_energy: false"), "mel.raw_energy: has no effect without use_energy"},
      {of_mel("use_energy: true, energy_floor: 1e-8"),
       "mel.energy_floor: 1e-08 has no effect: energies are floored at 1.19e-07 in any case "
       "(energy_eps), as Kaldi does it"},
      {of_mel("amin: 1e-5"), "mel.amin: has no effect without log: ln, log10 or db"},
      {of_mel("norm_eps: 1e-3"),
       "mel.norm_eps: has no effect without normalize: per_feature or all_features"},
      {of_mel("slots: 8"), "mel.slots: has no effect without backend: cuda or auto"},
      {of_mel("h2d: {queue: 4}"), "mel.h2d: has no effect without backend: cuda or auto"},
      {{"", "", "", "level: 5"}, "write.level: has no effect without compression: deflate"},
      {{"", "", "", "chunk: 64KiB"},
       "write.chunk: has no effect without layout: chunked, or compression"},
  };
  for (const Row& row : rows)
    CHECK(remarks(row.written) == row.remark + (row.remark.find("without") == std::string::npos
                                                    ? "\n"
                                                    : "; add that, or remove this\n"));
}

TEST_CASE("unused options: what has an effect, or is as without being written, is not") {
  CHECK(remarks({}) == "");
  CHECK(remarks({"splits: ratio, split_seed: 3, split_group: parent_dir, feed: auto, uses: 2",
                 "engine: threads, depth: 8", "preset: kaldi, dither: 1, dither_seed: 3",
                 "compression: deflate, level: 5, chunk: 64KiB"}) == "");
  CHECK(remarks({"", "", "use_energy: true, energy_floor: 1.2e-7", ""}) == "");
  // Options as in docs/features.md, and as in a stored configuration.
  CHECK(remarks({"", "", "preset: whisper, log: none, top_db: null", ""}) == "");
  CHECK(remarks({"uses: 1, keep: null, cache_path: \"\"", "depth: 32",
                 "dither_seed: 0, kaiser_beta: 14, gauss_std: null", "level: 1, shuffle: true"}) ==
        "");
}

}  // namespace melflow::test::unused_options_test
