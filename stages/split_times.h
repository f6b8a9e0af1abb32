// The time that each split of a corpus took, for the report: splits come one after the other
// through the same graph, without a pause between them, so that the last rows of one and the first
// of the next arrive in any order. Where audio is loaded first, the time of that, too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "pipeline/stage/item.h"
#include "stages/items.h"
#include "stages/manifest.h"

namespace melflow {

class SplitTimes {
 public:
  using Clock = std::chrono::steady_clock;

  /// `manifest` must outlive this object.
  explicit SplitTimes(const Manifest& manifest)
      : manifest_(manifest), splits_(manifest.split_names().size() + 1) {}

  struct Times {
    /// For each arrival of rows of this split the time since the previous arrival of any split,
    /// summed; so the seconds of all splits add up to the time from the first arrival to the last.
    /// 0: none came.
    double seconds = 0;
    double write_seconds = 0;          ///< of all threads together, in the sink
    std::int64_t files = 0, rows = 0;  ///< that arrived
  };

  /// Counts the time from now on; else it begins with the first rows.
  void begin() { before_ = Clock::now(); }
  /// Notes that a thread processed these rows of files from `begin` until now. From any thread.
  void wrote(const MelBatch& rows, const Origins& files, Clock::time_point begin) {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (before_ == Clock::time_point()) before_ = begin;
    const auto count = static_cast<double>(files.size());
    const double since = seconds_since_last(now) / count;
    for (std::size_t i = 0; i < files.size(); ++i) {
      Times& split = split_of(files[i].stream->index());
      split.seconds += since;
      split.write_seconds += seconds(now - begin) / count;
      if (files[i].last) ++split.files;
      if (rows.parts[i]) split.rows += rows.parts[i]->row_count;
    }
  }
  /// Notes that a file is loaded. After begin(), from any thread.
  void loaded(std::size_t file) {
    const std::lock_guard lock(mutex_);
    Times& split = split_of(file);
    split.seconds += seconds_since_last(Clock::now());
    ++split.files;
  }

  /// Returns the times of these splits, which are the manifest's; when all is written.
  [[nodiscard]] std::vector<Times> all(const std::vector<Manifest::SplitRange>& ranges) const {
    std::vector<Times> out;
    for (const Manifest::SplitRange& range : ranges) out.push_back(splits_[place_of(range.split)]);
    return out;
  }

 private:
  static double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }
  // At least one tick, so that a split with files has a time, even if the clock has stood still.
  double seconds_since_last(Clock::time_point now) {
    const Clock::duration since = std::max(now - before_, Clock::duration(1));
    before_ = now;
    return seconds(since);
  }
  Times& split_of(std::size_t file) { return splits_[place_of(manifest_.split(file))]; }
  [[nodiscard]] std::size_t place_of(int split) const {
    return split < 0 ? splits_.size() - 1 : static_cast<std::size_t>(split);
  }

  const Manifest& manifest_;
  std::mutex mutex_;
  Clock::time_point before_;  // when something of any split arrived last
  std::vector<Times> splits_;
};

}  // namespace melflow
