// Shows the progress of a run on stderr: a bar and a line for each node, redrawn on a terminal;
// elsewhere a line from time to time.
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

/// A line for each node, of at most `width` ASCII characters: the share of its slots that were busy
/// between the two points in time, and how many items wait before it; the busiest one is marked.
/// None where one of the points has no nodes.
std::vector<std::string> stage_lines(const Plan& plan, const RunSample& before,
                                     const RunSample& now, int width);

/// Measures files, rows or bytes per second over the last seconds, so that the time left follows
/// the present speed.
class RateMeter {
 public:
  void add(double seconds, std::size_t count);
  [[nodiscard]] double per_second() const;

 private:
  std::deque<std::pair<double, std::size_t>> samples_;
};

/// The progress as a line with a bar, of at most `width` characters; `rate`: files per
/// second; `byte_rate`: bytes read per second, 0: not known.
std::string bar_line(const Progress& progress, double rate, int width, double byte_rate = 0);
/// The progress as a line without a bar, for a log file. `row_rate`: rows per second.
std::string log_line(const Progress& progress, double rate, double row_rate, double byte_rate = 0);

class ProgressDisplay {
 public:
  enum class Mode { none, bar, lines };
  /// The mode that suits stderr.
  static Mode suitable_mode();

  /// `every`: a line comes so often [s].
  static constexpr double kLineEvery = 10;
  ProgressDisplay(const Runner& runner, Mode mode, double every = kLineEvery)
      : runner_(runner), mode_(mode), every_(every) {}
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void start();
  /// Prints a line that stays above the bar; gives up where the terminal does not take it soon.
  void say(const std::string& text);
  /// Removes the bar when the process is about to end; gives up where the terminal does not take
  /// it.
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
