#include "stages/output/plan_accounts.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "pipeline/base/threads.h"
#include "pipeline/stage/kept_items.h"
#include "stages/manifest.h"

namespace melflow {
namespace {

using From = PlannedRange::From;

Outcome outcome_of(FeatureFile::Status status) {
  static constexpr Outcome kOutcomes[] = {Outcome::ok, Outcome::skipped, Outcome::failed,
                                          Outcome::not_run};
  return kOutcomes[static_cast<std::size_t>(status)];
}

// Whether no sink of the run needs the file again.
bool is_complete(const RunContext& run, std::size_t file) {
  if (run.settings.sinks == 1) return true;
  const auto kept = run.services.find<KeptItems>();
  return kept != nullptr && kept->is_complete(static_cast<std::size_t>(run.settings.sinks), file);
}

AboutFile about(const FeatureFile::Entry& e) {
  return {{e.sample_rate, std::llround(e.duration * e.sample_rate)}, e.results};
}

// Accounts for the file as the run that made its rows did.
void account_for(std::size_t file, const RowGiver& giver, std::size_t entry, const Accounts& to) {
  Ledger& ledger = to.run.ledger;
  const FeatureFile::Entry& e = giver.entry(entry);
  ManifestSource* const source = manifest_source(to.run);
  if (source != nullptr && source->stamp(file).size < 0) {  // the planner has not looked at it
    source->set_stamp(file, e.stamp);
    if (source->contents() != nullptr) source->contents()->of[file] = e.content;
  }
  const FeatureFile::Remark* remark = giver.remark(entry);
  const int stage = remark != nullptr ? ledger.stage_number(remark->stage) : -1;
  const std::string reason = remark != nullptr ? remark->reason : "";
  // Each output has warnings of its own.
  if (to.run.settings.sinks > 1) to.ledger.kept(file, stage, reason);
  if (is_complete(to.run, file) && ledger.outcome(file) == Outcome::open)
    ledger.close(file, outcome_of(e.status), stage, reason);
}

void note_statistics(const PlannedRange& range, SinkStatistics& statistics) {
  if (const ColumnSums* sums = range.giver->sums()) {
    if (range.entry == 0) statistics.add(*sums);  // of all ranges of the giver
    return;
  }
  for (std::size_t i = range.first; i < range.end; ++i) statistics.mistake(i);
}

// Copies of rows that follow each other in a giver and in the output.
struct Copy {
  std::size_t section = 0;
  std::int64_t to = 0, end = 0;  // rows of the giver end at `end`
  std::vector<std::size_t> entries;
};

class FirstCopies {
 public:
  FirstCopies(RowPlan& plan, const Accounts& to,
              const std::vector<std::unique_ptr<RowPartFile>>& files)
      : to_(to), files_(files) {
    for (std::size_t s = 0; s < plan.sections.size(); ++s)
      for (PlannedRange& range : plan.sections[s].ranges) {
        if (groups_.empty() || groups_.back().front().range->giver != range.giver)
          groups_.emplace_back();
        groups_.back().push_back({s, &range});
      }
  }

  void run() {
    on_threads(to_.run.workers, [this] {
      for (std::size_t i = 0; (i = next_.fetch_add(1)) < groups_.size();) {
        if (to_.run.is_stopping()) return give_up();
        try {
          carry_out(i);
        } catch (...) {
          give_up();
          throw;
        }
      }
    });
  }

 private:
  struct Planned {
    std::size_t section = 0;
    PlannedRange* range = nullptr;
  };

  void give_up() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    turn_changed_.notify_all();
  }

  void carry_out(std::size_t i) {
    const std::vector<Planned>& group = groups_[i];
    const std::shared_ptr<RowGiver> giver = group.front().range->giver;
    const ManifestSource& source = *manifest_source(to_.run);
    for (const Planned& p : group) giver->open(source, *p.range);
    std::vector<Copy> copies;
    {
      std::unique_lock lock(mutex_);
      turn_changed_.wait(lock, [&] { return turn_ == i || is_over_; });
      if (is_over_) return;
      for (const Planned& p : group) account(p, copies);
      ++turn_;
      turn_changed_.notify_all();
    }
    for (const Copy& copy : copies) giver->copy(copy.entries, *files_[copy.section], copy.to);
    giver->close();
    for (const Planned& p : group) p.range->giver.reset();
  }

  void account(const Planned& p, std::vector<Copy>& copies) {
    const RowGiver& giver = *p.range->giver;
    for (std::size_t i = p.range->first; i < p.range->end; ++i) {
      const std::size_t at = p.range->entry_of(i);
      const FeatureFile::Entry& e = giver.entry(at);
      const std::int64_t to = to_.writer.order().total(p.section);
      to_.writer.resume(e.count, e.rows_hash, about(e));
      account_for(i, giver, at, to_);
      if (e.count == 0) continue;
      if (copies.empty() || copies.back().section != p.section || copies.back().end != e.offset)
        copies.push_back({p.section, to, e.offset, {}});
      copies.back().entries.push_back(at);
      copies.back().end += e.count;
    }
    note_statistics(*p.range, to_.statistics);
  }

  const Accounts& to_;
  const std::vector<std::unique_ptr<RowPartFile>>& files_;
  std::vector<std::vector<Planned>> groups_;  // ranges of one giver that follow each other
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards the members below, and all accounts
  std::condition_variable turn_changed_;
  std::size_t turn_ = 0;  // the group whose files are accounted for next
  bool is_over_ = false;
};

}  // namespace

void pass_routes_again(RowPlan& plan, const RunContext& run) {
  for (RowPlan::Section& section : plan.sections) {
    const auto is_elsewhere = [](const PlannedRange& r) { return r.from == From::nowhere; };
    if (std::none_of(section.ranges.begin(), section.ranges.end(), is_elsewhere)) continue;
    for (const PlannedRange& r : std::exchange(section.ranges, {}))
      for (std::size_t i = r.first; i < r.end; ++i)
        section.add(i, is_elsewhere(r) && !is_complete(run, i) ? From::graph : r.from, r.found,
                    r.giver, r.entry_of(i));
  }
}

KeptFiles keep_planned(RowPlan& plan, const Accounts& to) {
  KeptFiles out;
  RowOrder& order = to.writer.order();
  Ledger& ledger = to.run.ledger;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    RowPlan::Section& section = plan.sections[s];
    for (PlannedRange& range : section.ranges) {
      for (std::size_t i = range.first; i < range.end && range.from != From::graph; ++i) {
        const std::size_t at = range.entry_of(i);
        const FeatureFile::Entry& e = range.giver->entry(at);
        if (range.from == From::nowhere) {
          const FeatureFile::Remark& remark = *range.giver->remark(at);
          to.ledger.left_out(i, ledger.stage_number(remark.stage),
                             ItemError::skipped(remark.reason));
          continue;
        }
        if (section.in_place)
          order.stays(i, e.offset, e.count, about(e));
        else
          order.taken_over(i, e.count, about(e));
        to.writer.hashes()[i] = e.rows_hash;
        account_for(i, *range.giver, at, to);
        ++out.files;
        out.rows += e.count;
      }
      if (range.is_kept()) note_statistics(range, to.statistics);
    }
    if (!section.in_place) continue;
    order.begin_at(s, *section.in_place);
    for (PlannedRange& range : section.ranges) range.giver.reset();
  }
  return out;
}

void copy_first(RowPlan& plan, const Accounts& to,
                const std::vector<std::unique_ptr<RowPartFile>>& files) {
  FirstCopies(plan, to, files).run();
}

}  // namespace melflow
