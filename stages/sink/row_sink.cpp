#include "stages/sink/row_sink.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/files_read.h"
#include "stages/row_type.h"
#include "stages/listing/manifest.h"
#include "stages/sink/spilled_rows.h"

namespace melflow {
namespace {

constexpr std::size_t kMostQueued = 8;      // parts
constexpr std::size_t kAtOnce = 256 << 10;  // [bytes] of rows that are read back

// Throws RunError for an output that would take the place of what the run reads.
void check_is_no_input(const std::string& target, const RunContext& run) {
  if (!has_name(target)) return;
  const auto check = [&](const std::string& input, const char* what) {
    if (is_same_file(target, input))
      throw RunError(fmt::format("{}: is {} and would be replaced by the output; write elsewhere",
                                 target, what));
  };
  for (const std::string& input : FilesRead::of(run)) check(input, "what this run reads");
  const auto* listed = dynamic_cast<const ManifestSource*>(&run.source);
  if (listed == nullptr) return;
  const std::string name = std::filesystem::path(without_links(target)).filename();
  for (std::size_t i = 0; i < listed->manifest().size(); ++i)
    if (listed->manifest().relative(i).ends_with(name))
      check(listed->manifest().path(i), "a file of the corpus");
}

}  // namespace

void RowSinkOptions::describe_rows(Schema& s, const std::string& what) {
  s.field("path", path, what).tuning();
  s.field("dtype", dtype,
          "of the rows: float32; float16: 11 significant bits, up to 65504; bfloat16: 8, with the "
          "range of float32. A file with a larger value fails. A graphics processor writes 16-bit "
          "rows itself where nothing before the sink needs more");
  s.field("statistics", statistics,
          "store mean and standard deviation of every column, of the first split's rows (train; of "
          "all where there are no splits) or of all")
      .tuning();
  s.field("normalize", normalize,
          "when all rows are there, scale their columns, in every split, by the statistics");
}

void RowSinkOptions::describe_ending(Schema& s) {
  s.field(
       "split_files", split_files,
       "a file for each split, named after it: features.train.h5 for path: features.h5; what has "
       "no split goes to the path itself")
      .tuning();
  s.field("overwrite", overwrite,
          "replace an existing file, once the new one is complete; one with rows stays where no "
          "file of the run gives any")
      .tuning();
  s.field(
       "max_dropped", max_dropped,
       "the most of the earlier output that an update drops because its files are gone, in files "
       "or as a share of the rows; more than that is taken for a disk that is not mounted, and "
       "the output stays as it is. 100%: any")
      .tuning();
  s.field("sync", sync, "finish only when the system has everything on disk").tuning();
}

Facts RowSink::demand(const Facts& below) const {
  Facts above = below;
  demand_rows(above, target_.dtype);
  EarlierFiles earlier;
  earlier.visit = [this](const auto& splits, const auto& visit) { visit_earlier(splits, visit); };
  above.set_object(EarlierFiles::kFact, std::make_shared<const EarlierFiles>(std::move(earlier)));
  return above;
}

Facts RowSink::plan(const Facts& given, const Facts&, PlanCheck& check) {
  if (target_.path.empty()) check.error("", "'path' is missing: which file should be written?");
  info_ = given.get_object<FeatureInfo>(FeatureInfo::kFact);
  if (info_ && target_.dtype == NumberType::float16 && !info_->is_log)
    check.warning("dtype",
                  "float16 holds 6e-8 to 65504, and these values are no logarithms: quiet ones "
                  "become 0, and files with louder ones fail");
  if (target_.normalize && target_.statistics == StatisticsOf::none)
    check.error("normalize", "by which statistics? Set statistics: train");
  if (info_ && target_.normalize) {
    auto normalized = std::make_shared<FeatureInfo>(*info_);
    normalized->unit = "standard deviations of " + info_->unit;
    info_ = std::move(normalized);
  }
  return given;
}

std::optional<Value> RowSink::settings() const {
  Value out = Value::map({});
  out.set("dtype", OptionType<NumberType>::echo(target_.dtype));
  if (target_.normalize) out.set("normalize", OptionType<StatisticsOf>::echo(target_.statistics));
  return out;
}

void RowSink::start(RunContext& run) {
  list_sections(run);
  Ledger& ledger = run.ledger;
  order_ = std::make_unique<RowOrder>(
      ledger.counts().found,
      [&ledger](std::size_t i) {
        const Outcome o = ledger.outcome(i);
        return o != Outcome::open && o != Outcome::ok;
      },
      first_files_);
  open_files(run);
  ledger.subscribe([this](std::size_t index, Outcome outcome) {
    if (outcome != Outcome::ok) closed(index);
  });
}

// "out/features.h5" of "train": "out/features.train.h5".
std::string RowSink::section_path(const std::string& split) const {
  if (split.empty()) return target_.path;
  const std::filesystem::path p(target_.path);
  return (p.parent_path() / (p.stem().string() + "." + split + p.extension().string())).string();
}

// Null: there are no splits.
const Manifest* RowSink::split_manifest(const RunContext& run) const {
  const auto* listed = dynamic_cast<const ManifestSource*>(&run.source);
  return listed != nullptr && !listed->manifest().split_names().empty() ? &listed->manifest()
                                                                         : nullptr;
}

std::size_t RowSink::kept_memory(const RunContext& run, int concurrency) const {
  const Manifest* splits = target_.split_files ? split_manifest(run) : nullptr;
  return file_memory(concurrency, splits != nullptr ? splits->split_ranges().size() : 1);
}

void RowSink::list_sections(RunContext& run) {
  const Manifest* splits = split_manifest(run);
  counted_ = run.ledger.counts().found;
  if (splits != nullptr && target_.statistics == StatisticsOf::train)
    counted_ = splits->split_ranges().front().last;
  if (target_.statistics != StatisticsOf::none)
    statistics_ = std::make_unique<RowStatistics>(info_->frames, info_->columns);
  first_files_ = {0};
  paths_ = {target_.path};
  if (!target_.split_files || splits == nullptr) return;
  first_files_.clear();
  paths_.clear();
  const Manifest& manifest = *splits;
  for (const Manifest::SplitRange& range : manifest.split_ranges()) {
    first_files_.push_back(range.first);
    paths_.push_back(section_path(
        range.split < 0 ? "" : manifest.split_names()[static_cast<std::size_t>(range.split)]));
  }
}

void RowSink::open_files(RunContext& run) {
  if (run.update != Update::none && run.sinks > 1)
    throw RunError(
        fmt::format("{}: only a pipeline with one output can be updated, this one has {}",
                    target_.path, run.sinks));
  if (Publication::recover(target_.path))
    run.warn(fmt::format("{}: a run was ended when it was complete, before its files had their "
                         "names: they have them now",
                         target_.path));
  check_files(run);
  old_.resize(paths_.size());
  Earlier earlier(paths_.size());
  if (run.update != Update::none)
    for (std::size_t s = 0; s < paths_.size(); ++s) earlier[s] = match_earlier(run, s);
  if (updates_) check_dropped(run, earlier);
  forget_opened(run);
  for (std::size_t s = 0; s < paths_.size(); ++s) {
    if (earlier[s] != nullptr) use_earlier(run, s, std::move(earlier[s]));
    if (files_.size() > s) continue;
    const bool replaces = target_.overwrite || old_[s] != nullptr;
    files_.push_back(make_row_file(paths_[s], replaces ? Existing::replace : Existing::refuse));
  }
  for (const auto& file : files_) {
    if (!file->is_unlocked()) continue;
    run.warn(fmt::format("{}: this file system has no locks: see to it that no other run writes "
                         "there meanwhile",
                         file->target()));
    break;
  }
}

// All of them before the first is opened: nothing has been touched when one is refused.
void RowSink::check_files(RunContext& run) const {
  const bool may_be_there = target_.overwrite || run.update != Update::none;
  for (const std::string& path : paths_) {
    for (const std::string& file : files_of(path)) {
      PartFile::recover(file);
      PartFile::check(file, stage_name(), may_be_there ? Existing::replace : Existing::refuse);
      check_is_no_input(file, run);
    }
  }
}

std::optional<ItemError> RowSink::consume(std::shared_ptr<const MelBatch> in,
                                          ItemContext& context) {
  std::vector<PlacedPart> ready;
  bool is_writer = false;
  refuse_unstorable(*in, context);
  if (statistics_) note(*in, context);
  {
    const std::lock_guard lock(mutex_);
    stage_ = context.stage();
    if (error_) std::rethrow_exception(error_);
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      const Origin& origin = context.origin(i);
      if (in->parts[i] && !origin.stream->failed())
        order_->take(origin.stream->index(), in->parts[i], origin, ready);
    }
    is_writer = admit(ready);
  }
  write(ready, is_writer);
  return std::nullopt;
}

