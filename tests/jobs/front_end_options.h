// Pipelines with the options of mel, and the stages of samples and rows, that front ends of today's
// models need: every option at least once. What holds for one pipeline is tested for all of them.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

namespace melflow::test {

struct FrontEndOptions {
  const char* what;
  std::vector<std::string> before = {};  ///< stages before segment, such as "fit_samples, extra: 1"
  std::string mel = "n_fft: 512, hop: 160, n_mels: 20, log: db";
  std::vector<std::string> after = {};  ///< stages behind mel
  std::string segment = "";             ///< options of segment: ", length: 4000"
};

inline const std::vector<FrontEndOptions>& front_end_options() {
  const std::string plain = FrontEndOptions{}.mel;
  static const std::vector<FrontEndOptions> all{
      {"a multiple, mirrored", {"fit_samples, extra: 1, multiple: 1280, pad_mode: reflect"}},
      {"the rest of a multiple left out", {"fit_samples, multiple: 3000, rest: drop"}},
      {"zeros at both ends", {"fit_samples, pad_left: 100ms, pad_right: 700"}},
      {"whole copies", {"fit_samples, length: 4s, pad_mode: repeat_whole"}},
      {"copies, cut", {"fit_samples, length: 60000, pad_mode: repeat"}},
      {"a recording's mean and deviation", {"normalize_samples, eps: 1e-5"}},
      {"a level with a limit", {"normalize_samples, by: rms, level: -25dB, limit: true"}},
      {"a peak, then a mirrored start",
       {"normalize_samples, by: peak, level: -3dB",
        "fit_samples, pad_left: 500, pad_mode: reflect"}},
      {"windows of one level", {"normalize_samples"}, plain, {}, ", length: 4000, tail: pad"},
      {"x[0] - k x[1]", {}, plain + ", preemphasis: 0.97, preemphasis_first: reflect"},
      {"no first sample", {}, plain + ", preemphasis: 0.97, preemphasis_first: drop"},
      {"x[0] - k x[0]", {}, plain + ", preemphasis: 0.97, preemphasis_first: replicate"},
      {"librosa's first sample", {}, plain + ", preemphasis: 0.97, preemphasis_first: librosa"},
      {"a floor of bins", {}, plain + ", power: 1, power_floor: 1e-4"},
      {"a floor and a ceiling of bins", {}, plain + ", power_floor: 1e-3, power_ceiling: 0.5"},
      {"filters of one's own",
       {},
       "n_fft: 16, hop: 8, n_mels: 2, log: db, filters: [[0.5, 1, 1, 0.25, 0, 0, 0.1, 0, 0], "
       "[0, 0, 1, 1, 1, 2, 1, 1, 0.5]]"},
      {"filters of another rate", {}, plain + ", filter_rate: 12000"},
      {"the piecewise logarithm",
       {},
       "n_fft: 512, hop: 160, n_mels: 20, log: piecewise, input_scale: 100"},
      {"a last partial frame", {}, plain + ", center: false, partial_frames: last"},
      {"all partial frames",
       {"fit_samples, multiple: 100"},
       plain + ", center: false, partial_frames: all"},
      {"as many frames as begun hops",
       {"fit_samples, multiple: 160"},
       plain + ", drop_exact: true"},
      {"FunASR's frames", {}, plain, {"stack, frames: 7, hop: 6, left: 3, tail: replicate"}},
      {"context, band by band",
       {},
       plain,
       {"stack, frames: 5, hop: 1, left: 2, head: value, tail: value, value: 1, order: "
        "band_major"}},
      {"a number of rows", {}, plain, {"fit_rows, rows: 170, value: -3"}},
      {"rows more, to a multiple", {}, plain, {"fit_rows, multiple: 16, extra: 1"}},
      {"rows of whole multiples", {}, plain, {"fit_rows, multiple: 8, rest: drop"}},
      {"a sliding mean and deviation",
       {},
       plain,
       {"sliding_cmvn, window: 50, min_window: 20, center: false, norm_variance: true"}},
      {"all of them",
       {"normalize_samples", "fit_samples, multiple: 1280, pad_right: 320, pad_mode: reflect"},
       "n_fft: 512, hop: 160, n_mels: 20, log: db, preemphasis: 0.9, preemphasis_first: reflect, "
       "power_floor: 1e-6, filter_rate: 15000, partial_frames: last",
       {"sliding_cmvn, window: 60, min_window: 10", "stack, frames: 3, left: 1, tail: replicate",
        "fit_rows, multiple: 8"}},
  };
  return all;
}

/// `more`: further options of mel, such as ", backend: cuda".
inline std::string pipeline_of(const FrontEndOptions& o, int workers,
                               const std::string& more = "") {
  std::string last = "decode", nodes;
  const auto add = [&](const std::string& name, const std::string& stage) {
    nodes += fmt::format("  {}: {{stage: {}, from: {}}}\n", name, stage, last);
    last = name;
  };
  for (const std::string& stage : o.before) add("before_" + last, stage);
  add("segment", "segment" + o.segment);
  add("batch", "batch, files: 1");
  add("mel", "mel, sample_rate: 16000, " + o.mel + more);
  for (const std::string& stage : o.after) add("after_" + last, stage);
  return fmt::format(R"(version: 1
workers: {}
memory: {{host: 256MiB}}
graph:
  files: {{stage: file_list, root: "${{DATA}}"}}
  read: {{stage: disk_read, from: files, whole: 64KiB}}
  decode: {{stage: decode, from: read, block: 64KiB}}
{}  write: {{stage: hdf5_write, from: {}, path: "${{OUT}}", overwrite: true}}
)",
                     workers, nodes, last);
}

}  // namespace melflow::test
