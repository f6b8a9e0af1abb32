#include "stages/output/row_writer.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "stages/output/spilled_rows.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

constexpr std::size_t kMostQueued = 8;  // parts

}  // namespace

RowWriter::RowWriter(const Uses& uses, const SinkLedger& ledger, std::size_t files)
    : uses_(uses),
      ledger_(ledger),
      order_(
          files,
          [&ledger](std::size_t i) {
            const Outcome o = ledger.outcome(i);
            return o != Outcome::open && o != Outcome::ok;
          },
          uses.sections.firsts()) {}

void RowWriter::consume(const MelBatch& in, ItemContext& context) {
  std::vector<PlacedPart> ready;
  bool is_writer = false;
  refuse_unstorable(in, context);
  uses_.statistics.note(in, context);
  {
    const std::lock_guard lock(mutex_);
    stage_ = context.stage();
    if (error_) std::rethrow_exception(error_);
    for (std::size_t i = 0; i < in.parts.size(); ++i) {
      const Origin& origin = context.origin(i);
      if (in.parts[i] && !context.is_lost(i))
        order_.take(origin.stream->index(), in.parts[i], origin, ready);
    }
    is_writer = admit(ready);
  }
  write(ready, is_writer);
}

// Fails files whose rows are finite, but not after rounding to the stored type.
void RowWriter::refuse_unstorable(const MelBatch& batch, const ItemContext& context) const {
  if (uses_.target.dtype == NumberType::float32) return;
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const MelPart* part = batch.parts[i].get();
    if (part == nullptr || part->pending || part->type != NumberType::float32) continue;
    if (auto error = unstorable(part->values(), part->first_row, part->row_count, uses_.info,
                                uses_.target.dtype))
      context.fail(i, std::move(*error));
  }
}

void RowWriter::drop_waiting() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  order_.take_waiting().clear();
  std::exchange(queued_, {}).clear();
}

void RowWriter::check() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void RowWriter::finish(RunContext& run) {
  std::vector<PlacedPart> ready;
  order_.advance(ready);
  write(ready, false);
  for (std::size_t s = 0; s < uses_.sections.size(); ++s) close_gaps(run, s);
}

void RowWriter::closed(std::size_t file) {
  try {
    std::vector<PlacedPart> ready;
    bool is_writer = false;
    {
      const std::lock_guard lock(mutex_);
      // Nothing more is written, so rows of an earlier output need not be copied.
      if (is_over_ && uses_.earlier.is_there()) return;
      uses_.statistics.drop(file);
      order_.closed(file, ready);
      is_writer = admit(ready);
    }
    write(ready, is_writer);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

// Handles parts that have just got their place, by whichever call that happened. Called with the
// mutex held; returns as queue() does.
bool RowWriter::admit(std::vector<PlacedPart>& ready) {
  // Roll back first, before new rows are written over those of a failed file.
  for (const RowOrder::Row& r : order_.take_rolled_back()) uses_.files[r.section]->roll_back(r.row);
  finish_values(ready);
  uses_.statistics.close(ready);
  return queue(ready);
}

// With the mutex held; true: the caller is the writer from now on. Where a second writer would
// only wait for the first, what is ready goes to that one, unless it has enough: rows that lie
// about leave the cache.
bool RowWriter::queue(std::vector<PlacedPart>& ready) {
  if (ready.empty()) return false;
  const MelPart* part = ready.front().part.get();  // none: rows of an earlier output, as float32
  if (!uses_.files.front()->is_serial(part != nullptr ? part->type : NumberType::float32))
    return false;
  if (!writing_) return writing_ = true;
  if (queued_.size() + ready.size() <= kMostQueued) {
    std::move(ready.begin(), ready.end(), std::back_inserter(queued_));
    ready.clear();
  }
  return false;
}

void RowWriter::write(std::vector<PlacedPart>& ready, bool is_writer) {
  std::vector<RowRange> ranges;
  while (!ready.empty()) {
    for (std::size_t i = 0; i < ready.size();) {
      const std::size_t section = ready[i].section;
      ranges.clear();
      for (; i < ready.size() && ready[i].section == section && ready[i].part; ++i)
        if (const MelPart& part = *ready[i].part; part.row_count > 0 && !part.pending)
          ranges.push_back(
              {ready[i].file_row + part.first_row, part.data->data(), part.row_count, part.type});
      uses_.files[section]->write(ranges);
      if (i < ready.size() && !ready[i].part)
        i = uses_.earlier.take_over(ready, i, *uses_.files[section]);
    }
    ready.clear();  // may close files' records, and so come back here through closed()
    if (!is_writer) return;
    const std::lock_guard lock(mutex_);
    ready.swap(queued_);
    writing_ = !ready.empty();
  }
}

// Finishes values that depend on a whole file: its rows go to a temporary file until the last block
// has come. Called with the mutex held; such files are long and rare.
void RowWriter::finish_values(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready) {
    if (!p.part || !p.part->pending) continue;
    RowPartFile& file = *uses_.files[p.section];
    const auto columns = static_cast<std::uint64_t>(p.part->pending_columns);
    if (p.part->row_count > 0)
      file.spill(static_cast<std::uint64_t>(p.part->first_row) * columns * sizeof(float),
                 p.part->values(),
                 static_cast<std::size_t>(p.part->row_count) * columns * sizeof(float));
    if (p.file_rows <= 0) continue;
    finish_spilled(file, *p.part->pending, p.file_rows, p.part->pending_columns,
                   [&](std::int64_t row, const float* values, std::int64_t n) {
                     file.write(p.file_row + row, values, n);
                     if (auto error = unstorable(values, row, n, uses_.info, uses_.target.dtype))
                       p.origin.stream->fail(stage_, std::move(*error));
                     else
                       uses_.statistics.sum(p.file, row, n, values);
                   });
  }
}

void RowWriter::close_gaps(RunContext& run, std::size_t section) {
  std::int64_t from = order_.begin_of(section), to = from;
  std::size_t gaps = 0;
  for (std::size_t i = uses_.sections.first(section); i < uses_.sections.end(section); ++i) {
    const std::int64_t rows = order_.rows(i);
    if (rows == 0 || order_.stays(i)) continue;
    if (ledger_.outcome(i) != Outcome::ok) {
      order_.forget(i);
      uses_.statistics.mistake(i);
      ++gaps;
    } else {
      if (from != to) uses_.files[section]->move_rows(from, to, rows);
      to += rows;
    }
    from += rows;
  }
  if (gaps > 0)
    run.warn(fmt::format("rows of {} files that failed late were taken out of {} again", gaps,
                         uses_.files[section]->target()));
}

}  // namespace melflow
