// How deep a queue is next, without a clock: what is seen is given.
#include <doctest/doctest.h>

#include "pipeline/depth_rule.h"

namespace depth_rule_test {

using melflow::DepthRule;
using Seen = DepthRule::Seen;

namespace {

constexpr Seen kBothWait{.starved = 0.2, .held_back = 0.2, .full = 0.2};
constexpr Seen kAlwaysFull{.starved = 0, .held_back = 0.9, .full = 0.9};

double idle() { return 0.5; }
double busy() { return 0.95; }
double not_asked() {
  FAIL("the workers' time is asked for");
  return 0;
}

}  // namespace

TEST_CASE("depth rule: doubles up to its bound where both sides wait and workers are idle") {
  DepthRule rule(1, 2, 13);
  CHECK(rule.capacity() == 2);
  CHECK(rule.next(kBothWait, idle) == 4);
  CHECK(rule.next(kBothWait, idle) == 8);
  CHECK(rule.next(kBothWait, idle) == 13);
  CHECK(rule.next(kBothWait, idle) == 13);
}

TEST_CASE("depth rule: stays where a place more would not help") {
  struct Row {
    Seen seen;
    double (*workers)();
  };
  Seen wanted = kBothWait, half_used = kBothWait;
  wanted.is_memory_wanted = true;
  half_used.is_memory_half_used = true;
  for (const Row& row :
       {Row{kBothWait, busy},                                              // every worker works
        Row{wanted, idle},                                                 // others need the memory
        Row{half_used, idle},                                              //
        Row{{.starved = 0.05, .held_back = 0.2, .full = 0.2}, not_asked},  // unrest
        Row{{.starved = 0.2, .held_back = 0.05, .full = 0.2}, not_asked},  //
        // The producer waited, and not for this queue.
        Row{{.starved = 0.2, .held_back = 0.2, .full = 0.05}, not_asked},
        Row{{.starved = 0, .held_back = 0.9, .full = 0.4}, not_asked},
        Row{{.starved = 0.01, .held_back = 0.9, .full = 0.9}, not_asked}}) {
    DepthRule rule(1, 4, 64);
    CHECK(rule.next(row.seen, row.workers) == 4);
  }
}

TEST_CASE("depth rule: a queue that is always full gets shorter by a quarter, down to its bound") {
  DepthRule rule(3, 16, 64);
  for (const std::size_t expected : {12U, 9U, 6U, 4U, 3U, 3U})
    CHECK(rule.next(kAlwaysFull, not_asked) == expected);
}

TEST_CASE("depth rule: not below what has proved too little, unless somebody waits for memory") {
  DepthRule rule(1, 4, 64);
  CHECK(rule.next(kBothWait, idle) == 8);  // four were too few
  for (const std::size_t expected : {6U, 5U, 5U})
    CHECK(rule.next(kAlwaysFull, not_asked) == expected);
  Seen wanted = kAlwaysFull;
  wanted.is_memory_wanted = true;
  for (const std::size_t expected : {3U, 2U, 1U, 1U})
    CHECK(rule.next(wanted, not_asked) == expected);
}

}  // namespace depth_rule_test
