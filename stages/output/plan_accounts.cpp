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

// What the giver of a range knows of a file from the run that made its rows.
Done done_in(const PlannedRange& range, std::size_t file, Done::Rows where, const Accounts& to) {
  const RowGiver& giver = *range.giver;
  const std::size_t entry = range.entry_of(file);
  const FeatureFile::Entry& e = giver.entry(entry);
  Done out;
  out.where = where;
  out.offset = e.offset;
  out.is_summed = giver.sums() != nullptr;
  out.is_kept = true;
  out.rows = e.count;
  out.rows_hash = e.rows_hash;
  out.about = {{e.sample_rate, std::llround(e.duration * e.sample_rate)}, e.results};
  out.about.measured = e.measured;
  out.stamp = e.stamp;
  out.content = e.content;
  // What the planner has found out about a file is newer.
  if (const ManifestSource* source = manifest_source(to.run);
      source != nullptr && source->stamp(file).size >= 0) {
    out.stamp = source->stamp(file);
    if (source->contents() != nullptr) out.content = source->contents()->of[file];
  }
  if (const FeatureFile::Remark* remark = giver.remark(entry))
    out.in_run = {Outcome::open, remark->stage, remark->reason};
  out.in_sink = out.in_run;
  // Each output has warnings of its own.
  if (to.run.settings.sinks > 1) out.in_sink.outcome = Outcome::ok;
  if (is_complete(to.run, file)) out.in_run.outcome = outcome_of(e.status);
  return out;
}

// Adds the sums of a giver once, for all of its ranges.
void add_sums(const PlannedRange& range, SinkStatistics& statistics) {
  if (const ColumnSums* sums = range.giver->sums(); sums != nullptr && range.entry == 0)
    statistics.add(*sums);
}

// Copies of rows that follow each other in a giver and in the output.
struct Copy {
  std::size_t section = 0;
  std::int64_t to = 0, end = 0;  // rows of the giver end at `end`
  std::vector<std::size_t> entries;
};

class FirstCopies {
 public:
  FirstCopies(RowPlan& plan, const Accounts& to, const std::vector<SectionFile>& files)
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
      for (const Planned& p : group) take_turn(p, copies);
      ++turn_;
      turn_changed_.notify_all();
    }
    for (const Copy& copy : copies) giver->copy(copy.entries, *files_[copy.section], copy.to);
    giver->close();
    for (const Planned& p : group) p.range->giver.reset();
  }

  void take_turn(const Planned& p, std::vector<Copy>& copies) {
    const RowGiver& giver = *p.range->giver;
    for (std::size_t i = p.range->first; i < p.range->end; ++i) {
      const std::size_t at = p.range->entry_of(i);
      const FeatureFile::Entry& e = giver.entry(at);
      const std::int64_t to = to_.writer.order().total(p.section);
      account(i, done_in(*p.range, i, Done::Rows::written, to_), to_);
      if (e.count == 0) continue;
      if (copies.empty() || copies.back().section != p.section || copies.back().end != e.offset)
        copies.push_back({p.section, to, e.offset, {}});
      copies.back().entries.push_back(at);
      copies.back().end += e.count;
    }
    add_sums(*p.range, to_.statistics);
  }

  const Accounts& to_;
  const std::vector<SectionFile>& files_;
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

void account(std::size_t file, const Done& done, const Accounts& to) {
  RowOrder& order = to.writer.order();
  // The journal has no rows of a file whose rows stay.
  if (!order.stays(file)) to.writer.hashes()[file] = done.rows_hash;
  if (done.where == Done::Rows::written)
    order.resume(done.rows, done.about);
  else if (done.where == Done::Rows::copied)
    order.taken_over(file, done.rows, done.about);
  else
    order.stays(file, done.offset, done.rows, done.about);
  if (done.rows > 0 && !done.is_summed) to.statistics.mark_stale(file);
  if (ManifestSource* const source = manifest_source(to.run)) {
    source->set_stamp(file, done.stamp);
    if (source->contents() != nullptr) source->contents()->of[file] = done.content;
  }
  Ledger& ledger = to.run.ledger;
  const auto& [outcome, stage, reason] = done.in_sink;
  if (outcome == Outcome::ok)
    to.ledger.kept(file, ledger.stage_number(stage), reason);
  else if (outcome != Outcome::open)
    to.ledger.left_out(
        file, ledger.stage_number(stage),
        {outcome == Outcome::skipped ? ItemError::Kind::skipped : ItemError::Kind::failed, reason});
  if (done.in_run.outcome != Outcome::open && ledger.outcome(file) == Outcome::open)
    ledger.close(file, done.in_run.outcome, ledger.stage_number(done.in_run.stage),
                 done.in_run.reason);
}

KeptFiles keep_planned(RowPlan& plan, const Accounts& to) {
  KeptFiles out;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    RowPlan::Section& section = plan.sections[s];
    for (PlannedRange& range : section.ranges) {
      for (std::size_t i = range.first; i < range.end && range.from != From::graph; ++i) {
        if (range.from == From::nowhere) {
          const FeatureFile::Remark& remark = *range.giver->remark(range.entry_of(i));
          to.ledger.left_out(i, to.run.ledger.stage_number(remark.stage),
                             ItemError::skipped(remark.reason));
          continue;
        }
        const Done done =
            done_in(range, i, section.in_place ? Done::Rows::stay : Done::Rows::copied, to);
        account(i, done, to);
        out.add(done.rows);
      }
      if (range.is_kept()) add_sums(range, to.statistics);
    }
    if (!section.in_place) continue;
    to.writer.order().begin_at(s, *section.in_place);
    for (PlannedRange& range : section.ranges) range.giver.reset();
  }
  return out;
}

void copy_first(RowPlan& plan, const Accounts& to, const std::vector<SectionFile>& files) {
  FirstCopies(plan, to, files).run();
}

}  // namespace melflow
