#include "stages/output/row_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pipeline/base/problem.h"
#include "stages/output/spilled_rows.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

constexpr std::size_t kMostQueued = 8;        // parts
constexpr std::size_t kMostAtOnce = 1 << 20;  // [bytes] written at once, all lost in a failure

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
          uses.sections.firsts()),
      hashes_(files, 0) {}

// Calls `work`. If that throws, which ends the run, notes that neither the parts of `ready` from
// number `written` on nor the queued ones are written.
template <class F>
void RowWriter::or_lose(std::vector<PlacedPart>& ready, const std::size_t& written, F&& work) {
  try {
    work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    lose(std::span(ready).subspan(std::min(written, ready.size())));
    lose(queued_);
    throw;
  }
}

void RowWriter::lose(std::span<const PlacedPart> parts) {
  for (const PlacedPart& p : parts) lost_from_ = std::min(lost_from_, p.file);
}

void RowWriter::consume(const MelBatch& in, ItemContext& context) {
  std::vector<PlacedPart> ready;
  bool is_writer = false;
  refuse_unstorable(in, context);
  uses_.statistics.note(in, context);
  keep_only_rows(in, context);
  std::size_t written = 0;
  or_lose(ready, written, [&] {
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
    write(ready, is_writer, written);
  });
  drop_lost();
}

// A file that fails stays open while parts of it wait for the one that was lost. Dropping them
// closes it, which calls closed() and this function again; only the outer call works.
void RowWriter::drop_lost() {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_dropping_, true)) return;
  for (auto lost = order_.take_lost(stage_); !lost.empty(); lost = order_.take_lost(stage_)) {
    lock.unlock();
    lost.clear();
    lock.lock();
  }
  is_dropping_ = false;
}

// Fails files whose rows are finite, but would not be after rounding to the stored type.
void RowWriter::refuse_unstorable(const MelBatch& batch, const ItemContext& context) const {
  if (uses_.target.dtype == NumberType::float32) return;
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const MelPart* part = batch.parts[i].get();
    if (part == nullptr || part->pending || part->type != NumberType::float32 || context.is_lost(i))
      continue;
    if (auto error = unstorable(part->values(), part->first_row, part->row_count, uses_.info,
                                uses_.target.dtype))
      context.fail(i, std::move(*error));
  }
}

void RowWriter::listen(Ledger& ledger) {
  ledger.subscribe([this](std::size_t file, Outcome outcome) {
    closed(file, outcome);
    try {
      uses_.advanced();
    } catch (...) {
      keep_error();
    }
  });
}

