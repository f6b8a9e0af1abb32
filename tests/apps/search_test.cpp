// The search for faster settings, on machines that are made up.
#include "apps/profile/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "pipeline/problem.h"

using namespace melflow;

namespace {

// A machine that is as fast as its slowest resource; every run takes a second, and is disturbed by a
// few per cent, the same in every test.
struct Machine {
  std::function<double(const std::map<std::string, std::string>&)> speed;
  std::map<std::string, std::string> as_written;
  std::vector<Hint> hints = {};
  double disturbance = 0.01;
  int runs = 0;

  Search::Uses uses() {
    return {.run = [this](const Search::Settings& settings) -> std::optional<Search::Trial> {
              auto all = as_written;
              for (const auto& [name, value] : settings) all[name] = value;
              ++runs;
              const double rate = speed(all);
              if (rate <= 0) return std::nullopt;
              return Search::Trial{rate * (1 + disturbance * std::sin(7.0 * runs)),
                                   settings.empty() ? hints : std::vector<Hint>{}};
            },
            .seconds = [this] { return static_cast<double>(runs); }};
  }
};

SearchedOption number(const std::string& name, const std::string& now,
                      const std::string& otherwise = "auto") {
  return {name, now, true, otherwise, {}, 1, 1024, false};
}

std::map<std::string, std::string> changes(const Search::Result& result) {
  std::map<std::string, std::string> out;
  for (const Search::Change& c : result.changes) out[c.option] = c.is;
  return out;
}

}  // namespace

TEST_CASE("search: values are doubled as long as that helps, and no farther") {
  Machine machine{[](const auto& s) { return std::min(8, std::stoi(s.at("queue"))) * 100.0; },
                  {{"queue", "1"}}};
  Search search({number("queue", "1", "1")}, machine.uses(), 200, 1);
  const Search::Result found = search.run();
  CHECK(changes(found) == std::map<std::string, std::string>{{"queue", "8"}});
  CHECK(found.changes[0].was == "1");
  CHECK(found.together.middle == doctest::Approx(8).epsilon(0.05));
  CHECK(found.together.count >= 3);
  CHECK(found.runs == machine.runs);
}

TEST_CASE("search: what the model says is tried first, and what it says of other options is not") {
  Machine machine{[](const auto& s) {
                    return (s.at("workers") == "2" ? 2.0 : 1.0) * (s.contains("memory") ? 9 : 1);
                  },
                  {{"workers", "1"}, {"a", "16"}, {"b", "16"}},
                  {{{{"memory", "2GiB"}}, 9, 9, 9}, {{{"workers", "2"}}, 2, 1.5, 2}}};
  std::vector<std::string> told;
  auto uses = machine.uses();
  uses.tell = [&](const Search::Settings& s, double) { told.push_back(s[0].first + s[0].second); };
  Search search({number("workers", "1", "1"), number("a", "16", "16"), number("b", "16", "16")},
                uses, 60, 3);
  CHECK(changes(search.run()) == std::map<std::string, std::string>{{"workers", "2"}});
  CHECK(told.front() == "workers2");
}

TEST_CASE("search: what was written is left out where its default is better, all at once") {
  // Each alone brings nothing.
  Machine machine{
      [](const auto& s) { return s.at("read") == "auto" && s.at("mel") == "auto" ? 300.0 : 100.0; },
      {{"read", "1"}, {"mel", "1"}}};
  Search search({number("read", "1"), number("mel", "1")}, machine.uses(), 100, 1);
  const Search::Result found = search.run();
  CHECK(changes(found) == std::map<std::string, std::string>{{"read", "auto"}, {"mel", "auto"}});
  CHECK(found.changes[0].others == 1);
}

TEST_CASE("search: a change that came to nothing by another one is taken back") {
  // The buffer helps as long as there is one worker.
  Machine machine{[](const auto& s) {
                    if (s.at("workers") == "auto") return 400.0;
                    return s.at("buffer") == "1" ? 100.0 : 200.0;
                  },
                  {{"workers", "1"}, {"buffer", "1"}},
                  {{{{"buffer", "2"}}, 200, 200, 200}}};
  auto buffer = number("buffer", "1", "1");
  buffer.highest = 2;
  Search search({number("workers", "1"), buffer}, machine.uses(), 200, 1);
  CHECK(changes(search.run()) == std::map<std::string, std::string>{{"workers", "auto"}});
}

TEST_CASE("search: where nothing helps, or what helps is chance, nothing is changed") {
  Machine machine{[](const auto&) { return 100.0; }, {{"a", "4"}, {"b", "auto"}}};
  machine.disturbance = 0.2;
  Search search({number("a", "4"), number("b", "auto")}, machine.uses(), 300, 1);
  const Search::Result found = search.run();
  CHECK(found.changes.empty());
  CHECK(found.tried > 0);
}

TEST_CASE("search: it ends in time, and what is refused is no end") {
  Machine machine{[](const auto& s) { return s.at("a") == "1" ? 100.0 : 0.0; }, {{"a", "1"}}};
  Search search({number("a", "1")}, machine.uses(), 20, 1);
  CHECK(search.run().changes.empty());
  Machine endless{[](const auto& s) { return std::stod(s.at("a")) * 10; }, {{"a", "1"}}};
  auto option = number("a", "1", "1");
  option.highest = 1e9;
  Search slow({option}, endless.uses(), 30, 1);
  CHECK(!slow.run().changes.empty());
  CHECK(endless.runs <= 45);
  Machine broken{[](const auto&) { return 0.0; }, {}};
  Search none({}, broken.uses(), 20, 1);
  CHECK_THROWS_WITH_AS(none.run(), "the pipeline cannot be run as it is", RunError);
}

TEST_CASE("search: sizes stay sizes, choices are tried") {
  Machine machine{[](const auto& s) {
                    return (s.at("buffer") == "256KiB" ? 2.0 : 1.0) *
                           (s.at("engine") == "b" ? 2 : 1);
                  },
                  {{"buffer", "128KiB"}, {"engine", "a"}}};
  SearchedOption size = number("buffer", "128KiB", "128KiB");
  size.is_size = true;
  size.highest = 1 << 30;
  SearchedOption choice = number("engine", "a", "a");
  choice.choices = {"a", "b", "c"};
  Search search({size, choice}, machine.uses(), 300, 2);
  CHECK(changes(search.run()) ==
        std::map<std::string, std::string>{{"buffer", "256KiB"}, {"engine", "b"}});
}
