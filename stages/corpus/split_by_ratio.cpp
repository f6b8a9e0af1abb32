#include "stages/corpus/split_by_ratio.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace melflow {

std::string OptionType<SplitShares>::parse(const Value& v, SplitShares& out) {
  if (v.is_list() && (v.items().size() == 2 || v.items().size() == 3)) {
    const char* const names[] = {"train", v.items().size() == 3 ? "val" : "test", "test"};
    std::string meant;
    for (std::size_t i = 0; i < v.items().size(); ++i)
      meant += fmt::format("{}{}: {}", i == 0 ? "" : ", ", names[i], excerpt(v.items()[i].text()));
    return fmt::format("a list has no names for the splits; write {{{}}}", meant);
  }
  if (v.is_map() && v.entries().empty())
    return "has no share; write some, such as {train: 80, test: 20}";
  if (!v.is_map()) return detail::is_not(v, "a map of shares such as {train: 80, test: 20}");
  SplitShares shares;
  double sum = 0;
  bool are_whole = true;  // proportions, such as 80 and 20, or 4 and 1
  std::size_t percents = 0;
  for (const Value::Entry& e : v.entries()) {
    const auto read = detail::number_and_unit(e.value);
    if (!read || (!read->second.empty() && read->second != "%"))
      return excerpt(e.key) + ": " + detail::is_not(e.value, "a share such as 0.8, 80% or 80");
    const bool is_percent = !read->second.empty();
    const double share = is_percent ? read->first / 100 : read->first;
    if (!(share > 0))
      return fmt::format("{0}: a share is more than 0; omit {0} for no such split", excerpt(e.key));
    percents += is_percent ? 1 : 0;
    are_whole = are_whole && !is_percent && share == std::floor(share);
    sum += share;
    shares.list.emplace_back(e.key, share);
  }
  if (shares.list.size() > kMostShares)
    return fmt::format("{} splits, there may be {}", shares.list.size(), kMostShares);
  if (percents > 0 && percents < shares.list.size() && std::abs(sum - 1) > 1e-6)
    return "some shares have % and some do not; write all with %, or none";
  if (are_whole)
    for (auto& [name, share] : shares.list) share /= sum;
  else if (std::abs(sum - 1) > 1e-6)
    return fmt::format(
        "the shares add up to {}, not to 1; write fractions of 1 (0.8 and 0.2), percentages of "
        "100% (80% and 20%), or whole numbers (80 and 20)",
        number_text(static_cast<float>(sum)));
  out = std::move(shares);
  return {};
}

Value OptionType<SplitShares>::echo(const SplitShares& v) {
  Value out = Value::map({});
  for (const auto& [name, share] : v.list) out.set(name, Value::scalar(number_text(share)));
  return out;
}

namespace {

// Files that stay together: `count` neighbours from `first` on in the order of all files.
struct Group {
  std::uint64_t key = 0;
  std::size_t first = 0, count = 0;
  std::int8_t split = -1;  // the split that the group has already, -1: none
};

// The numbers of the files, sorted by key and label.
std::vector<std::size_t> order_of(std::span<const SplitUnit> files) {
  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(files[a].key, files[a].label, a) < std::tie(files[b].key, files[b].label, b);
  });
  return order;
}

// Puts groups that have a split first, then large groups before small ones, since the small ones
// even out what the shares still lack.
std::vector<Group> groups_of(std::span<const SplitUnit> files,
                             const std::vector<std::size_t>& order) {
  std::vector<Group> out;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const SplitUnit& file = files[order[at]];
    if (out.empty() || out.back().key != file.key) out.push_back({file.key, at});
    ++out.back().count;
    out.back().split = std::max(out.back().split, file.split);
  }
  std::sort(out.begin(), out.end(), [](const Group& a, const Group& b) {
    const bool a_is_free = a.split < 0, b_is_free = b.split < 0;
    return std::tie(a_is_free, b.count, a.key) < std::tie(b_is_free, a.count, b.key);
  });
  return out;
}

