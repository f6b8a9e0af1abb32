// Measures several times how fast this machine does one thing.
//
// All measurements take turns, one time slice each, round by round. A temporary disturbance of the
// machine then spoils one figure of each measurement, but no median.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace melflow {

/// The time slice of a measurement.
struct Slice {
  double seconds = 1;
  const std::atomic<bool>& is_stopped;  ///< ends the slice early; its figure is then discarded

  [[nodiscard]] bool is_over(std::chrono::steady_clock::time_point began) const {
    return is_stopped || seconds_since(began) >= seconds;
  }
  static double seconds_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
};

struct Measurement {
  std::string what;  ///< "decode FLAC, 1 core"
  std::string unit;  ///< "MB/s"
  /// Works for one slice and returns the figure in `unit`, 0 if there is none. Throws RunError.
  std::function<double(const Slice&)> run = {};
  std::string why_not = {};  ///< why it cannot be measured here; "": it can

  std::vector<double> figures = {};  ///< one per round
};

/// Adds one figure per round to every entry that can be measured, until `is_stopped`. `begun` is
/// called with the number of each round, from 1 on.
void measure(std::vector<Measurement>& all, double seconds, int rounds,
             const std::atomic<bool>& is_stopped, const std::function<void(int)>& begun);

/// Does a piece of work once, on one thread, and returns its amount.
using Work = std::function<double()>;
/// Returns the amount per second that `threads` threads do in a slice, each with its own work.
double rate_on(int threads, const Slice& slice, const std::function<Work()>& make_work);

/// "1 core", "2 cores".
std::string cores_text(int cores);

}  // namespace melflow
