#include "stages/output/finishing.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/joint_publication.h"
#include "stages/run_task.h"

namespace melflow {

Finishing::~Finishing() {
  if (uses_.starts_over && !is_written_) drop_work();
}

void Finishing::run(Ending ending) {
  try {
    uses_.writer.check();
    is_complete_ = ending == Ending::complete;
    if (ending == Ending::failed) return leave_work();
    if (!is_complete_ && uses_.plan.is_update)
      uses_.run.warn(
          fmt::format("{}: the update was stopped; it is what it was before", uses_.target.path));
    if (!is_complete_ && (uses_.plan.is_update || uses_.plan.copies_first)) return leave_work();
    if (is_complete_) check_gives_rows();
    finish();
  } catch (...) {
    leave_work();
    throw;
  }
}

// Throws RunError when an output has rows and no file of this run made any: an error in every file
// comes from the run itself (a disk, an option), and must not replace those rows.
void Finishing::check_gives_rows() const {
  const Ledger::Counts counts = uses_.run.ledger.counts();
  if (counts.ok > 0) return;
  const auto has_rows = [](const std::string& path) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown) && !unknown) return false;
    try {
      return FeatureFile(path).rows() > 0;
    } catch (const RunError&) {
      return true;  // it may be any file of the user's
    }
  };
  for (const std::string& output : uses_.sections.paths())
    if (const std::string path = uses_.format.files_of(output).front(); has_rows(path))
      throw RunError(fmt::format(
          "{}: this file is left as it was, since no file of this run gave rows ({} failed, {} "
          "skipped); remove it, or write elsewhere, if it is to go",
          path, counts.failed, counts.skipped));
}

template <class F>
void Finishing::timed(const F& act) {
  const auto before = std::chrono::steady_clock::now();
  act();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  if (uses_.target.sync && update_of(uses_.run) == Update::none) sync_seconds_ += took.count();
}

void Finishing::finish() {
  Checkpoints& checkpoints = *uses_.checkpoints;
  const RowOrder& order = uses_.writer.order();
  timed([&] { checkpoints.commit(); });
  checkpoints.ending();
  uses_.writer.finish();
  if (order.current() < uses_.run.ledger.counts().found)
    throw RunError(fmt::format("{}: not all rows of {} came (a bug in melflow)", uses_.target.path,
                               uses_.run.source.name(order.current())));
  for (std::size_t s = 0; s < uses_.files.size(); ++s) uses_.files[s].add_in_place(order.total(s));
  complete_files();
  splits_ = split_summaries();
  if (is_complete_) {
    for (SectionFile& file : uses_.files) file.stay();
    return timed([this] { publish(); });
  }
  checkpoints.commit();  // rows that were only in memory so far
  for (const SectionFile& file : uses_.files)
    for (PartFile* part : file->parts()) part->keep();
  is_written_ = true;
}

void Finishing::complete_files() {
  const RowOrder& order = uses_.writer.order();
  uses_.statistics.settle(uses_.run, order, uses_.sections, uses_.files, is_complete_);
  std::vector<std::string> hashes;
  for (std::size_t s = 0; s < uses_.files.size() && uses_.target.normalize && is_complete_; ++s)
    normalize(s);
  for (std::size_t s = 0; s < uses_.files.size(); ++s) {
    const std::int64_t rows = order.total(s);
    const OutputIndex index{uses_.run,
                            uses_.ledger,
                            order,
                            uses_.info,
                            uses_.settings,
                            is_complete_,
                            uses_.sections.first(s),
                            uses_.sections.end(s),
                            uses_.statistics.settled(),
                            &uses_.writer.hashes(),
                            uses_.target.split_files && manifest_with_splits(uses_.run) != nullptr,
                            uses_.plan.is_repair ? &uses_.plan.sections[s].warnings : nullptr,
                            uses_.measures};
    uses_.format.complete_file(*uses_.files[s], shape_of(uses_.info, rows), index);
    hashes.push_back(index.hash());
    rows_ += rows;
  }
  if (uses_.plan.is_update && is_complete_) uses_.checkpoints->complete(std::move(hashes));
}