void RowWriter::drop_waiting() {
  drop_lost();
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

void RowWriter::finish() {
  std::vector<PlacedPart> ready;
  std::size_t written = 0;
  order_.advance(ready);
  note_copying(ready);
  write(ready, false, written);
  for (std::size_t s = 0; s < uses_.sections.size(); ++s) close_gaps(s);
}

// Notes how a file ended: later files need not wait for one without rows.
void RowWriter::closed(std::size_t file, Outcome outcome) {
  try {
    if (outcome == Outcome::ok) return hash_overtaken(file);
    std::vector<PlacedPart> ready;
    bool is_writer = false;
    std::size_t written = 0;
    or_lose(ready, written, [&] {
      {
        const std::lock_guard lock(mutex_);
        // No more rows are written, so those of an earlier output need not be copied.
        if (is_over_ && uses_.plan.is_update) return;
        overtaken_count_ -= overtaken_.erase(file);
        uses_.statistics.drop(file);
        order_.closed(file, ready);
        is_writer = admit(ready);
      }
      write(ready, is_writer, written);
    });
    drop_lost();
  } catch (...) {
    keep_error();
  }
}

// Keeps the error that is being handled.
void RowWriter::keep_error() {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::current_exception();
}

void RowWriter::written(std::size_t first, std::size_t most, std::vector<Written>& out) {
  const std::lock_guard lock(mutex_);
  std::size_t end = std::min({first + most, order_.current(), lost_from_});
  if (!copying_.empty()) end = std::min(end, *copying_.begin());
  if (first >= end) return;
  for (std::size_t i = first, section = uses_.sections.of(first); i < end; ++i) {
    if (overtaken_.contains(i)) return;
    while (i >= uses_.sections.end(section)) ++section;
    const std::int64_t rows = order_.stays(i) ? 0 : order_.rows(i);
    out.push_back({section, order_.is_kept(i), rows, rows > 0 ? hashes_[i] : 0, order_.about(i)});
  }
}

// Handles parts that have just got their position, in whichever call. Called with the mutex held;
// returns as queue() does.
bool RowWriter::admit(std::vector<PlacedPart>& ready) {
  // Roll back first, before new rows are written over those of a failed file.
  for (const RowOrder::Row& r : order_.take_rolled_back()) uses_.files[r.section]->roll_back(r.row);
  note_copying(ready);
  finish_values(ready);
  hash_blocks(ready);
  uses_.statistics.close(ready);
  return queue(ready);
}

// Called with the mutex held. Returns true if the caller is the writer from now on. Where a second
// writer would only wait for the first, ready parts go to that one, unless it has enough: rows that
// wait leave the cache.
bool RowWriter::queue(std::vector<PlacedPart>& ready) {
  if (ready.empty()) return false;
  const MelPart* part = ready.front().part.get();  // none: rows of an earlier output, as stored
  if (!uses_.files.front()->is_serial(part != nullptr ? part->type : uses_.target.dtype))
    return false;
  if (!writing_) return writing_ = true;
  if (queued_.size() + ready.size() <= kMostQueued) {
    std::move(ready.begin(), ready.end(), std::back_inserter(queued_));
    ready.clear();
  }
  return false;
}

// `written` counts the parts of `ready` that are written.
void RowWriter::write(std::vector<PlacedPart>& ready, bool is_writer, std::size_t& written) {
  std::vector<RowRange> ranges;
  while (!ready.empty()) {
    for (std::size_t i = 0; i < ready.size();) {
      const std::size_t section = ready[i].section;
      ranges.clear();
      std::int64_t rows = 0;
      for (; i < ready.size() && ready[i].section == section && ready[i].part &&
             values_of(rows) * size_of(uses_.target.dtype) < kMostAtOnce;
           ++i) {
        const MelPart& part = *ready[i].part;
        if (part.row_count == 0 || part.pending) continue;
        ranges.push_back({ready[i].row(), part.data->data(), part.row_count, part.type});
        rows += part.row_count;
        if (!ready[i].is_whole()) continue;
        hashes_[ready[i].file] = RowHash::of(part.data->data(), values_of(part.row_count),
                                             part.type, uses_.target.dtype);
      }
      uses_.files[section]->write(ranges);
      bytes_.fetch_add(values_of(rows) * size_of(uses_.target.dtype), std::memory_order_relaxed);
      written = i;
      if (i < ready.size() && !ready[i].part) i = copy(ready, i);
    }
    ready.clear();  // may close files' records, and so re-enter through closed()
    written = 0;
    if (!is_writer) return;
    const std::lock_guard lock(mutex_);
    ready.swap(queued_);
    writing_ = !ready.empty();
  }
}

// Called with the mutex held, or by the only thread.
void RowWriter::note_copying(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready)
    if (!p.part) copying_.insert(p.file);
}

// Copies rows of an existing file; returns the index of the part behind them.
std::size_t RowWriter::copy(const std::vector<PlacedPart>& ready, std::size_t from) {
  const std::size_t end = copy_planned(uses_.plan, ready, from, *uses_.files[ready[from].section],
                                       uses_.target.checkpoint.count);
  std::int64_t rows = 0;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = from; i < end; ++i) {
      copying_.erase(ready[i].file);
      rows += ready[i].file_rows;
    }
  }
  bytes_.fetch_add(values_of(rows) * size_of(uses_.target.dtype), std::memory_order_relaxed);
  uses_.advanced();
  return end;
}

