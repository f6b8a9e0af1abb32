// The time that each split of a corpus took, for the report: splits come one after the other
// through the same graph, without a pause between them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

  /// Notes that a thread processed these rows of files from `begin` until now. From any thread.
  void wrote(const MelBatch& rows, const Origins& files, Clock::time_point begin) {
    const Clock::time_point now = Clock::now();
    const Clock::rep each = (now - begin).count() / static_cast<Clock::rep>(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      Split& split = splits_[place_of(manifest_.split(files[i].stream->index()))];
      split.busy += each;
      if (files[i].last) ++split.files;
      if (rows.parts[i]) split.rows += rows.parts[i]->row_count;
      raise(split.last, now);
    }
    Clock::rep none = 0;
    first_.compare_exchange_strong(none, begin.time_since_epoch().count());
  }

  struct Times {
    double seconds = 0;  ///< from the previous split's end, or the first rows, to its last rows
    double write_seconds = 0;          ///< of all threads together, in the sink
    std::int64_t files = 0, rows = 0;  ///< that arrived in that time
  };
  /// Returns the times of these splits, which are the manifest's; when all is written.
  [[nodiscard]] std::vector<Times> all(const std::vector<Manifest::SplitRange>& ranges) const {
    std::vector<Times> out;
    Clock::rep before = first_;
    for (const Manifest::SplitRange& range : ranges) {
      const Split& s = splits_[place_of(range.split)];
      const auto seconds = [](Clock::rep ticks) {
        return std::chrono::duration<double>(Clock::duration(ticks)).count();
      };
      out.push_back({s.last == 0 ? 0 : seconds(std::max<Clock::rep>(s.last - before, 0)),
                     seconds(s.busy), s.files, s.rows});
      before = std::max<Clock::rep>(before, s.last);
    }
    return out;
  }

 private:
  struct Split {
    std::atomic<Clock::rep> busy{0}, last{0};  // since the clock's epoch; 0: no rows came
    std::atomic<std::int64_t> files{0}, rows{0};
  };
  static void raise(std::atomic<Clock::rep>& last, Clock::time_point to) {
    Clock::rep was = last;
    while (was < to.time_since_epoch().count() &&
           !last.compare_exchange_weak(was, to.time_since_epoch().count())) {
    }
  }
  [[nodiscard]] std::size_t place_of(int split) const {
    return split < 0 ? splits_.size() - 1 : static_cast<std::size_t>(split);
  }

  const Manifest& manifest_;
  std::vector<Split> splits_;
  std::atomic<Clock::rep> first_{0};
};

}  // namespace melflow