// Normalises rows, and updates their hashes.
void Finishing::normalize(std::size_t section) {
  if (uses_.plan.normalized_by) return normalize_repaired(section);
  const RowOrder& order = uses_.writer.order();
  const std::vector<std::int64_t> offsets = order.offsets();
  RowPartFile& file = *uses_.files[section];
  std::atomic<std::size_t> next{uses_.sections.first(section)};
  on_threads(uses_.run.workers, [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < uses_.sections.end(section);)
      if (const std::int64_t n = order.rows(i); n > 0) {
        uses_.statistics.normalize(i, file, offsets[i], n);
        uses_.writer.hashes()[i] = file.hash_written(offsets[i], n);
      }
  });
}

// Repaired rows are normalised by the statistics of the others. These hold only for the rows as
// they were, so changed rows are refused.
void Finishing::normalize_repaired(std::size_t section) {
  const RowOrder& order = uses_.writer.order();
  const std::vector<std::int64_t> offsets = order.offsets();
  RowPartFile& file = *uses_.files[section];
  for (std::size_t i = uses_.sections.first(section); i < uses_.sections.end(section); ++i) {
    const std::int64_t rows = order.rows(i);
    if (rows == 0 || uses_.plan.is_kept(section, i)) continue;
    uses_.statistics.normalize(i, file, offsets[i], rows);
    std::uint64_t& hash = uses_.writer.hashes()[i] = file.hash_written(offsets[i], rows);
    const PlannedRange& range = uses_.plan.sections[section].of(i);
    if (range.giver != nullptr && hash == range.giver->entry(range.entry_of(i)).rows_hash) continue;
    uses_.checkpoints->remove();
    uses_.checkpoints.reset();
    throw RunError(fmt::format(
        "{}: its rows are normalised by statistics of the recordings as they were, and what {} "
        "gives now is not what was written: the recording has changed, or this program or "
        "processor makes other bytes. It is left as it is; rebuild it (overwrite: true)",
        uses_.sections.path(section), uses_.run.source.name(i)));
  }
}

// An update is always synced, as a power failure must not destroy what earlier runs have written.
// Work files are removed before the journal is, which alone tells whose they are.
void Finishing::publish() {
  std::vector<PartFile*> parts;
  for (const SectionFile& file : uses_.files)
    for (PartFile* part : file->parts()) parts.push_back(part);
  uses_.run.services.find<JointPublication>()->complete(
      uses_.target.path, parts, uses_.target.sync || update_of(uses_.run) != Update::none, [this] {
        is_written_ = true;
        for (SectionFile& file : uses_.files) file.remove_added();
        if (uses_.checkpoints != nullptr) uses_.checkpoints->remove();
      });
}

// Leaves finished work for a run that resumes it, unless there is none.
void Finishing::leave_work() {
  if (uses_.starts_over) return drop_work();
  for (SectionFile& file : uses_.files) file.take_back_in_place();
  if (uses_.checkpoints != nullptr) {
    Checkpoints& checkpoints = *uses_.checkpoints;
    try {
      checkpoints.commit();
    } catch (const std::exception&) {
      // The error that ended the run is the one to report.
    }
    if (checkpoints.rows() == 0) {
      for (SectionFile& file : uses_.files) file.close();  // before the journal, as in publish()
      checkpoints.remove();
    } else {
      for (SectionFile& file : uses_.files) file.stay();
      if (const Resume& resume = task_of(uses_.run).resume; resume.tell)
        resume.tell(fmt::format(
            "{}: {} {}rows are safe in {}, and {} of {} files are done; the same command "
            "goes on from there",
            uses_.target.path, checkpoints.rows(),
            uses_.plan.sections.front().in_place ? "new " : "", uses_.files.front()->part_path(),
            checkpoints.files(), uses_.run.ledger.counts().found));
    }
    uses_.checkpoints.reset();
  }
  for (SectionFile& file : uses_.files) file.close();
}

// An update of several outputs starts over: a file may be done in one, and not in another.
void Finishing::drop_work() {
  for (SectionFile& file : uses_.files) file.drop();
  if (uses_.checkpoints != nullptr) uses_.checkpoints->remove();
  uses_.checkpoints.reset();
}

std::vector<std::string> Finishing::paths() const {
  std::vector<std::string> out;
  for (const SectionFile& f : uses_.files)
    out.push_back(is_complete_ ? f->target() : f->part_path());
  return out;
}

