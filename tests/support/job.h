// A whole run from a YAML text, and what is in its output.
//
//   TempFolder folder;
//   write_wav(folder.file("clips/a.wav"), 16000);
//   const JobResult job = run_job(R"(...)", {.vars = {{"DATA", folder / "clips"}, ...}});
//   REQUIRE(job.error == "");
//   const Output out = read_output(folder / "out.h5");
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/run/runner.h"
#include "stages/corpus/update.h"
#include "stages/output/resume.h"

namespace melflow::test {

struct JobResult {
  /// Why it did not start (what run() threw), or why it failed (the report's error); "" otherwise.
  std::string error;
  bool started = false;
  RunReport report;             ///< of a run that started
  std::vector<Remark> remarks;  ///< likewise
  std::vector<std::string> plan_warnings;

  [[nodiscard]] bool complete() const { return started && report.ending == Ending::complete; }
  /// "not run", "failed: decode: <reason>" for each file that is skipped, failed or ok with a
  /// warning, by its name.
  [[nodiscard]] std::map<std::string, std::string> remarks_by_name() const;
  /// Counts, error and warnings, for failure messages.
  [[nodiscard]] std::string text() const;
  /// The report's warnings but those that were the plan's.
  [[nodiscard]] std::vector<std::string> run_warnings() const;
  [[nodiscard]] const StageReport& stage(const std::string& node) const;
};

/// Values of ${DATA} and ${OUT} in a pipeline.
LoadOptions in_out(const std::string& data, const std::string& out);

/// Runs a plan. A configuration that is wrong throws ConfigError. `meanwhile` runs on a thread of
/// its own during the run, to stop it for example. A run that takes longer than two minutes (ten
/// with a sanitizer) aborts the test program.
JobResult run_job(const std::string& yaml, const LoadOptions& options = {},
                  const std::function<void(Runner&)>& meanwhile = {}, Update update = Update::none,
                  const Resume& resume = {});

/// The job, where it is complete; ends the test, where it is not.
JobResult completed(JobResult job, std::source_location at = std::source_location::current());

/// The whole of an output file (docs/output-format.md).
struct Output {
  struct File {
    std::string path;
    std::int64_t offset = 0, count = 0;
    std::int64_t label = -1, split = -1;
    std::int64_t sample_rate = 0;
    double duration = 0;
    std::int64_t status = 0;  ///< ok 0, skipped 1, failed 2, not_run 3
    friend bool operator==(const File&, const File&) = default;
  };
  struct Remark {
    std::int64_t file = 0;
    std::string path;
    std::int64_t status = 0;
    std::string stage, reason;
    friend bool operator==(const Remark&, const Remark&) = default;
  };
  std::vector<std::uint64_t> shape;  ///< of the rows
  std::string type;                  ///< float32, float16 or bfloat16
  std::vector<float> mel;            ///< all values
  std::string mel_bytes;             ///< the same as they are stored
  std::vector<double> band_hz;
  std::string unit, root;
  std::vector<File> files;
  std::vector<std::string> labels, splits;
  std::vector<Remark> remarks;
  std::map<std::string, std::string> texts;      ///< attributes of the root group
  std::map<std::string, std::int64_t> integers;  ///< likewise

  [[nodiscard]] std::uint64_t rows() const { return shape.at(0); }
  [[nodiscard]] std::size_t values_per_row() const;
  /// Throws when there is no file of this path.
  [[nodiscard]] const File& file(const std::string& path) const;
  /// Rows of that file, [count, frames, bands].
  [[nodiscard]] std::vector<float> rows_of(const std::string& path) const;
  /// Every dataset is the same, bit for bit; "" or what is not.
  [[nodiscard]] std::string difference(const Output& other) const;
};

/// Throws std::runtime_error when it cannot be read, or when a dataset of the format is missing.
Output read_output(const std::string& path);

}  // namespace melflow::test