std::size_t RowWriter::values_of(std::int64_t rows) const {
  return static_cast<std::size_t>(rows) * uses_.info.values_per_row();
}

// Hashes rows of files that come in blocks, mostly in order; called with the mutex held.
void RowWriter::hash_blocks(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready) {
    if (!p.part || p.part->pending || p.is_whole()) continue;
    if (p.file != hashed_) {
      hash_.reset();
      hashed_ = p.file;
      hashed_rows_ = 0;
    }
    if (p.part->row_count > 0 && p.begin + p.part->first_row != hashed_rows_) {
      if (overtaken_.try_emplace(p.file, Place{p.section, p.file_row}).second) ++overtaken_count_;
    } else {
      hash_.add(p.part->data->data(), values_of(p.part->row_count), p.part->type,
                uses_.target.dtype);
      hashed_rows_ += p.part->row_count;
    }
    if (p.file_rows >= 0) hashes_[p.file] = hash_.value();
  }
}

// Called when all of the file's rows are written.
void RowWriter::hash_overtaken(std::size_t file) {
  if (overtaken_count_ == 0) return;
  Place at;
  std::int64_t rows = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = overtaken_.find(file);
    if (it == overtaken_.end()) return;
    at = it->second;
    rows = order_.rows(file);
  }
  hashes_[file] = uses_.files[at.section]->hash_written(at.row, rows);
  const std::lock_guard lock(mutex_);
  overtaken_.erase(file);
  --overtaken_count_;
}

// Finishes values that depend on a whole file: its rows go to a temporary file until its last block
// has arrived. Called with the mutex held; such files are long and rare.
void RowWriter::finish_values(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready) {
    if (!p.part || !p.part->pending) continue;
    RowPartFile& file = *uses_.files[p.section];
    const auto columns = static_cast<std::uint64_t>(p.part->pending_columns);
    if (p.part->row_count > 0)
      file.spill().put(p.part->values(),
                       static_cast<std::size_t>(p.part->row_count) * columns * sizeof(float),
                       static_cast<std::uint64_t>(p.part->first_row) * columns * sizeof(float));
    if (p.rows <= 0) continue;
    RowHash hash;
    finish_spilled(file, *p.part->pending, p.rows, p.part->pending_columns,
                   [&](std::int64_t row, const float* values, std::int64_t n) {
                     file.write(p.file_row + p.begin + row, values, n);
                     hash.add(values, values_of(n), NumberType::float32, uses_.target.dtype);
                     bytes_ += values_of(n) * size_of(uses_.target.dtype);
                     if (auto error = unstorable(values, row, n, uses_.info, uses_.target.dtype))
                       p.origin.stream->fail(stage_, std::move(*error), p.origin.block);
                     else
                       uses_.statistics.sum(p.file, p.begin + row, n, values);
                   });
    // A file with sub-items has more rows than these; it is hashed as a whole later.
    if (p.origin.sub_item == nullptr)
      hashes_[p.file] = hash.value();
    else if (overtaken_.try_emplace(p.file, Place{p.section, p.file_row}).second)
      ++overtaken_count_;
  }
}

void RowWriter::close_gaps(std::size_t section) {
  std::int64_t from = order_.begin_of(section), to = from;
  for (std::size_t i = uses_.sections.first(section); i < uses_.sections.end(section); ++i) {
    const std::int64_t rows = order_.rows(i);
    if (rows == 0 || order_.stays(i)) continue;
    if (ledger_.outcome(i) != Outcome::ok) {
      order_.forget(i);
      uses_.statistics.mark_stale(i);
      ++late_files_;
    } else {
      if (from != to) uses_.files[section]->move_rows(from, to, rows);
      to += rows;
    }
    from += rows;
  }
}

}  // namespace melflow