std::vector<std::pair<std::string, Value>> Finishing::summary() const {
  if (!is_written_) return {};
  std::vector<Value> shape;
  for (const std::uint64_t n : shape_of(uses_.info, rows_))
    shape.push_back(Value::scalar(std::to_string(n)));
  const std::vector<std::string> written = paths();
  std::vector<std::pair<std::string, Value>> out{
      {"path", Value::scalar(fmt::format("{}", fmt::join(written, ", ")), {}, true)},
      {"complete", Value::scalar(is_complete_ ? "true" : "false")},
      {"rows", Value::scalar(std::to_string(rows_))}};
  if (const std::int64_t earlier = uses_.kept.rows + uses_.resumed.rows; earlier > 0)
    out.emplace_back("computed_rows", Value::scalar(std::to_string(rows_ - earlier)));
  out.emplace_back("shape", Value::list(std::move(shape)));
  out.emplace_back("dtype", OptionType<NumberType>::echo(uses_.target.dtype));
  for (const auto& [name, files] : {std::pair{"kept_files", uses_.kept.files},
                                    std::pair{"left_out_files", uses_.ledger.left_out()},
                                    std::pair{"late_files", uses_.writer.late_files()},
                                    std::pair{"resumed_files", uses_.resumed.files}})
    if (files > 0) out.emplace_back(name, Value::scalar(std::to_string(files)));
  const RowPlan& plan = uses_.plan;
  for (const auto& [name, files] :
       {std::pair{"dropped", &plan.dropped}, std::pair{"changed", &plan.changed},
        std::pair{"added", &plan.added}}) {
    if (files->count == 0) continue;
    std::vector<Value> names;
    for (const std::string& path : files->names) names.push_back(Value::scalar(path, {}, true));
    out.emplace_back(fmt::format("{}_files", name), Value::scalar(std::to_string(files->count)));
    out.emplace_back(name, Value::list(std::move(names)));
  }
  if (const std::string layout = uses_.format.layout_name(); !layout.empty())
    out.emplace_back("layout", Value::scalar(layout));
  std::uintmax_t bytes = 0;  // as `inspect` reports it
  for (const std::string& path : written) {
    std::error_code gone;
    if (const auto size = std::filesystem::file_size(path, gone); !gone) bytes += size;
  }
  out.emplace_back("bytes", Value::scalar(std::to_string(bytes)));
  if (sync_seconds_ > 0)
    out.emplace_back("sync_seconds", Value::scalar(fmt::format("{:.3f}", sync_seconds_)));
  if (!splits_.empty()) out.emplace_back("splits", Value::list(splits_));
  return out;
}

// Returns per split what `inspect --json` reports and, if rows were computed, the time it took.
std::vector<Value> Finishing::split_summaries() const {
  const Manifest* manifest = manifest_with_splits(uses_.run);
  if (manifest == nullptr) return {};
  std::vector<Value> out;
  const std::vector<Manifest::SplitRange> ranges = manifest->split_ranges();
  const std::vector<SplitTimes::Times> times = uses_.split_times->all(ranges);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Manifest::SplitRange& range = ranges[i];
    std::int64_t rows = 0;
    for (std::size_t file = range.first; file < range.last; ++file)
      rows += uses_.writer.order().rows(file);
    Value split = Value::map({});
    const auto set = [&split](const char* name, std::string text) {
      split.set(name, Value::scalar(std::move(text)));
    };
    split.set("name", range.split < 0 ? Value()
                                      : Value::scalar(manifest->split_name(range.split), {}, true));
    set("files", std::to_string(range.last - range.first));
    set("rows", std::to_string(rows));
    if (const SplitTimes::Times& t = times[i]; t.seconds > 0) {
      set("seconds", fmt::format("{:.6f}", t.seconds));
      set("files_per_second", fmt::format("{:.1f}", static_cast<double>(t.files) / t.seconds));
      set("rows_per_second", fmt::format("{:.1f}", static_cast<double>(t.rows) / t.seconds));
      set("write_seconds", fmt::format("{:.6f}", t.write_seconds));
    }
    out.push_back(std::move(split));
  }
  return out;
}

}  // namespace melflow
