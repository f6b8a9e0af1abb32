// Items that leave a node by several outputs, and branches of an item that meet again.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/run/compose.h"
#include "tests/support/problems.h"
#include "tests/support/watchdog.h"

namespace melflow::split_join_test {
namespace {

struct Text {
  static constexpr const char* kName = "text";
  std::string text;
  [[nodiscard]] std::size_t bytes() const { return text.size(); }
  [[nodiscard]] std::size_t rows() const { return 1; }
};
struct Number {
  static constexpr const char* kName = "number";
  std::size_t value = 0;
  [[nodiscard]] std::size_t bytes() const { return sizeof(value); }
  [[nodiscard]] std::size_t rows() const { return 1; }
};

constexpr std::size_t kItems = 300;

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kItems; ++i) out.push_back(fmt::format("item{:03}", i));
  return out;
}

// "item7" and the like, of some 10 bytes.
Compose items() {
  Compose graph(Registry{});
  graph.source<Text>(
      "items", names(), [](std::size_t i) { return Text{names()[i]}; }, 64);
  return graph;
}

using Parts = std::pair<std::optional<Text>, std::optional<Number>>;

std::size_t number_of(const std::string& text) { return std::stoul(text.substr(4)); }

}  // namespace

TEST_CASE("split: an item goes to the outputs by which it leaves, and is accounted for in all") {
  const test::Watchdog watchdog("split: outputs");
  for (const int workers : {1, 2, 5}) {
    CAPTURE(workers);
    std::vector<std::size_t> texts, numbers;
    Compose graph = items();
    graph
        .split<Text, Text, Number>(
            "parts", "items",
            [](const Text& t) -> Parts {
              const std::size_t i = number_of(t.text);
              Parts out{t, Number{i}};
              if (i % 4 == 1 || i % 4 == 3) out.first.reset();
              if (i % 4 == 2 || i % 4 == 3) out.second.reset();
              return out;
            },
            2)
        .sink<Text>("texts", "parts.first",
                    [&](const Text& t) { texts.push_back(number_of(t.text)); })
        .sink<Number>("numbers", "parts.second",
                      [&](const Number& n) { numbers.push_back(n.value); });
    graph.spec().workers = workers;
    std::vector<Remark> remarks;
    const RunReport report = graph.run(&remarks);
    CHECK(report.ending == Ending::complete);
    CHECK(report.counts.ok == kItems / 4 * 3);
    CHECK(report.counts.skipped == kItems / 4);
    REQUIRE(remarks.size() == kItems / 4);
    CHECK(remarks[0].index == 3);
    CHECK(remarks[0].entry.reason == "leaves parts by other outputs");
    std::sort(texts.begin(), texts.end());
    std::sort(numbers.begin(), numbers.end());
    std::vector<std::size_t> expected_texts, expected_numbers;
    for (std::size_t i = 0; i < kItems; ++i) {
      if (i % 4 == 0 || i % 4 == 2) expected_texts.push_back(i);
      if (i % 4 == 0 || i % 4 == 1) expected_numbers.push_back(i);
    }
    CHECK(texts == expected_texts);
    CHECK(numbers == expected_numbers);
  }
}

TEST_CASE("join: blocks of an item meet by their numbers, however far one branch is ahead") {
  const test::Watchdog watchdog("join: blocks");
  for (const int workers : {1, 2, 5})
    for (const int queue : {1, 16}) {
      CAPTURE(workers);
      CAPTURE(queue);
      std::map<std::string, int> seen;
      Compose graph = items();
      graph
          .many<Text, Text>(
              "variants", "items",
              [](const Text& t) {
                std::vector<Text> out;
                for (std::size_t k = 0; k <= number_of(t.text) % 5; ++k)
                  out.push_back({fmt::format("{} variant {}", t.text, k)});
                return out;
              },
              20)
          .split<Text, Text, Number>(
              "parts", "variants",
              [](const Text& t) { return std::pair(t, Number{t.text.size()}); }, 2)
          .map<Text, Text>("slow", "parts.first", [](const Text& t) { return Text{t.text + "."}; },
                           2, {{"queue", queue}, {"concurrency", 1}})
          .map<Text, Text>(
              "slower", "slow", [](const Text& t) { return Text{t.text + "."}; }, 2)
          .map<Number, Number>("quick", "parts.second",
                               [](const Number& n) { return Number{n.value + 2}; })
          .join<Number, Text, Text>(
              "both", "quick", "slower",
              [](const Number& n, const Text& t) {
                return Text{fmt::format("{} {}", t.text, n.value == t.text.size())};
              },
              4)
          .sink<Text>("out", "both", [&](const Text& t) { ++seen[t.text]; });
      graph.spec().workers = workers;
      std::vector<Remark> remarks;
      const RunReport report = graph.run(&remarks);
      for (const Remark& m : remarks) FAIL_CHECK(m.name << ": " << m.entry.reason);
      CHECK(report.ending == Ending::complete);
      CHECK(report.counts.ok == kItems);
      std::map<std::string, int> expected;
      for (std::size_t i = 0; i < kItems; ++i)
        for (std::size_t k = 0; k <= i % 5; ++k)
          expected[fmt::format("item{:03} variant {}.. true", i, k)] = 1;
      CHECK(seen == expected);
    }
}

TEST_CASE("join: a branch that alone cuts items into blocks is refused, and so is a single input") {
  const auto problems = [](const char* first, const char* second) {
    Compose graph = items();
    graph.many<Text, Text>("variants", "items", [](const Text& t) { return std::vector{t}; })
        .map<Text, Text>("other", "items", [](const Text& t) { return t; })
        .join<Text, Text, Text>("both", first, second, [](const Text& a, const Text&) { return a; })
        .sink<Text>("out", "both", [](const Text&) {});
    return test::problems_in([&] { return graph.run(); });
  };
  CHECK(problems("variants", "other").find("only some of its inputs come by variants") !=
        std::string::npos);
  CHECK(problems("other", "other").find("names other twice; name two different nodes") !=
        std::string::npos);
}

}  // namespace melflow::split_join_test
