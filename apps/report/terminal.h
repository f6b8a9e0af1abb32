// Shows a run's progress on stderr: on a terminal a bar and a line for each node, which are
// redrawn; elsewhere a line from time to time, or what a Console makes of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/run/runner.h"

namespace melflow {

/// Returns a line for each node, at most `width` ASCII characters long: the share of its slots that
/// were busy between the two samples, and the number of items waiting before it; the busiest is
/// marked. Returns nothing where a sample has no nodes.
std::vector<std::string> stage_lines(const Plan& plan, const RunSample& before,
                                     const RunSample& now, int width);

/// Measures files, rows or bytes per second over the last seconds, so that estimates follow the
/// current speed.
class RateMeter {
 public:
  void add(double seconds, std::size_t count);
  [[nodiscard]] double per_second() const;

 private:
  std::deque<std::pair<double, std::size_t>> samples_;
};

/// Returns the progress as a line with a bar, at most `width` characters long. `rate`: files per
/// second; `byte_rate`: bytes read per second, 0: not known.
std::string bar_line(const Progress& progress, double rate, int width, double byte_rate = 0);
/// Returns the progress as a line for a log file, without a bar. `row_rate`: rows per second.
std::string log_line(const Progress& progress, double rate, double row_rate, double byte_rate = 0);

class ProgressDisplay {
 public:
  enum class Mode { none, bar, lines };
  /// Returns the mode that suits stderr.
  static Mode suitable_mode();

  /// `every`: time between lines [s].
  static constexpr double kLineEvery = 10;
  ProgressDisplay(const Runner& runner, Mode mode, double every = kLineEvery)
      : runner_(runner), mode_(mode), every_(every) {}
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void start();
  /// Prints a line that stays above the bar; gives up if the terminal does not accept it soon.
  void say(const std::string& text);
  /// Removes the bar when the process is about to end; gives up if the terminal does not accept
  /// output.
  void leave();
  /// Removes the bar from the terminal and draws no more.
  void clear();

 private:
  void loop();
  void draw(const Progress& progress);
  void erase();

  const Runner& runner_;
  const Mode mode_;
  const std::chrono::duration<double> every_;
  std::timed_mutex mutex_;
  std::condition_variable_any wake_;
  bool ended_ = false;
  bool is_drawn_ = false;
  bool was_filling_ = false;
  RateMeter rate_, row_rate_, byte_rate_;
  std::deque<RunSample> samples_;  // of the last second
  std::size_t most_rows_ = 0, most_bytes_ = 0;
  std::vector<std::thread> thread_;  // one, or none
};

}  // namespace melflow
