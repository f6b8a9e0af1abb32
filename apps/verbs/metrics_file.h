// The figures of a run as a file that Prometheus' node exporter reads (its textfile collector),
// which is replaced as a whole again and again during the run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/report/metrics_text.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/process_usage.h"
#include "pipeline/run/runner.h"

namespace melflow {

class MetricsFile {
 public:
  /// Throws UsageError where the name does not end in .prom, and RunError as WrittenFile does, and
  /// where the file could not be replaced as a whole.
  MetricsFile(const std::string& path, const std::vector<std::string>& inputs);

  void keep_off(const std::vector<std::string>& outputs) { file_->keep_off(outputs); }
  /// Replaces the file. Does not throw, as a run does not end for it; problem() says what failed
  /// first.
  void write(const RunMetrics& metrics);
  /// Writes that no run started, unless one has ended.
  void write_not_started();
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// The figures of a run that begins.
  [[nodiscard]] RunMetrics beginning() const;

 private:
  const std::string path_, run_;
  const double began_;
  std::optional<WrittenFile> file_;  // of the next write; holds its lock
  std::string problem_;
  bool has_ended_ = false;
};

/// Writes the figures of a run as long as this object exists: at its beginning, and every so often.
class MetricsWriter {
 public:
  MetricsWriter(const Runner& runner, MetricsFile& file, double every);
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;
  ~MetricsWriter() { stop(); }

  /// Ends that, and writes how the run ended.
  void end(const RunReport& report);

 private:
  void loop();
  void write();
  void stop();

  const Runner& runner_;
  MetricsFile& file_;
  const std::chrono::duration<double> every_;
  const ProcessUsage before_;
  RunMetrics metrics_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::vector<std::thread> thread_;  // one, or none
};

}  // namespace melflow
