// Graphs built in C++ from lambdas and registered stages.
#include "pipeline/run/compose.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/pipeline/test_stages.h"
#include "tests/support/problems.h"
#include "tests/support/watchdog.h"

namespace melflow::compose_test {

using test::Watchdog;

namespace {

struct Text {
  static constexpr const char* kName = "text";
  std::string content;
  [[nodiscard]] std::size_t bytes() const { return content.size(); }
  [[nodiscard]] std::size_t rows() const { return 1; }
};
struct Length {
  static constexpr const char* kName = "length";
  std::size_t value = 0;
  [[nodiscard]] std::size_t bytes() const { return sizeof(value); }
  [[nodiscard]] std::size_t rows() const { return 1; }
};

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back("text" + std::to_string(i));
  return out;
}

}  // namespace

TEST_CASE("compose: lambdas as stages, each item once, two ways from one") {
  const Watchdog watchdog("compose: lambdas");
  constexpr std::size_t kItems = 500;
  for (const int workers : {1, 2, 5}) {
    std::vector<std::size_t> lengths, again;
    Compose graph(Registry{});
    graph
        .source<Text>("texts", names(kItems),
                      [](std::size_t i) { return Text{std::string(i, 'x')}; })
        .map<Text, Length>(
            "length", "texts", [](const Text& t) { return Length{t.content.size()}; }, 8)
        .sink<Length>("all", "length", [&](const Length& n) { lengths.push_back(n.value); })
        .sink<Length>("also", "length", [&](const Length& n) { again.push_back(n.value); });
    graph.spec().workers = workers;
    const RunReport report = graph.run();
    CHECK(report.ending == Ending::complete);
    CHECK(report.counts.ok == kItems);
    std::sort(lengths.begin(), lengths.end());
    std::sort(again.begin(), again.end());
    REQUIRE(lengths.size() == kItems);
    for (std::size_t i = 0; i < kItems; ++i) CHECK(lengths[i] == i);
    CHECK(again == lengths);
    CHECK(report.stages.at(1).rows_out == kItems);
  }
}

TEST_CASE("compose: two outputs of two types, and a join of what was made of the same item") {
  const Watchdog watchdog("compose: split and join");
  constexpr std::size_t kItems = 500;
  for (const int workers : {1, 2, 5}) {
    std::vector<std::string> joined;
    std::size_t letters = 0;
    Compose graph(Registry{});
    graph
        .source<Text>("texts", names(kItems),
                      [](std::size_t i) { return Text{std::string(i, 'x')}; })
        .split<Text, Text, Length>(
            "parts", "texts",
            [](const Text& t) {
              if (t.content.size() == 5) throw std::runtime_error("is five");
              return std::pair(Text{t.content + "y"}, Length{t.content.size()});
            },
            9)
        .map<Length, Length>("twice", "parts.second",
                             [](const Length& n) {
                               if (n.value == 7) throw std::runtime_error("is seven");
                               return Length{2 * n.value};
                             })
        .join<Text, Length, Text>(
            "both", "parts.first", "twice",
            [](const Text& t, const Length& n) {
              return Text{t.content + std::to_string(n.value)};
            },
            20)
        .sink<Text>("all", "both", [&](const Text& t) { joined.push_back(t.content); })
        .sink<Text>("other", "parts.first", [&](const Text& t) { letters += t.content.size(); });
    graph.spec().workers = workers;
    std::vector<Remark> remarks;
    const RunReport report = graph.run(&remarks);
    CHECK(report.ending == Ending::complete);
    CHECK(report.counts.ok == kItems - 2);
    REQUIRE(remarks.size() == 2);
    CHECK(remarks[0].entry.reason == "is five");
    CHECK(remarks[1].entry.stage == "twice");
    REQUIRE(joined.size() == kItems - 2);
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < kItems; ++i)
      if (i != 5 && i != 7) expected.push_back(std::string(i, 'x') + "y" + std::to_string(2 * i));
    std::sort(joined.begin(), joined.end());
    std::sort(expected.begin(), expected.end());
    CHECK(joined == expected);
    CHECK(letters >= kItems * (kItems + 1) / 2 - 6 - 8);
  }
}

TEST_CASE("compose: a join takes the types of its inputs, in their order, of two ways of an item") {
  const auto problems_of = [](const std::string& first, const std::string& second) {
    Compose graph(Registry{});
    graph.source<Text>("texts", names(2), [](std::size_t) { return Text{"x"}; })
        .split<Text, Text, Length>(
            "parts", "texts", [](const Text& t) { return std::pair(t, Length{1}); }, 9)
        .join<Text, Length, Text>("both", first, second,
                                  [](const Text& t, const Length&) { return t; })
        .sink<Text>("all", "both", [](const Text&) {});
    return test::problems_in([&] { return graph.run(); });
  };
  CHECK(problems_of("parts.first", "parts.second").empty());
  const std::string swapped = problems_of("parts.second", "parts.first");
  CHECK(swapped.find("both takes texts, but 'parts' (parts) gives lengths") != swapped.npos);
  CHECK(swapped.find("both takes lengths, but 'parts' (parts) gives texts") != swapped.npos);
  const std::string twice = problems_of("parts.first", "parts.first");
  CHECK(twice.find("names parts.first twice; name two different nodes") != twice.npos);
}