// Rows that were finite until they are rounded.
void RowSink::refuse_unstorable(const MelBatch& batch, const ItemContext& context) const {
  if (target_.dtype == NumberType::float32) return;
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const MelPart* part = batch.parts[i].get();
    if (part == nullptr || part->pending || part->type != NumberType::float32) continue;
    if (auto error =
            unstorable(part->values(), part->first_row, part->row_count, *info_, target_.dtype))
      context.fail(i, std::move(*error));
  }
}

// A run that ended early leaves some.
void RowSink::drop_waiting() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  order_->take_waiting().clear();
  std::exchange(queued_, {}).clear();
}

void RowSink::finish(RunContext& run, Ending ending) {
  if (files_.empty()) return;
  try {
    if (error_) std::rethrow_exception(error_);
    if (ending == Ending::failed) return files_.clear();
    complete_ = ending == Ending::complete;
    if (!complete_ && updates_) {
      run.warn(fmt::format("{}: the update was stopped; it is what it was before", target_.path));
      return files_.clear();
    }
    if (complete_) check_gives_rows(run);
    take_over_rest();
    complete(run);
    splits_ = split_counts(run);
    std::vector<PartFile*> parts;
    for (const auto& file : files_)
      for (PartFile* part : file->parts()) parts.push_back(part);
    if (complete_)
      Publication::publish(target_.path, parts, target_.sync);
    else
      for (PartFile* part : parts) part->keep();
    written_ = true;
  } catch (...) {
    files_.clear();
    throw;
  }
}

