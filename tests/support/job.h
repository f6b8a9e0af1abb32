// Runs a whole job from a YAML text, and reads its output.
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
#include "stages/run_task.h"

namespace melflow::test {

struct JobResult {
  /// Why it did not start (the exception of run()), or failed (the report's error); else "".
  std::string error;
  bool started = false;
  RunReport report;             ///< of a run that started
  std::vector<Remark> remarks;  ///< of a run that started
  std::vector<std::string> plan_warnings;

  [[nodiscard]] bool complete() const { return started && report.ending == Ending::complete; }
  /// Returns "not run", "failed: decode: <reason>" for each file that is skipped, failed or ok with
  /// a warning, by its name.
  [[nodiscard]] std::map<std::string, std::string> remarks_by_name() const;
  /// Returns counts, error and warnings, for failure messages.
  [[nodiscard]] std::string text() const;
  /// Returns the report's warnings without those of the plan.
  [[nodiscard]] std::vector<std::string> run_warnings() const;
  [[nodiscard]] const StageReport& stage(const std::string& node) const;
};

/// Returns values for ${DATA} and ${OUT} in a pipeline.
LoadOptions in_out(const std::string& data, const std::string& out);

/// Runs a plan. A wrong configuration throws ConfigError. `meanwhile` is called on another thread
/// during the run, to stop it for example. A run that takes longer than two minutes (ten with a
/// sanitizer) aborts the test program.
JobResult run_job(const std::string& yaml, const LoadOptions& options = {},
                  const std::function<void(Runner&)>& meanwhile = {}, Update update = Update::none,
                  const Resume& resume = {});

/// Returns the job if it is complete; otherwise ends the test.
JobResult completed(JobResult job, std::source_location at = std::source_location::current());

/// The whole contents of an output file (docs/output-format.md).
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
  std::string mel_bytes;             ///< the same values as stored
  std::vector<double> band_hz;
  std::string unit, root;
  std::vector<File> files;
  std::vector<std::string> labels, splits;
  std::vector<Remark> remarks;
  std::map<std::string, std::string> texts;      ///< attributes of the root group
  std::map<std::string, std::int64_t> integers;  ///< integer attributes of the root group

  [[nodiscard]] std::uint64_t rows() const { return shape.at(0); }
  [[nodiscard]] std::size_t values_per_row() const;
  /// Returns the file of this path; throws when there is none.
  [[nodiscard]] const File& file(const std::string& path) const;
  /// Returns the rows of a file, [count, frames, bands].
  [[nodiscard]] std::vector<float> rows_of(const std::string& path) const;
  /// Compares every dataset bit for bit; returns "" or the difference.
  [[nodiscard]] std::string difference(const Output& other) const;
};

/// Reads an output. Throws std::runtime_error if it cannot, or a dataset of the format is missing.
Output read_output(const std::string& path);

}  // namespace melflow::test
