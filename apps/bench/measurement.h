// How fast this machine does one thing, measured several times.
//
// All measurements take turns, a slice of time each, round by round: what disturbs the machine for
// a while then spoils one figure of each and no median.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace melflow {

/// The time that a measurement takes at a time.
struct Slice {
  double seconds = 1;
  const std::atomic<bool>& is_stopped;  ///< ends it early; its figure is then not used

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
  /// Works for a slice and returns the figure in `unit`; 0 where there is none. Throws RunError.
  std::function<double(const Slice&)> run = {};
  std::string why_not = {};  ///< why it cannot be measured here; "": it can

  std::vector<double> figures = {};  ///< one a round
};

/// Adds a figure a round to all that can be measured, until `is_stopped`. `begun` is told the
/// number of each round, from 1 on.
void measure(std::vector<Measurement>& all, double seconds, int rounds,
             const std::atomic<bool>& is_stopped, const std::function<void(int)>& begun);

/// What some work does once, as an amount of it; of one thread.
using Work = std::function<double()>;
/// The amount a second that `threads` threads do in a slice, each with work of its own.
double rate_on(int threads, const Slice& slice, const std::function<Work()>& make_work);

/// "1 core", "2 cores".
std::string cores_text(int cores);

}  // namespace melflow