void RowSink::complete(RunContext& run) {
  const std::size_t found = run.ledger.counts().found;
  for (std::size_t s = 0; s < files_.size(); ++s) close_gaps(run, s);
  if (statistics_) settle_statistics(run);
  for (std::size_t s = 0; s < files_.size(); ++s) {
    const std::int64_t rows = order_->total(s);
    if (target_.normalize) normalize_rows(run, s);
    complete_file(*files_[s], shape_of(rows),
                  {run, *order_, *info_, contract(), complete_, first_files_[s], end_of(s, found),
                   measured_ ? &*measured_ : nullptr});
    rows_ += rows;
  }
}

std::vector<std::pair<std::string, Value>> RowSink::summary() const {
  if (!written_) return {};
  std::vector<Value> shape;
  for (const std::uint64_t n : shape_of(rows_)) shape.push_back(Value::scalar(std::to_string(n)));
  std::vector<std::string> paths;
  for (const auto& f : files_) paths.push_back(complete_ ? f->target() : f->part_path());
  std::vector<std::pair<std::string, Value>> out{
      {"path", Value::scalar(fmt::format("{}", fmt::join(paths, ", ")), {}, true)},
      {"complete", Value::scalar(complete_ ? "true" : "false")},
      {"rows", Value::scalar(std::to_string(rows_))},
      {"shape", Value::list(std::move(shape))},
      {"dtype", OptionType<NumberType>::echo(target_.dtype)}};
  if (kept_files_ > 0) out.emplace_back("kept_files", Value::scalar(std::to_string(kept_files_)));
  if (dropped_.files > 0)
    out.emplace_back("dropped_files", Value::scalar(std::to_string(dropped_.files)));
  if (!layout_name().empty()) out.emplace_back("layout", Value::scalar(layout_name()));
  out.emplace_back("bytes", Value::scalar(std::to_string(static_cast<std::uint64_t>(rows_) *
                                                         files_.front()->row_bytes())));
  if (!splits_.empty()) out.emplace_back("splits", Value::list(splits_));
  return out;
}

// As `inspect --json` has them.
std::vector<Value> RowSink::split_counts(const RunContext& run) const {
  const Manifest* splits = split_manifest(run);
  if (splits == nullptr) return {};
  const Manifest& manifest = *splits;
  std::vector<Value> out;
  for (const Manifest::SplitRange& range : manifest.split_ranges()) {
    std::int64_t rows = 0;
    for (std::size_t i = range.first; i < range.last; ++i) rows += order_->rows(i);
    Value split = Value::map({});
    split.set("name",
              range.split < 0
                  ? Value()
                  : Value::scalar(manifest.split_names()[static_cast<std::size_t>(range.split)], {},
                                  true));
    split.set("files", Value::scalar(std::to_string(range.last - range.first)));
    split.set("rows", Value::scalar(std::to_string(rows)));
    out.push_back(std::move(split));
  }
  return out;
}

std::int64_t RowSink::rows_at_once() const {
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kAtOnce / (info_->values_per_row() * sizeof(float))));
}

RowSink::Shape RowSink::shape_of(std::int64_t rows) const {
  Shape shape{static_cast<std::uint64_t>(rows)};
  if (info_->frames > 1) shape.push_back(static_cast<std::uint64_t>(info_->frames));
  shape.push_back(static_cast<std::uint64_t>(info_->columns));
  return shape;
}

