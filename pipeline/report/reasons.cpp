#include "pipeline/report/reasons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace melflow {
namespace {

constexpr std::size_t kShown = 3;

std::string without_numbers(const std::string& reason) {
  std::string out;
  for (const char c : reason) {
    const bool is_number = (c >= '0' && c <= '9') || c == '.';
    if (!is_number || !out.ends_with('0')) out += is_number ? '0' : c;
  }
  return out;
}

}  // namespace

void Reasons::add(const Ledger::Entry& entry, const std::string& name) {
  Reason& reason = reasons_[fmt::format("{} {} {}", entry.stage, static_cast<int>(entry.outcome),
                                        without_numbers(entry.reason))];
  if (reason.count++ == 0) reason.first = entry;
  reason.is_example = reason.is_example || entry.reason != reason.first.reason;
  if (!name.empty() && reason.names.size() < kNames) reason.names.push_back(name);
}

std::vector<Reasons::Reason> Reasons::sorted() const {
  std::vector<Reason> out;
  out.reserve(reasons_.size());
  for (const auto& [key, reason] : reasons_) out.push_back(reason);
  std::stable_sort(out.begin(), out.end(),
                   [](const Reason& a, const Reason& b) { return a.count > b.count; });
  return out;
}

std::string nothing_ok_text(const Ledger& ledger, std::size_t items) {
  const Ledger::Counts c = ledger.counts();
  const auto why = [&](Outcome outcome) { return reasons_text(ledger, items, outcome); };
  const auto counted = [](std::size_t n, const std::string& reasons) {
    return fmt::format("({}){}{}", n, reasons.starts_with("by ") ? " " : ": ", reasons);
  };
  if (c.failed == c.found)
    return fmt::format("all files failed {}; correct the pipeline or the files, and run it again",
                       counted(c.found, why(Outcome::failed)));
  std::set<std::string> stages;
  for (std::size_t i = 0; i < items; ++i) {
    const Ledger::Entry entry = ledger.entry(i);
    const bool is_told = entry.outcome == Outcome::skipped || entry.outcome == Outcome::failed;
    if (is_told && !entry.stage.empty()) stages.insert(entry.stage);
  }
  return (c.failed == 0 ? "all files were skipped " + counted(c.found, why(Outcome::skipped))
                        : fmt::format("no file is ok: {} failed ({}), {} skipped ({})", c.failed,
                                      why(Outcome::failed), c.skipped, why(Outcome::skipped))) +
         "; change the files" +
         (stages.empty() ? "" : fmt::format(", or the options of {}", fmt::join(stages, ", ")));
}

std::string reasons_text(const Ledger& ledger, std::size_t items, Outcome outcome) {
  Reasons reasons;
  for (std::size_t i = 0; i < items; ++i)
    if (ledger.outcome(i) == outcome) reasons.add(ledger.entry(i));
  const std::vector<Reasons::Reason> all = reasons.sorted();
  std::string out;
  std::size_t others = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Reasons::Reason& r = all[i];
    if (i >= kShown) {
      others += r.count;
      continue;
    }
    out += out.empty() ? "" : "; ";
    if (all.size() > 1) out += fmt::format("{} ", r.count);
    if (!r.first.stage.empty()) out += fmt::format("by {}: ", r.first.stage);
    out += (r.is_example ? "such as " : "") + r.first.reason;
  }
  return others == 0 ? out : out + fmt::format("; {} for other reasons", others);
}

}  // namespace melflow
