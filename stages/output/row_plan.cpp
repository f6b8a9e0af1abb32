#include "stages/output/row_plan.h"

#include <algorithm>

namespace melflow {

const FeatureFile::Remark* RowGiver::remark(std::size_t entry) const {
  const auto it = remarks_.find(static_cast<std::int64_t>(entry));
  return it == remarks_.end() ? nullptr : it->second;
}

void RowGiver::note_remarks() {
  for (const FeatureFile::Remark& remark : file().remarks()) remarks_.emplace(remark.file, &remark);
}

const char* to_text(PlannedRange::Found found) {
  static constexpr const char* kTexts[] = {"new",
                                           "unchanged",
                                           "failed before",
                                           "skipped before",
                                           "not_run before",
                                           "damaged",
                                           "not there any more",
                                           "changed (size)",
                                           "changed (modification time)",
                                           "changed (content)",
                                           "without a hash before"};
  return kTexts[static_cast<std::size_t>(found)];
}

const PlannedRange& RowPlan::Section::of(std::size_t file) const {
  return *std::partition_point(ranges.begin(), ranges.end(),
                               [file](const PlannedRange& r) { return r.end <= file; });
}

bool RowPlan::is_in_place() const {
  return is_update && std::all_of(sections.begin(), sections.end(), [](const Section& section) {
           return section.in_place || section.hash.empty();
         });
}

void RowPlan::Section::add(std::size_t file, PlannedRange::From from, PlannedRange::Found found,
                           const std::shared_ptr<RowGiver>& giver, std::size_t entry) {
  if (!ranges.empty()) {
    PlannedRange& last = ranges.back();
    if (last.end == file && last.from == from && last.found == found && last.giver == giver &&
        (giver == nullptr || last.entry_of(file) == entry)) {
      ++last.end;
      return;
    }
  }
  ranges.push_back({file, file + 1, from, found, giver, entry});
}

std::size_t copy_planned(const RowPlan& plan, const std::vector<PlacedPart>& ready,
                         std::size_t from, RowPartFile& to, std::uint64_t most) {
  const std::size_t section = ready[from].section;
  const RowPlan::Section& planned = plan.sections[section];
  const PlannedRange* range = &planned.of(ready[from].file);
  RowGiver& giver = *range->giver;
  std::vector<std::size_t> entries;
  std::int64_t begin = 0, count = 0;
  std::size_t next = from;
  for (; next < ready.size() && !ready[next].part && ready[next].section == section; ++next) {
    const std::size_t file = ready[next].file;
    if (file >= range->end) range = &planned.of(file);
    if (range->giver.get() != &giver) break;
    const std::size_t entry = range->entry_of(file);
    const std::int64_t row = giver.entry(entry).offset;
    if (entries.empty()) begin = row;
    if (row != begin + count ||
        (!entries.empty() && static_cast<std::uint64_t>(count) * to.row_bytes() >= most))
      break;
    entries.push_back(entry);
    count += ready[next].file_rows;
  }
  giver.copy(entries, to, ready[from].file_row);
  return next;
}

}  // namespace melflow
