#include "apps/python/joined_rows.h"

#include <algorithm>
#include <utility>

namespace melflow {

struct JoinedRows::Scratches final : RowReader::Scratch {
  std::vector<std::unique_ptr<RowReader::Scratch>> of;  // by part
};

JoinedRows::JoinedRows(std::vector<std::shared_ptr<const RowReader>> parts,
                       const std::vector<std::int64_t>& rows)
    : RowReader(parts.front()->type(), parts.front()->row_shape()), parts_(std::move(parts)) {
  std::uint64_t end = 0;
  for (const std::int64_t count : rows) ends_.push_back(end += static_cast<std::uint64_t>(count));
}

std::size_t JoinedRows::part_of(std::uint64_t row) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), row);
  return std::min(static_cast<std::size_t>(end - ends_.begin()), parts_.size() - 1);
}

RowReader::Range JoinedRows::within(std::size_t part, const Range& rows) const {
  return {rows.first - (part > 0 ? ends_[part - 1] : 0), rows.count};
}

std::vector<JoinedRows::Share> JoinedRows::shares_of(std::span<const Range> ranges) const {
  std::vector<Share> out(parts_.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::size_t part = part_of(ranges[i].first);
    out[part].ranges.push_back(within(part, ranges[i]));
    out[part].places.push_back(i);
  }
  return out;
}

std::unique_ptr<RowReader::Scratch> JoinedRows::scratch() const {
  auto out = std::make_unique<Scratches>();
  for (const auto& part : parts_) out->of.push_back(part->scratch());
  return out;
}

std::vector<std::size_t> JoinedRows::fetch(std::span<const Range> ranges,
                                           RowReader::Scratch& scratch, bool is_urgent) const {
  const auto& scratches = static_cast<const Scratches&>(scratch).of;
  const std::vector<Share> shares = shares_of(ranges);
  if (!is_urgent)  // all parts compute while the first one is waited for
    for (std::size_t part = 1; part < parts_.size(); ++part)
      if (!shares[part].ranges.empty()) parts_[part]->prefetch(shares[part].ranges);
  std::vector<std::size_t> lost;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    if (shares[part].ranges.empty()) continue;
    for (const std::size_t i :
         parts_[part]->fetch(shares[part].ranges, *scratches[part], is_urgent)) {
      lost.push_back(shares[part].places[i]);
      lost_in_ = part;
    }
  }
  std::sort(lost.begin(), lost.end());
  return lost;
}

void JoinedRows::drop(RowReader::Scratch& scratch) const {
  const auto& scratches = static_cast<const Scratches&>(scratch).of;
  for (std::size_t part = 0; part < parts_.size(); ++part) parts_[part]->drop(*scratches[part]);
}

void JoinedRows::prefetch(std::span<const Range> ranges) const {
  const std::vector<Share> shares = shares_of(ranges);
  for (std::size_t part = 0; part < parts_.size(); ++part)
    if (!shares[part].ranges.empty()) parts_[part]->prefetch(shares[part].ranges);
}

std::string JoinedRows::last_loss() const { return parts_[lost_in_]->last_loss(); }

// Rows that are asked for at once may be of several parts.
void JoinedRows::read(const Range& rows, std::byte* to, RowReader::Scratch& scratch) const {
  const auto& scratches = static_cast<const Scratches&>(scratch).of;
  for (Range left = rows; left.count > 0;) {
    const std::size_t part = part_of(left.first);
    const std::uint64_t there = std::min(left.count, ends_[part] - left.first);
    scratches[part]->streams = scratch.streams;
    parts_[part]->read(within(part, {left.first, there}), to, *scratches[part]);
    to += there * row_bytes();
    left = {left.first + there, left.count - there};
  }
}

void JoinedRows::confirm() const {
  for (const auto& part : parts_) part->confirm();
}

bool JoinedRows::is_ordered() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->is_ordered(); });
}

}  // namespace melflow
