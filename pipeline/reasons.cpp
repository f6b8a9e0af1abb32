#include "pipeline/reasons.h"

#include <fmt/format.h>

#include <algorithm>

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

void Reasons::add(const Ledger::Entry& entry) {
  Reason& reason = reasons_[fmt::format("{} {} {}", entry.stage, static_cast<int>(entry.outcome),
                                        without_numbers(entry.reason))];
  if (reason.count++ == 0) reason.first = entry;
  reason.is_example = reason.is_example || entry.reason != reason.first.reason;
}

std::vector<Reasons::Reason> Reasons::sorted() const {
  std::vector<Reason> out;
  out.reserve(reasons_.size());
  for (const auto& [key, reason] : reasons_) out.push_back(reason);
  std::stable_sort(out.begin(), out.end(),
                   [](const Reason& a, const Reason& b) { return a.count > b.count; });
  return out;
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
    out +=
        fmt::format("by {}: {}{}", r.first.stage, r.is_example ? "such as " : "", r.first.reason);
  }
  return others == 0 ? out : out + fmt::format("; {} for other reasons", others);
}

}  // namespace melflow
