#include "stages/output/rows/row_order.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "pipeline/base/value.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow {
namespace {

std::string entry_of(const SubItem& item, std::int64_t rows) {
  const auto number = [](auto n) { return Value::scalar(std::to_string(n)); };
  std::vector<Value::Entry> numbers;
  for (const SubItem* s = &item; s != nullptr; s = s->of.get())
    numbers.insert(numbers.begin(), {std::string(s->maker), number(s->number), {}});
  Value out = Value::map({{"rows", number(rows), {}}, {"number", Value::map(numbers), {}}});
  if (item.span)
    out.set("seconds", Value::list({number(item.span->first), number(item.span->second)}));
  return to_json(out);
}

}  // namespace

void keep_only_rows(const MelBatch& batch, const ItemContext& context) {
  for (std::size_t i = 0; i < batch.parts.size(); ++i)
    if (batch.parts[i] && batch.parts[i]->data)
      context.keep_only(i, batch.parts[i]->data->capacity());
}

RowOrder::RowOrder(std::size_t files, std::function<bool(std::size_t)> is_void,
                   std::vector<std::size_t> sections, std::size_t inputs)
    : is_void_(std::move(is_void)),
      counts_(inputs),
      begins_(sections.size(), 0),
      sections_(std::move(sections)),
      totals_(sections_.size(), 0),
      rows_(files, 0),
      audio_(files) {}

void RowOrder::set_about(std::size_t file, const AboutFile& about) {
  audio_[file] = about;
  results_.erase(file);
  if (!about.results.empty()) results_[file] = about.results;
}

void RowOrder::keep(std::size_t file, Kept how, std::int64_t rows, const AboutFile& about) {
  kept_.resize(rows_.size(), Kept::no);
  kept_[file] = how;
  rows_[file] = rows;
  set_about(file, about);
}

void RowOrder::stays(std::size_t file, std::int64_t row, std::int64_t rows,
                     const AboutFile& about) {
  keep(file, Kept::stays, rows, about);
  rows_begin_.emplace_hint(rows_begin_.end(), file, row);
}

void RowOrder::taken_over(std::size_t file, std::int64_t rows, const AboutFile& about) {
  keep(file, Kept::taken_over, rows, about);
}

void RowOrder::begin_at(std::size_t section, std::int64_t row) {
  begins_[section] = totals_[section] = row;
}

std::vector<std::int64_t> RowOrder::offsets() const {
  std::vector<std::int64_t> out;
  out.reserve(rows_.size());
  std::vector<std::int64_t> next = begins_;
  std::int64_t end = 0;  // of the previous file
  for (std::size_t i = 0, section = 0; i < rows_.size(); ++i) {
    while (section + 1 < sections_.size() && i >= sections_[section + 1]) {
      ++section;
      end = 0;
    }
    if (stays(i)) {
      out.push_back(rows_begin_.at(i));
    } else if (rows_[i] == 0) {
      out.push_back(end);  // wherever new rows begin
    } else {
      out.push_back(next[section]);
      next[section] += rows_[i];
    }
    end = out.back() + rows_[i];
  }
  return out;
}

void RowOrder::take(std::size_t file, std::shared_ptr<const MelPart> part, Origin origin,
                    std::vector<PlacedPart>& ready, std::size_t input) {
  // A file that was closed before its turn is noticed only here.
  advance(ready);
  if (file > current_) {
    waiting_[file].push_back({file, 0, 0, -1, std::move(part), std::move(origin), input});
  } else if (file == current_ && place_of(origin) > sub_item_) {
    waiting_[file].push_back({file, 0, 0, -1, std::move(part), std::move(origin), input});
  } else if (file == current_) {
    place({file, 0, 0, -1, std::move(part), std::move(origin), input}, ready);
    advance(ready);
  }
}

