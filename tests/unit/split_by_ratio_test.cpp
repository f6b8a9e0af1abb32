#include "stages/corpus/split_by_ratio.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/support/printing.h"

using namespace melflow;

namespace {

const SplitShares kShares{{{"train", 0.8}, {"val", 0.1}, {"test", 0.1}}};

std::vector<SplitUnit> files_of(std::mt19937_64& random, std::size_t count, int labels,
                                std::size_t groups) {
  std::vector<std::uint64_t> keys(groups == 0 ? count : groups);
  for (std::uint64_t& k : keys) k = random();
  std::vector<SplitUnit> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back({groups == 0 ? keys[i] : keys[random() % groups],
                   labels == 0 ? -1 : static_cast<std::int32_t>(random() % std::size_t(labels))});
  return out;
}

double count_in(const std::vector<std::int8_t>& splits, std::size_t split) {
  return static_cast<double>(
      std::count(splits.begin(), splits.end(), static_cast<std::int8_t>(split)));
}

}  // namespace

TEST_CASE("split by stratum: the shares are met to a file, in all and within every label") {
  std::mt19937_64 random(1);
  for (const int labels : {0, 1, 2, 7, 40}) {
    const std::vector<SplitUnit> files = files_of(random, 5000, labels, 0);
    const std::vector<std::int8_t> splits = split_by_stratum(files, kShares);
    CAPTURE(labels);
    for (std::size_t s = 0; s < 3; ++s)
      CHECK(std::abs(count_in(splits, s) - kShares.list[s].second * 5000) <= 1);
    std::map<std::int32_t, std::vector<double>> of_label;
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::vector<double>& n = of_label[files[i].label];
      n.resize(4);
      ++n[std::size_t(splits[i])];
      ++n[3];
    }
    for (const auto& [label, n] : of_label)
      for (std::size_t s = 0; s < 3; ++s) {
        CAPTURE(label);
        CHECK(std::abs(n[s] - kShares.list[s].second * n[3]) <= 2);
      }
  }
}

TEST_CASE("split by stratum: files of one key stay together, and shares are still near") {
  std::mt19937_64 random(2);
  const std::vector<SplitUnit> files = files_of(random, 5000, 5, 200);
  const std::vector<std::int8_t> splits = split_by_stratum(files, kShares);
  std::map<std::uint64_t, std::set<std::int8_t>> of_key;
  for (std::size_t i = 0; i < files.size(); ++i) of_key[files[i].key].insert(splits[i]);
  for (const auto& [key, all] : of_key) CHECK(all.size() == 1);
  for (std::size_t s = 0; s < 3; ++s)  // a group has 25 files
    CHECK(std::abs(count_in(splits, s) - kShares.list[s].second * 5000) <= 25);
}

TEST_CASE("split by stratum: every label is in the largest split, however rare it is") {
  std::mt19937_64 random(3);
  for (const std::size_t count : {1U, 2U, 3U, 30U}) {
    std::vector<SplitUnit> files;
    for (std::int32_t label = -1; label < 20; ++label)
      for (std::size_t i = 0; i < count; ++i) files.push_back({random(), label});
    const SplitShares shares{{{"test", 0.3}, {"train", 0.7}}};
    const std::vector<std::int8_t> splits = split_by_stratum(files, shares);
    std::set<std::int32_t> in_train;
    for (std::size_t i = 0; i < files.size(); ++i)
      if (splits[i] == 1) in_train.insert(files[i].label);
    CHECK(in_train.size() == 21);
  }
}

TEST_CASE("split by stratum: the same set of files in another order gives the same splits") {
  std::mt19937_64 random(4);
  for (const std::size_t groups : {0U, 50U}) {
    std::vector<SplitUnit> files = files_of(random, 1000, 3, groups);
    const std::vector<std::int8_t> splits = split_by_stratum(files, kShares);
    std::map<std::uint64_t, std::int8_t> of_key;
    for (std::size_t i = 0; i < files.size(); ++i) of_key[files[i].key] = splits[i];
    std::shuffle(files.begin(), files.end(), random);
    const std::vector<std::int8_t> again = split_by_stratum(files, kShares);
    for (std::size_t i = 0; i < files.size(); ++i) CHECK(of_key[files[i].key] == again[i]);
  }
}

TEST_CASE("split by key: shares in expectation, and added files move no other") {
  std::mt19937_64 random(5);
  const std::vector<SplitUnit> files = files_of(random, 20000, 3, 0);
  const std::vector<std::int8_t> splits = split_by_key(files, kShares);
  for (std::size_t s = 0; s < 3; ++s) {
    const double p = kShares.list[s].second;
    CHECK(std::abs(count_in(splits, s) - p * 20000) <= 5 * std::sqrt(p * (1 - p) * 20000));
  }
  const std::vector<SplitUnit> some(files.begin() + 100, files.begin() + 500);
  CHECK(split_by_key(some, kShares) ==
        std::vector<std::int8_t>(splits.begin() + 100, splits.begin() + 500));
  CHECK(split_by_key(std::vector<SplitUnit>{{0, 0}, {~std::uint64_t{0}, 0}}, kShares) ==
        std::vector<std::int8_t>{0, 2});
}

TEST_CASE("split shares: what is a share, and what not") {
  const auto parse = [](std::vector<std::pair<std::string, std::string>> shares) {
    Value map = Value::map({});
    for (const auto& [name, share] : shares) map.set(name, Value::scalar(share));
    SplitShares out;
    return OptionType<SplitShares>::parse(map, out);
  };
  CHECK(parse({{"a", "0.5"}, {"b", "0.5"}}) == "");
  CHECK(parse({{"a", "1"}}) == "");
  CHECK(parse({{"a", "0.1"}, {"b", "0.2"}, {"c", "0.7"}}) == "");
  CHECK(parse({{"a", "0.5"}, {"b", "0.4"}}) == "the shares add up to 0.9, not to 1");
  CHECK(parse({{"a", "1"}, {"b", "0"}}) == "b: a share is more than 0");
  CHECK(parse({{"a", "most"}}).starts_with("a: "));
  CHECK(parse({}) ==
        "a map found where splits and their shares are expected, such as {train: 0.8, test: 0.2}");
}
