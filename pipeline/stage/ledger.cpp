#include "pipeline/stage/ledger.h"

#include <algorithm>
#include <new>

#include "pipeline/base/measuring.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"

namespace melflow {

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::open:
      return "open";
    case Outcome::ok:
      return "ok";
    case Outcome::skipped:
      return "skipped";
    case Outcome::failed:
      return "failed";
    case Outcome::not_run:
      return "not run";
  }
  return "";
}

Ledger::Entry Ledger::warned(const Warnings& warnings) {
  std::size_t size = 0;
  for (const auto& [stage, text] : warnings) size += stage.size() + text.size();
  const std::size_t most = size > kLongestKept / 2 ? kLongestKept / (kMostWarnings + 1) : size;
  Entry out{Outcome::ok, "", ""};
  for (std::size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i) {
    const auto& [stage, text] = warnings[i];
    if (i == 0) out.stage = stage;
    if (i > 0) out.reason += "; ";
    if (i > 0 && stage != warnings[i - 1].first) out.reason.append(stage).append(": ");
    out.reason += warnings.size() == 1 ? text : kept_text(text, most);
  }
  if (warnings.size() > kMostWarnings) out.reason += "; and more";
  return out;
}

void Ledger::open(std::size_t found, std::vector<std::string> stages) {
  const std::lock_guard lock(mutex_);
  records_ = std::vector<Record>(found);
  for (Tally& t : plain_) {
    t.ok = 0;
    t.latencies = {};
  }
  stages_ = std::move(stages);
  reason_ids_.clear();
  reasons_ = {&reason_ids_.emplace("", 0).first->first};
  counts_ = {};
  counts_.found = found;
  closings_.clear();
  notes_closings_ = false;
  oldest_ = 0;
  wrong_ = kNone;
}

void Ledger::close(std::size_t index, Outcome outcome, int stage,
                   const std::string& reason) noexcept {
  if (index >= records_.size()) return note_wrong(index);
  Record& r = records_[index];
  const auto publish = [&] {
    Outcome open = Outcome::open;
    return r.outcome.compare_exchange_strong(open, outcome);
  };
  if (outcome == Outcome::ok && reason.empty()) {
    if (!publish()) return note_wrong(index);
    plain_[thread_number() % plain_.size()].ok.fetch_add(1, std::memory_order_relaxed);
  } else {
    const std::lock_guard lock(mutex_);
    if (r.outcome != Outcome::open) return note_wrong(index);
    r.stage = static_cast<std::int16_t>(stage);
    try {
      r.reason = reason_number(reason);
    } catch (const std::bad_alloc&) {  // still closed, without its reason
    }
    if (!publish()) return note_wrong(index);
    switch (outcome) {
      case Outcome::ok:
        ++counts_.ok;
        break;
      case Outcome::skipped:
        ++counts_.skipped;
        break;
      case Outcome::failed:
        ++counts_.failed;
        break;
      default:
        ++counts_.not_run;
        break;
    }
    if (outcome == Outcome::ok && r.reason != 0) ++counts_.warned;
  }
  if (kMeasures && notes_closings_.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    try {
      closings_.push_back(std::chrono::steady_clock::now());
    } catch (const std::bad_alloc&) {  // one time fewer in a report
    }
    if (closings_.size() > kNoted) closings_.pop_front();
  }
  for (const Listener& listener : listeners_) listener(index, outcome);
}

std::vector<Ledger::Time> Ledger::closings() const {
  const std::lock_guard lock(mutex_);
  return {closings_.begin(), closings_.end()};
}

void Ledger::note_latency(std::chrono::nanoseconds latency) {
  Tally& tally = plain_[thread_number() % plain_.size()];
  const tbb::spin_mutex::scoped_lock lock(tally.mutex);
  tally.latencies.add(latency.count());
}

DurationHistogram Ledger::latencies() const {
  DurationHistogram all;
  for (const Tally& tally : plain_) {
    const tbb::spin_mutex::scoped_lock lock(tally.mutex);
    all += tally.latencies;
  }
  return all;
}

std::uint32_t Ledger::reason_number(const std::string& reason) {
  if (reason.empty()) return 0;
  if (reasons_.size() == reasons_.capacity()) reasons_.reserve(2 * reasons_.size());
  const auto [it, is_new] =
      reason_ids_.emplace(kept_text(reason), static_cast<std::uint32_t>(reasons_.size()));
  if (is_new) reasons_.push_back(&it->first);
  return it->second;
}

int Ledger::stage_number(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = std::find(stages_.begin(), stages_.end(), name);
  return it == stages_.end() ? -1 : static_cast<int>(it - stages_.begin());
}

Ledger::Counts Ledger::counts() const {
  Counts c;
  {
    const std::lock_guard lock(mutex_);
    c = counts_;
  }
  for (const Tally& t : plain_) c.ok += t.ok.load(std::memory_order_relaxed);
  return c;
}

std::size_t Ledger::oldest_open() const {
  const std::size_t known = oldest_.load();
  std::size_t i = known;
  while (i < records_.size() && records_[i].outcome.load() != Outcome::open) ++i;
  for (std::size_t seen = known; seen < i && !oldest_.compare_exchange_weak(seen, i);) {
  }
  return i;
}

Ledger::Entry Ledger::entry(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  const Record& r = records_.at(index);
  return {r.outcome, r.stage < 0 ? "" : stages_.at(static_cast<std::size_t>(r.stage)),
          *reasons_.at(r.reason)};
}

Outcome Ledger::outcome(std::size_t index) const { return records_.at(index).outcome; }

}  // namespace melflow