// A file ended without rows: those behind it need not wait for it. Called where a stream ends,
// which may be in a destructor: an error is kept for the next call that can throw.
void RowSink::closed(std::size_t index) {
  try {
    std::vector<PlacedPart> ready;
    bool is_writer = false;
    {
      const std::lock_guard lock(mutex_);
      // Rows of an earlier output would be taken over for nothing.
      if (is_over_ && updates_) return;
      if (statistics_) statistics_->drop(index);
      order_->closed(index, ready);
      is_writer = admit(ready);
    }
    write(ready, is_writer);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

// What is due, with the mutex held, to parts that have their place now, whoever's turn made them
// ready. Returns as queue() does.
bool RowSink::admit(std::vector<PlacedPart>& ready) {
  roll_back();
  finish_values(ready);
  close_statistics(ready);
  return queue(ready);
}

// Before anything is written where a file's rows were that failed on the way.
void RowSink::roll_back() {
  for (const RowOrder::Row& r : order_->take_rolled_back()) files_[r.section]->roll_back(r.row);
}

// With the mutex held; true: the caller is the writer from now on. Where a second writer would
// only wait for the first, what is ready goes to that one, unless it has enough: rows that lie
// about leave the cache.
bool RowSink::queue(std::vector<PlacedPart>& ready) {
  if (ready.empty()) return false;
  const MelPart* part = ready.front().part.get();  // none: rows of an earlier output, as float32
  if (!files_.front()->is_serial(part != nullptr ? part->type : NumberType::float32)) return false;
  if (!writing_) return writing_ = true;
  if (queued_.size() + ready.size() <= kMostQueued) {
    std::move(ready.begin(), ready.end(), std::back_inserter(queued_));
    ready.clear();
  }
  return false;
}

void RowSink::write(std::vector<PlacedPart>& ready, bool is_writer) {
  std::vector<RowRange> ranges;
  while (!ready.empty()) {
    for (std::size_t i = 0; i < ready.size();) {
      const std::size_t section = ready[i].section;
      ranges.clear();
      for (; i < ready.size() && ready[i].section == section && ready[i].part; ++i)
        if (const MelPart& part = *ready[i].part; part.row_count > 0 && !part.pending)
          ranges.push_back({ready[i].file_row + part.first_row, part.data->data(), part.row_count,
                            part.type});
      files_[section]->write(ranges);
      if (i < ready.size() && !ready[i].part) i = take_over(ready, i);
    }
    ready.clear();  // may close files' lines, and so come back here through closed()
    if (!is_writer) return;
    const std::lock_guard lock(mutex_);
    ready.swap(queued_);
    writing_ = !ready.empty();
  }
}

// Values that depend on the whole file: its rows go to a temporary file until the last block is
// there. With the mutex held; such files are long and rare.
void RowSink::finish_values(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready) {
    if (!p.part || !p.part->pending) continue;
    RowPartFile& file = *files_[p.section];
    const auto columns = static_cast<std::uint64_t>(p.part->pending_columns);
    if (p.part->row_count > 0)
      file.spill(static_cast<std::uint64_t>(p.part->first_row) * columns * sizeof(float),
                 p.part->values(),
                 static_cast<std::size_t>(p.part->row_count) * columns * sizeof(float));
    if (p.file_rows <= 0) continue;
    finish_spilled(file, *p.part->pending, p.file_rows, p.part->pending_columns,
                   [&](std::int64_t row, const float* values, std::int64_t n) {
                     file.write(p.file_row + row, values, n);
                     if (auto error = unstorable(values, row, n, *info_, target_.dtype))
                       p.origin.stream->fail(stage_, std::move(*error));
                     else if (counts(p.file))
                       sum(p.file, row, n, values, NumberType::float32, false);
                   });
  }
}

// Files that failed after their rows were placed (in another branch of the graph) leave none.
void RowSink::close_gaps(RunContext& run, std::size_t section) {
  std::int64_t from = order_->begin_of(section), to = from;
  std::size_t gaps = 0;
  const std::size_t end = end_of(section, run.ledger.counts().found);
  for (std::size_t i = first_files_[section]; i < end; ++i) {
    const std::int64_t rows = order_->rows(i);
    if (rows == 0 || order_->stays(i)) continue;
    if (run.ledger.outcome(i) != Outcome::ok) {
      order_->forget(i);
      statistics_stale_ = statistics_stale_ || counts(i);
      ++gaps;
    } else {
      if (from != to) files_[section]->move_rows(from, to, rows);
      to += rows;
    }
    from += rows;
  }
  if (gaps > 0)
    run.warn(fmt::format("rows of {} files that failed late were taken out of {} again", gaps,
                         files_[section]->target()));
}

}  // namespace melflow
