#include "stages/corpus/split_by_ratio.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/support/printing.h"

namespace melflow::split_by_ratio_test {
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
    for (const auto& label : of_label)
      for (std::size_t s = 0; s < 3; ++s) {
        CAPTURE(label.first);
        const std::vector<double>& n = label.second;
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

TEST_CASE("split by stratum: no split is empty where there are groups for all of them") {
  for (const std::vector<std::size_t>& sizes :
       {std::vector<std::size_t>{40, 30, 20, 10}, {50, 30, 20}, {10, 10, 10}, {1, 1, 1, 1, 1}}) {
    CAPTURE(sizes);
    std::vector<SplitUnit> files;
    for (std::size_t g = 0; g < sizes.size(); ++g) files.insert(files.end(), sizes[g], {g + 1, -1});
    const std::vector<std::int8_t> splits = split_by_stratum(files, kShares);
    for (std::size_t s = 0; s < 3; ++s) CHECK(count_in(splits, s) > 0);
    std::map<std::uint64_t, std::set<std::int8_t>> of_key;
    for (std::size_t i = 0; i < files.size(); ++i) of_key[files[i].key].insert(splits[i]);
    for (const auto& [key, all] : of_key) CHECK(all.size() == 1);
  }
  // Neither at the cost of a label that training would lack, nor by moving a group with a split.
  const std::vector<SplitUnit> labels{{1, 0}, {2, 1}, {3, 2}};
  CHECK(split_by_stratum(labels, kShares) == std::vector<std::int8_t>{0, 0, 0});
  const std::vector<SplitUnit> kept{{1, -1, 0}, {2, -1, 0}, {3, -1, 0}};
  CHECK(split_by_stratum(kept, kShares) == std::vector<std::int8_t>{0, 0, 0});
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
  const auto parse = [](const std::vector<std::pair<std::string, std::string>>& shares) {
    Value map = Value::map({});
    for (const auto& [name, share] : shares) map.set(name, Value::scalar(share));
    SplitShares out;
    return OptionType<SplitShares>::parse(map, out);
  };
  CHECK(parse({{"a", "0.5"}, {"b", "0.5"}}) == "");
  CHECK(parse({{"a", "1"}}) == "");
  CHECK(parse({{"a", "0.1"}, {"b", "0.2"}, {"c", "0.7"}}) == "");
  CHECK(parse({{"a", "0.5"}, {"b", "0.4"}}) ==
        "the shares add up to 0.9, not to 1; write fractions of 1 (0.8 and 0.2), percentages of "
        "100% (80% and 20%), or whole numbers (80 and 20)");
  CHECK(parse({{"a", "80%"}, {"b", "30%"}}).starts_with("the shares add up to 1.1, not to 1;"));
  CHECK(parse({{"a", "80%"}, {"b", "0.2"}}) == "");
  CHECK(parse({{"a", "80%"}, {"b", "10"}}) ==
        "some shares have % and some do not; write all with %, or none");
  CHECK(parse({{"a", "80 km"}}) == "a: '80 km' is not a share such as 0.8, 80% or 80");
  CHECK(parse({{"a", "1"}, {"b", "0"}}) == "b: a share is more than 0; omit b for no such split");
  CHECK(parse({{"a", "most"}}) == "a: 'most' is not a share such as 0.8, 80% or 80");
  CHECK(parse({}) == "has no share; write some, such as {train: 80, test: 20}");
}

TEST_CASE("split shares: whole numbers and percents are the shares they stand for") {
  const auto read = [](const std::vector<std::string>& texts) {
    Value map = Value::map({});
    for (const std::string& text : texts) map.set("s" + text, Value::scalar(text));
    SplitShares out;
    CHECK(OptionType<SplitShares>::parse(map, out) == "");
    std::vector<double> shares;
    for (const auto& [name, share] : out.list) shares.push_back(share);
    return shares;
  };
  CHECK(read({"80", "15", "5"}) == std::vector<double>{0.8, 0.15, 0.05});
  CHECK(read({"8", "1.0", "1"}) == std::vector<double>{0.8, 0.1, 0.1});
  CHECK(read({"80%", "12.5 %", "7.5%"}) == std::vector<double>{0.8, 0.125, 0.075});
  CHECK(read({"0.8", "0.15", "0.05"}) == std::vector<double>{0.8, 0.15, 0.05});
}

}  // namespace melflow::split_by_ratio_test