std::size_t largest_of(const SplitShares& shares) {
  const auto it =
      std::max_element(shares.list.begin(), shares.list.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return static_cast<std::size_t>(it - shares.list.begin());
}

// Assigns one group after another to the split that leaves all splits nearest to their shares,
// overall and for each of the group's labels: where the sum of squared deviations [files], each
// divided by the split's share, grows least.
class Dealer {
 public:
  Dealer(std::span<const SplitUnit> files, const SplitShares& shares)
      : shares_(shares), largest_(largest_of(shares)) {
    all_.have.resize(shares.list.size());
    for (const SplitUnit& f : files) {
      const auto label = place_of(f.label);
      if (label >= labels_.size()) labels_.resize(label + 1, {0, all_.have});
      ++labels_[label].whole;
      ++all_.whole;
    }
  }

  using Counts = std::vector<std::pair<std::int32_t, double>>;  // number of files of each label

  std::size_t deal(const Counts& group) {
    std::size_t best = largest_;
    double least = is_new(group) ? -std::numeric_limits<double>::infinity() : growth(group, best);
    for (std::size_t s = 0; s < shares_.list.size(); ++s) {
      const double g = growth(group, s);
      if (g < least) best = s, least = g;
    }
    put(group, best);
    return best;
  }

  [[nodiscard]] bool is_empty(std::size_t split) const { return all_.have[split] == 0; }
  /// The cost of moving a group from one split to another; infinite where the first would then be
  /// empty, or the largest one would lack a label.
  [[nodiscard]] double cost_of_move(const Counts& group, std::size_t from, std::size_t to) const {
    double all = 0, sum = 0;
    bool may_leave = true;
    for (const auto& [label, n] : group) {
      may_leave = may_leave && (from != largest_ || of(label).have[from] > n);
      sum += growth(of(label), -n, from) + growth(of(label), n, to);
      all += n;
    }
    if (!may_leave || all_.have[from] <= all) return std::numeric_limits<double>::infinity();
    return sum + growth(all_, -all, from) + growth(all_, all, to);
  }
  void move(const Counts& group, std::size_t from, std::size_t to) {
    put(group, to);
    for (const auto& [label, n] : group) {
      of(label).have[from] -= n;
      all_.have[from] -= n;
    }
  }

  void put(const Counts& group, std::size_t split) {
    for (const auto& [label, n] : group) {
      of(label).have[split] += n;
      all_.have[split] += n;
    }
  }

 private:
  struct Count {
    double whole = 0;
    std::vector<double> have;  // files in each split
  };
  // The index of a label in labels_; -1, no label, comes first.
  static std::size_t place_of(std::int32_t label) { return static_cast<std::size_t>(label) + 1; }
  Count& of(std::int32_t label) { return labels_[place_of(label)]; }
  [[nodiscard]] const Count& of(std::int32_t label) const { return labels_[place_of(label)]; }

  // Whether the group has a label that the largest split lacks.
  [[nodiscard]] bool is_new(const Counts& group) const {
    return std::any_of(group.begin(), group.end(),
                       [&](const auto& l) { return of(l.first).have[largest_] == 0; });
  }
  [[nodiscard]] double growth(const Counts& group, std::size_t s) const {
    double all = 0, sum = 0;
    for (const auto& [label, n] : group) {
      sum += growth(of(label), n, s);
      all += n;
    }
    return sum + growth(all_, all, s);
  }
  [[nodiscard]] double growth(const Count& c, double more, std::size_t s) const {
    const double share = shares_.list[s].second;
    return more * (2 * (c.have[s] - share * c.whole) + more) / share;
  }

  const SplitShares& shares_;
  std::size_t largest_;
  Count all_;
  std::vector<Count> labels_;  // the first is for files without a label
};

}  // namespace

std::vector<std::int8_t> split_by_key(std::span<const SplitUnit> files, const SplitShares& shares) {
  std::unordered_map<std::uint64_t, std::int8_t> kept;
  for (const SplitUnit& f : files)
    if (f.split >= 0) kept.emplace(f.key, f.split);
  std::vector<std::int8_t> out;
  out.reserve(files.size());
  for (const SplitUnit& f : files) {
    if (const auto it = kept.find(f.key); it != kept.end()) {
      out.push_back(it->second);
      continue;
    }
    // 53 bits of the key as a number from 0 to 1.
    const double at = static_cast<double>(f.key >> 11) * 0x1p-53;
    double end = 0;
    std::size_t s = 0;
    while (s + 1 < shares.list.size() && at >= (end += shares.list[s].second)) ++s;
    out.push_back(static_cast<std::int8_t>(s));
  }
  return out;
}

std::vector<std::int8_t> split_by_stratum(std::span<const SplitUnit> files,
                                          const SplitShares& shares) {
  const std::vector<std::size_t> order = order_of(files);
  const auto counts_of = [&](const Group& g) {
    Dealer::Counts counts;
    for (std::size_t i = g.first; i < g.first + g.count; ++i) {
      const std::int32_t label = files[order[i]].label;
      if (counts.empty() || counts.back().first != label) counts.emplace_back(label, 0);
      ++counts.back().second;
    }
    return counts;
  };
  Dealer dealer(files, shares);
  const std::vector<Group> groups = groups_of(files, order);
  std::vector<std::size_t> split_of;
  split_of.reserve(groups.size());
  for (const Group& g : groups) {
    const Dealer::Counts counts = counts_of(g);
    if (g.split >= 0) dealer.put(counts, static_cast<std::size_t>(g.split));
    split_of.push_back(g.split < 0 ? dealer.deal(counts) : static_cast<std::size_t>(g.split));
  }
  // A split smaller than the smallest groups may get none by dealing: it then gets the group that
  // costs least.
  for (std::size_t s = 0; s < shares.list.size(); ++s) {
    if (!dealer.is_empty(s)) continue;
    double least = std::numeric_limits<double>::infinity();
    std::size_t best = groups.size();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].split >= 0) continue;
      const double cost = dealer.cost_of_move(counts_of(groups[g]), split_of[g], s);
      if (cost < least) best = g, least = cost;
    }
    if (best == groups.size()) continue;
    dealer.move(counts_of(groups[best]), split_of[best], s);
    split_of[best] = s;
  }
  std::vector<std::int8_t> out(files.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t i = groups[g].first; i < groups[g].first + groups[g].count; ++i)
      out[order[i]] = static_cast<std::int8_t>(split_of[g]);
  return out;
}

}  // namespace melflow
