// Several sub-items of one item: how they are numbered, that a recording is ok only if all of them
// are, and that those of long recordings get by with the least memory that suffices.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/run/compose.h"
#include "tests/pipeline/test_graph.h"

namespace sub_items_test {

using namespace melflow;
using namespace melflow::test;

namespace {

struct Text {
  static constexpr const char* kName = "text";
  std::string text;
  [[nodiscard]] std::size_t bytes() const { return text.size(); }
  [[nodiscard]] std::size_t rows() const { return 1; }
};

}  // namespace

TEST_CASE("sub-items: each has its number in what it was made of, and its place in the recording") {
  World world;
  std::mutex mutex;
  std::map<std::size_t, std::map<int, std::string>> seen;  // by item, then by block
  world.hooks["out"] = on_item([&](const Number& n, ItemContext* c) {
    const SubItem& inner = *c->origin().sub_item;
    const std::lock_guard lock(mutex);
    seen[n.item][n.block] = fmt::format(
        "{}.{} {}.{} at {}{}{}", inner.of->maker, inner.of->number, inner.maker, inner.number,
        inner.place, c->origin().ends() ? " ends" : "", c->origin().last ? " last" : "");
    CHECK(inner.of->of == nullptr);
    CHECK(inner.of->number == inner.of->place);
  });
  Graph graph = Graph(
      "files: numbers items=40; takes: divide < files blocks=3; "
      "parts: divide < takes blocks=4 nested=true; "
      "out: keep < parts");
  const Outcomes outcomes = test::run(graph.workers(4), world);
  CHECK(outcomes.report.counts.ok == 40);
  REQUIRE(seen.size() == 40);
  for (const auto& [item, blocks] : seen) {
    // The expected result, computed from the stages' definitions.
    std::map<int, std::string> expected;
    const int outer = block_count(item, 3);
    int block = 0, take = 0, place = 0, number = 0;
    for (int k = 0; k < outer; ++k) {
      const auto value = mix(stepped(first_value(item), "takes"), static_cast<std::uint64_t>(k));
      const bool take_ends = k + 1 == outer || ends_sub_item(value);
      const int inner = block_count(item, 4, k);
      for (int j = 0; j < inner; ++j, ++block) {
        const auto own = mix(stepped(value, "parts"), static_cast<std::uint64_t>(block));
        const bool is_last_of_take = take_ends && j + 1 == inner;
        const bool ends = is_last_of_take || ends_sub_item(own);
        expected[block] =
            fmt::format("takes.{} parts.{} at {}{}{}", take, number, place, ends ? " ends" : "",
                        k + 1 == outer && j + 1 == inner ? " last" : "");
        place += ends ? 1 : 0;
        number = is_last_of_take ? 0 : number + (ends ? 1 : 0);
        take += is_last_of_take ? 1 : 0;
      }
    }
    CHECK(blocks == expected);
  }
}

TEST_CASE("sub-items: what becomes of one becomes of the recording") {
  World world;
  world.hooks["out"] = [](const Number& n, ItemContext* c) -> std::optional<ItemError> {
    if (n.block != 1) return {};
    if (n.item % 3 == 0) return ItemError::failed("the second");
    if (n.item % 3 == 1) return ItemError::skipped("the second");
    c->warn("the second");
    return {};
  };
  Graph graph = Graph(
      "files: numbers items=60; takes: divide < files blocks=5; "
      "out: keep < takes ordered=true");
  const Outcomes outcomes = test::run(graph.workers(4), world);
  std::size_t several[3] = {};
  for (std::size_t i = 0; i < 60; ++i) several[i % 3] += block_count(i, 5) > 1 ? 1 : 0;
  CHECK(outcomes.report.counts.failed == several[0]);
  CHECK(outcomes.report.counts.skipped == several[1]);
  CHECK(outcomes.report.counts.ok == 60 - several[0] - several[1]);
  CHECK(outcomes.remarks.size() == several[0] + several[1] + several[2]);
  for (const Row& row : world.rows("out"))
    CHECK((row.item % 3 == 2 || block_count(row.item, 5) == 1));
}

TEST_CASE("sub-items: a stage that gives nothing for the last block of one fails the recording") {
  World world;
  Graph graph = Graph(
      "files: numbers items=40; takes: divide < files blocks=5; "
      "thin: thin < takes holes=true; "
      "out: keep < thin ordered=true");
  const Outcomes outcomes = test::run(graph.workers(4), world);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    bool is_lost = false;
    for (int k = 1; k + 1 < block_count(i, 5); k += 2)
      is_lost |=
          ends_sub_item(mix(stepped(first_value(i), "takes"), static_cast<std::uint64_t>(k)));
    failed += is_lost ? 1 : 0;
  }
  CHECK(failed > 0);
  CHECK(outcomes.report.counts.failed == failed);
  CHECK(outcomes.report.counts.ok == 40 - failed);
  for (const Remark& r : outcomes.remarks)
    CHECK(r.entry.reason == "its last block of a result came to nothing (a bug in a stage)");
}

TEST_CASE("sub-items: a lambda that gives them all at once, none, or throws") {
  const std::vector<std::string> texts{"abc", "", "d", "!", "efghij"};
  std::vector<std::string> letters;
  Compose graph;
  graph.source<Text>("texts", texts, [&](std::size_t i) { return Text{texts[i]}; })
      .many<Text, Text>("letters", "texts",
                        [](const Text& in) {
                          if (in.text == "!") throw std::runtime_error("no letter");
                          std::vector<Text> out;
                          for (const char c : in.text) out.push_back(Text{std::string(1, c)});
                          return out;
                        })
      .map<Text, Text>(
          "doubled", "letters", [](const Text& in) { return Text{in.text + in.text}; }, 2)
      .sink<Text>("out", "doubled", [&](const Text& text) { letters.push_back(text.text); });
  std::vector<Remark> remarks;
  const RunReport report = graph.run(&remarks);
  CHECK(report.counts.ok == 3);
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[0].entry.outcome == Outcome::skipped);
  CHECK(remarks[0].entry.reason == "nothing is made of it");
  CHECK(remarks[1].entry.outcome == Outcome::failed);
  CHECK(remarks[1].entry.reason == "no letter");
  std::sort(letters.begin(), letters.end());
  CHECK(letters ==
        std::vector<std::string>{"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj"});
}

}  // namespace sub_items_test
