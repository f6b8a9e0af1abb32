// How far a run is, on stderr: a bar that is redrawn on a terminal, now and then a line elsewhere.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/runner.h"

namespace melflow {

/// Files per second over the last seconds, so that the time left follows the present speed.
class RateMeter {
 public:
  void add(double seconds, std::size_t closed);
  [[nodiscard]] double per_second() const;

 private:
  std::deque<std::pair<double, std::size_t>> samples_;
};

/// One line of at most `width` characters.
std::string bar_line(const Progress& progress, double files_per_second, int width);
/// The same news without a bar, for a log file.
std::string log_line(const Progress& progress, double files_per_second);

class ProgressDisplay {
 public:
  enum class Mode { none, bar, lines };
  /// What stderr is good for.
  static Mode suitable_mode();

  ProgressDisplay(const Runner& runner, Mode mode) : runner_(runner), mode_(mode) {}
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void start();
  /// A line that stays, above the bar; nothing where the terminal does not take it soon.
  void say(const std::string& text);
  /// Takes the bar off, likewise, when the process is about to end.
  void leave();
  /// Takes the bar off the terminal and draws no more.
  void clear();

 private:
  void loop();
  void erase();

  const Runner& runner_;
  const Mode mode_;
  std::timed_mutex mutex_;
  std::condition_variable_any wake_;
  bool ended_ = false;
  bool is_drawn_ = false;
  bool was_filling_ = false;
  RateMeter rate_;
  std::size_t most_rows_ = 0, most_bytes_ = 0;
  std::vector<std::thread> thread_;  // one, or none
};

}  // namespace melflow