void RowOrder::place(PlacedPart in, std::vector<PlacedPart>& ready) {
  const MelPart& part = *in.part;
  Count& count = counts_[in.input];
  count.rows += part.row_count;
  if (part.last) {
    count.expected = part.first_row + part.row_count;
    count.sub_item = in.origin.sub_item;
    count.is_last = count.sub_item == nullptr || in.origin.last;
  }
  FileAudio& audio = audio_[in.file];
  audio.sample_rate = part.file.sample_rate;
  audio.frames = std::max(audio.frames, part.file.frames);
  if (part.file.measured != nullptr) audio.measured = part.file.measured;
  const auto is_complete = [](const Count& c) { return c.rows == c.expected; };
  in.section = section_;
  in.file_row = totals_[section_];
  in.begin = sub_begin_;
  if (is_complete(count)) {
    in.rows = count.rows;
    count.finished = part.pending ? part.pending->rows_out(count.rows) : count.rows;
    if (count.is_last) in.file_rows = sub_begin_ + count.finished;
  }
  ready.push_back(std::move(in));
  if (!std::all_of(counts_.begin(), counts_.end(), is_complete)) return;
  const Count& own = counts_.front();
  sub_begin_ += own.finished;
  if (own.sub_item != nullptr) {
    std::string& results = results_[current_];
    results += (results.empty() ? "[" : ", ") + entry_of(*own.sub_item, own.finished) +
               (own.is_last ? "]" : "");
  }
  if (own.is_last) {
    rows_[current_] = sub_begin_;
    totals_[section_] += sub_begin_;
    return next();
  }
  ++sub_item_;
  std::fill(counts_.begin(), counts_.end(), Count{});
}

void RowOrder::next() {
  std::fill(counts_.begin(), counts_.end(), Count{});
  sub_item_ = 0;
  sub_begin_ = 0;
  ++current_;
  if (section_ + 1 < sections_.size() && current_ == sections_[section_ + 1]) ++section_;
}

void RowOrder::resume(std::int64_t rows, const AboutFile& about) {
  if (!stays(current_)) {
    rows_[current_] = rows;
    set_about(current_, about);
    totals_[section_] += rows;
  }
  next();
}

void RowOrder::closed(std::size_t file, std::vector<PlacedPart>& ready) {
  waiting_.erase(file);
  if (file == current_) advance(ready);
}

void RowOrder::advance(std::vector<PlacedPart>& ready) {
  while (current_ < rows_.size()) {
    const std::size_t file = current_;
    if (!kept_.empty() && kept_[file] != Kept::no) {
      if (kept_[file] == Kept::taken_over) {
        ready.push_back({file, section_, totals_[section_], rows_[file], nullptr, {}});
        totals_[section_] += rows_[file];
      }
      next();
      continue;
    }
    if (is_void_(file)) {
      if (sub_begin_ + counts_.front().rows > 0)
        rolled_back_.push_back({section_, totals_[section_]});
      set_about(file, {});  // how much of it had arrived depends on chance
      next();
      continue;
    }
    const auto it = waiting_.find(file);
    if (it == waiting_.end()) return;
    std::vector<PlacedPart> parts = std::move(it->second);
    waiting_.erase(it);
    const std::size_t sub_item = sub_item_;
    for (PlacedPart& p : parts) {
      if (current_ != file) break;
      if (place_of(p.origin) == sub_item_)
        place(std::move(p), ready);
      else
        waiting_[file].push_back(std::move(p));
    }
    if (current_ == file && sub_item_ == sub_item) return;
  }
}

std::vector<PlacedPart> RowOrder::take_lost(int stage) {
  const auto it = waiting_.find(current_);
  if (it == waiting_.end()) return {};
  constexpr std::uint64_t kAnyBlock = ~std::uint64_t{0};
  const Stream* stream = it->second.front().origin.stream.get();
  if (stream == nullptr || !stream->is_lost_to(stage, kAnyBlock)) return {};
  std::vector<PlacedPart> out = std::move(it->second);
  waiting_.erase(it);
  return out;
}

std::vector<PlacedPart> RowOrder::take_waiting() {
  std::vector<PlacedPart> out;
  for (auto& [file, parts] : waiting_)
    std::move(parts.begin(), parts.end(), std::back_inserter(out));
  waiting_.clear();
  return out;
}

void RowOrder::forget(std::size_t file) {
  const auto behind = std::upper_bound(sections_.begin(), sections_.end(), file);
  totals_[static_cast<std::size_t>(behind - sections_.begin()) - 1] -= rows_[file];
  rows_[file] = 0;
  set_about(file, {});
}

}  // namespace melflow