TEST_CASE("compose: what a lambda throws fails its item alone, a RunError the run") {
  const Watchdog watchdog("compose: errors");
  const auto graph_of = [](const std::function<void()>& trouble) {
    Compose graph(Registry{});
    graph.source<Text>("texts", names(10), [](std::size_t i) { return Text{std::string(i, 'x')}; })
        .map<Text, Length>("length", "texts",
                           [trouble](const Text& t) {
                             if (t.content.size() == 7) trouble();
                             return Length{t.content.size()};
                           })
        .sink<Length>("all", "length", [](const Length& n) {
          if (n.value == 3) throw std::runtime_error("is three");
        });
    return graph;
  };
  std::vector<Remark> remarks;
  const RunReport report = graph_of([] { throw std::runtime_error("is seven"); }).run(&remarks);
  CHECK(report.ending == Ending::complete);
  CHECK(report.counts.ok == 8);
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[0].name == "text3");
  CHECK(remarks[0].entry.reason == "is three");
  CHECK(remarks[1].name == "text7");
  CHECK(remarks[1].entry.reason == "is seven");

  // Of a long text its beginning is kept, with whole characters.
  std::string text = "x";
  while (text.size() < 1'000'001) text += "ä";
  graph_of([&text] { throw std::runtime_error(text); }).run(&remarks);
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[1].entry.reason == text.substr(0, 4047) + "… shortened (1000001 bytes)");

  const RunReport broken = graph_of([] { throw RunError("no more"); }).run();
  CHECK(broken.ending == Ending::failed);
  CHECK(broken.error == "no more");
}

TEST_CASE("compose: a lambda that gives more than it declared is named, once") {
  const Watchdog watchdog("compose: growth");
  for (const double growth : {2.0, 1.5}) {
    Compose graph(Registry{});
    graph
        .source<Text>("texts", names(50),
                      [](std::size_t i) { return Text{std::string(100 + i % 20, 'x')}; })
        .map<Text, Text>(
            "twice", "texts", [](const Text& t) { return Text{t.content + t.content}; }, growth)
        .map<Text, Text>("same", "twice", [](const Text& t) { return t; })
        .sink<Text>("all", "same", [](const Text&) {});
    const RunReport report = graph.run();
    CHECK(report.counts.ok == 50);
    CAPTURE(growth);
    if (growth == 2.0) {
      CHECK(report.warnings.empty());
      continue;
    }
    // There is no warning about "same", which emits its input.
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings[0] ==
          "twice: gave 238 bytes for text19 where it had declared 178 at most (output_bound of a "
          "stage, growth of a lambda): the run may have taken more memory than memory.host");
  }
}

TEST_CASE("compose: problems of a graph come before the run, all at once") {
  Compose graph(Registry{});
  graph.source<Text>("texts", names(1), [](std::size_t) { return Text{}; })
      .map<Text, Length>("length", "text", [](const Text&) { return Length{}; })
      .sink<Text>("all", "length", [](const Text&) {});
  const std::string problems = test::problems_in([&] { return graph.run(); });
  CHECK(problems ==
        "length.from: there is no node 'text'. Did you mean 'texts'?\n"
        "all.from: all takes texts, but 'length' (length) gives lengths; write from: texts, since "
        "'texts' (texts) gives them and no node takes those yet");
}

TEST_CASE("compose: beside registered stages, with their options") {
  const Watchdog watchdog("compose: registered");
  test::World world;
  std::size_t taken = 0;
  Compose graph(world.registry);
  graph.node("files", "numbers", {{"items", 20}, {"node", "files"}})
      .node("cut", "expand", {{"from", "files"}, {"blocks", 3}, {"node", "cut"}})
      .sink<test::Number>("sum", "cut", [&](const test::Number&) { ++taken; });
  CHECK(graph.run().counts.ok == 20);
  std::size_t expected = 0;
  for (std::size_t i = 0; i < 20; ++i)
    expected += static_cast<std::size_t>(test::block_count(i, 3));
  CHECK(taken == expected);

  // An item that is too large.
  Compose large(Registry{});
  large
      .source<Text>(
          "texts", names(3), [](std::size_t i) { return Text{std::string(9 * i, 'x')}; }, 10)
      .sink<Text>("all", "texts", [](const Text&) {});
  const RunReport report = large.run();
  CHECK(report.ending == Ending::failed);
  CHECK(report.error == "text2: has 18 bytes, at most 10 are allowed");
}

}  // namespace melflow::compose_test
