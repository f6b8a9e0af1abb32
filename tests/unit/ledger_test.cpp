#include "pipeline/stage/ledger.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "pipeline/report/reasons.h"
#include "pipeline/stage/item.h"
#include "pipeline/stage/reach.h"
#include "pipeline/stage/sink_ledger.h"
#include "tests/support/watchdog.h"

namespace melflow::ledger_test {

TEST_CASE("ledger: counts every outcome, and the sum is what was found") {
  Ledger ledger;
  ledger.open(6, {"read", "decode"});
  ledger.close(0, Outcome::ok, -1, "");
  ledger.close(1, Outcome::ok, 1, "short");
  ledger.close(2, Outcome::skipped, 0, "a folder");
  ledger.close(3, Outcome::failed, 1, "no audio");
  ledger.close(4, Outcome::not_run, -1, "");
  const Ledger::Counts c = ledger.counts();
  CHECK(c.found == 6);
  CHECK(c.ok == 2);
  CHECK(c.warned == 1);
  CHECK(c.skipped == 1);
  CHECK(c.failed == 1);
  CHECK(c.not_run == 1);
  CHECK(c.closed() == 5);
  CHECK(ledger.entry(0).stage.empty());
  CHECK(ledger.entry(1).stage == "decode");
  CHECK(ledger.entry(1).reason == "short");
  CHECK(ledger.entry(2).stage == "read");
  CHECK(ledger.entry(3).outcome == Outcome::failed);
  CHECK(ledger.outcome(5) == Outcome::open);
}

TEST_CASE("ledger: reasons that differ in their numbers alone are one, the most frequent first") {
  Ledger ledger;
  ledger.open(12, {"read", "segment"});
  const auto skip = [&](std::size_t i, int stage, const std::string& reason) {
    ledger.close(i, Outcome::skipped, stage, reason);
  };
  skip(0, 1, "lasts 1.25 s");
  CHECK(reasons_text(ledger, 1, Outcome::skipped) == "by segment: lasts 1.25 s");
  skip(1, 1, "lasts 3 s");
  CHECK(reasons_text(ledger, 2, Outcome::skipped) == "by segment: such as lasts 1.25 s");
  ledger.close(2, Outcome::failed, 1, "lasts 7 s");
  skip(3, 0, "is empty");
  skip(4, 1, "is empty");
  skip(5, 0, "is a folder");
  skip(6, 0, "is a folder");
  skip(7, 0, "is a folder");
  skip(8, 0, "is a device");
  CHECK(reasons_text(ledger, 12, Outcome::skipped) ==
        "3 by read: is a folder; 2 by segment: such as lasts 1.25 s; 1 by read: is a device; 2 for "
        "other reasons");
  CHECK(reasons_text(ledger, 12, Outcome::failed) == "by segment: lasts 7 s");
  CHECK(reasons_text(ledger, 12, Outcome::not_run).empty());
}

TEST_CASE(
    "ledger: of a run without an ok item all reasons are told, and no name that is not there") {
  Ledger ledger;
  ledger.open(4, {"read", "decode"});
  ledger.close(0, Outcome::failed, 1, "is no audio");
  ledger.close(1, Outcome::failed, 1, "is no audio");
  ledger.close(2, Outcome::skipped, -1, "is in another split");
  ledger.close(3, Outcome::skipped, -1, "is in another split");
  CHECK(nothing_ok_text(ledger, 4) ==
        "no file is ok: 2 failed (by decode: is no audio), 2 skipped (is in another split); change "
        "the files, or the options of decode");
  Ledger others;
  others.open(2, {"read"});
  others.close(0, Outcome::skipped, -1, "is in another split");
  others.close(1, Outcome::skipped, -1, "is in another split");
  CHECK(nothing_ok_text(others, 2) ==
        "all files were skipped (2): is in another split; change the files");
}

TEST_CASE("ledger: oldest_open is the first record that is not closed") {
  Ledger ledger;
  ledger.open(4, {});
  CHECK(ledger.oldest_open() == 0);
  ledger.close(1, Outcome::ok, -1, "");
  CHECK(ledger.oldest_open() == 0);
  ledger.close(0, Outcome::ok, -1, "");
  CHECK(ledger.oldest_open() == 2);
  ledger.close(3, Outcome::ok, -1, "");
  ledger.close(2, Outcome::ok, -1, "");
  CHECK(ledger.oldest_open() == 4);
}

TEST_CASE("ledger: listeners hear every close, without a lock held") {
  Ledger ledger;
  ledger.open(3, {});
  std::vector<std::pair<std::size_t, Outcome>> heard;
  ledger.subscribe([&](std::size_t index, Outcome outcome) {
    CHECK(ledger.outcome(index) == outcome);  // would hang if the ledger were locked
    heard.emplace_back(index, outcome);
    if (index == 0) ledger.close(1, Outcome::skipped, -1, "with the first");
  });
  ledger.close(0, Outcome::ok, -1, "");
  ledger.close(2, Outcome::failed, -1, "x");
  CHECK(heard == std::vector<std::pair<std::size_t, Outcome>>{
                     {0, Outcome::ok}, {1, Outcome::skipped}, {2, Outcome::failed}});
}

TEST_CASE("ledger: of a long reason 4 KiB are kept, by whatever way it comes") {
  const std::string text(5000, 'x'), kept = text.substr(0, 4048) + "… shortened (5000 bytes)";
  Ledger ledger;
  ledger.open(2, {"a"});
  ledger.close(0, Outcome::failed, 0, text);
  ledger.close(1, Outcome::failed, 0, text.substr(0, 4096));
  CHECK(ledger.entry(0).reason == kept);
  CHECK(ledger.entry(1).reason == text.substr(0, 4096));
}

TEST_CASE("ledger: of long warnings each has its share of what is kept") {
  const std::string text(5000, 'x');
  CHECK(Ledger::warned({{"a", text}}).reason == text);
  const Ledger::Entry entry = Ledger::warned({{"a", text}, {"b", text}, {"b", "short"}});
  CHECK(entry.stage == "a");
  const std::string kept = text.substr(0, 771) + "… shortened (5000 bytes)";
  CHECK(entry.reason == kept + "; b: " + kept + "; short");
}

TEST_CASE(
    "ledger: an item that is closed twice, or is not there, is noted, and nothing is thrown") {
  for (const char* first : {"", "short"})
    for (const char* second : {"", "short"}) {
      CAPTURE(std::string(first) + "/" + second);
      Ledger ledger;
      int told = 0;
      ledger.subscribe([&](std::size_t, Outcome) { ++told; });
      ledger.open(3, {"test"});
      ledger.close(1, Outcome::ok, 0, first);
      CHECK_FALSE(ledger.closed_wrongly());
      ledger.close(1, Outcome::ok, 0, second);
      CHECK(ledger.closed_wrongly() == 1);
      CHECK(ledger.entry(1).reason == first);
      CHECK(ledger.counts().closed() == 1);
      CHECK(told == 1);
      ledger.open(3, {"test"});
      CHECK_FALSE(ledger.closed_wrongly());
      ledger.close(3, Outcome::ok, 0, "");
      CHECK(ledger.closed_wrongly() == 3);
      CHECK(ledger.counts().closed() == 0);
    }
}

TEST_CASE("sink ledger: of an item from an earlier run both warnings are told, each once") {
  Ledger run;
  run.open(3, {"a", "b"});
  SinkLedger sink(run);
  for (std::size_t i = 0; i < 3; ++i) sink.kept(i, 0, "short");
  run.close(0, Outcome::ok, 1, "is not in every output: bad");
  run.close(1, Outcome::ok, 0, "short; b: bad");
  run.close(2, Outcome::ok, -1, "");
  CHECK(sink.entry(0).stage == "a");
  CHECK(sink.entry(0).reason == "short; b: is not in every output: bad");
  CHECK(sink.entry(1).reason == "short; b: bad");
  CHECK(sink.entry(2).reason == "short");
}

TEST_CASE("ledger: opening it again starts afresh") {
  Ledger ledger;
  ledger.open(2, {"a"});
  ledger.close(0, Outcome::failed, 0, "why");
  ledger.open(1, {"b"});
  CHECK(ledger.counts().failed == 0);
  ledger.close(0, Outcome::failed, 0, "why");
  CHECK(ledger.entry(0).stage == "b");
  CHECK(ledger.entry(0).reason == "why");
}

TEST_CASE("ledger: closes from many threads are all counted") {
  const test::Watchdog watchdog("ledger: many threads");
  constexpr std::size_t kItems = 20000;
  Ledger ledger;
  ledger.open(kItems, {"s"});
  std::atomic<std::size_t> heard{0};
  ledger.subscribe([&](std::size_t, Outcome) { ++heard; });
  std::vector<std::size_t> order(kItems);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < kItems; i += 4)
        ledger.close(order[i], order[i] % 5 == 0 ? Outcome::failed : Outcome::ok, 0,
                     "reason " + std::to_string(order[i] % 7));
    });
  for (std::thread& t : threads) t.join();
  CHECK(heard == kItems);
  CHECK(ledger.counts().closed() == kItems);
  CHECK(ledger.counts().failed == kItems / 5);
  CHECK(ledger.oldest_open() == kItems);
  CHECK(ledger.entry(12).reason == "reason 5");
}

// ---- a record is closed by the last reference to its stream -------------------------------------

// The table of Stream::is_over() (item.cpp): read > decode > {a > x, b > y}.
TEST_CASE("stream: which of several reports counts does not depend on which came first") {
  enum { read, decode, a, b, x, y };
  constexpr SinkSet kX = 1, kY = 2, kBoth = 3;
  const auto reach = [](bool a_fails_branch) {
    const SinkSet by_a = a_fails_branch ? kX : kBoth;
    return Reach({{kBoth, kBoth, kBoth, true, 0, {}},
                  {kBoth, kBoth, kBoth, true, 1, {}},
                  {kX, by_a, kBoth, false, 2, {}},
                  {kY, kBoth, kBoth, false, 3, {}},
                  {kX, kBoth, kBoth, false, 4, {}},
                  {kY, kBoth, kBoth, false, 5, {}}},
                 {nullptr, nullptr}, {}, nullptr);
  };
  using Report = std::function<void(Stream&)>;
  const auto fails = [](int stage, std::uint64_t block) -> Report {
    return [=](Stream& s) {
      s.fail(stage, ItemError::failed(fmt::format("{}:{}", stage, block)), block);
    };
  };
  const Report has_x = [](Stream& s) { s.keep(x); };
  const Report y_takes = [](Stream& s) { s.sink_done(y); };
  const Report stops = [](Stream& s) { s.cancel(); };
  const Report routes_to_b = [](Stream& s) {
    const int output = 1;
    s.route(read, std::span(&output, 1), ItemError::skipped("elsewhere"));
  };
  struct Case {
    std::vector<Report> reports;
    Outcome outcome;
    std::string reason;
    bool a_fails_branch = false;
  };
  const std::string part = "is not in every output: ";
  std::vector<Case> cases{{{fails(decode, 3), fails(decode, 1)}, Outcome::failed, "1:1"},
                          {{fails(decode, 2), fails(read, 5)}, Outcome::failed, "1:2"},
                          {{fails(a, 1), fails(b, 0)}, Outcome::failed, "2:1"},
                          {{fails(a, 1), fails(b, 0)}, Outcome::failed, "2:1", true},
                          {{fails(a, 1), y_takes}, Outcome::ok, part + "2:1", true},
                          {{fails(x, 0), fails(y, 0)}, Outcome::failed, "4:0"},
                          {{routes_to_b, fails(a, 0), y_takes}, Outcome::ok, ""},
                          {{has_x, fails(a, 0), y_takes}, Outcome::ok, ""},
                          {{has_x, fails(b, 0)}, Outcome::ok, part + "3:0"},
                          {{fails(decode, 0), stops}, Outcome::not_run, ""}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const bool reversed : {false, true}) {
      CAPTURE(i);
      CAPTURE(reversed);
      Case& c = cases[i];
      if (reversed) std::reverse(c.reports.begin(), c.reports.end());
      Reach r = reach(c.a_fails_branch);
      if (i == 6) {  // with an output of the source to each branch
        std::vector<Reach::Node> nodes;
        for (int n = read; n <= y; ++n) nodes.push_back(r.of(n));
        nodes[read].outside = {kY, kX};
        r = Reach(std::move(nodes), {nullptr, nullptr}, {}, nullptr);
      }
      Ledger ledger;
      ledger.open(1, {"read", "decode", "a", "b", "x", "y"});
      {
        Stream stream(ledger, {}, 1, r);
        for (const Report& report : c.reports) report(stream);
      }
      CHECK(ledger.outcome(0) == c.outcome);
      CHECK(ledger.entry(0).reason == c.reason);
    }
  }
}

TEST_CASE("stream: the last reference closes its record with what became of it") {
  struct Row {
    const char* what;
    void (*act)(Stream&);
    Outcome outcome;
    const char* reason;
  };
  for (const Row& row : {
           Row{"both sinks took it",
               [](Stream& s) {
                 s.sink_done(0);
                 s.sink_done(1);
               },
               Outcome::ok, ""},
           {"a warning does not change that",
            [](Stream& s) {
              s.warn(0, "short");
              s.sink_done(0);
              s.sink_done(1);
            },
            Outcome::ok, "short"},
           {"of two warnings that of the node before the other is first, in either order of time",
            [](Stream& s) {
              s.warn(1, "of b");
              s.warn(0, "of a");
              s.sink_done(0);
              s.sink_done(1);
            },
            Outcome::ok, "of a; b: of b"},
           {"of one node that of its first block, and each text once",
            [](Stream& s) {
              s.warn(1, "late", 2);
              s.warn(1, "twice", 3);
              s.warn(1, "early", 1);
              s.warn(1, "twice", 0);
              s.warn(1, "late", 7);
              s.sink_done(0);
              s.sink_done(1);
            },
            Outcome::ok, "twice; early; late"},
           {"four are told of all, in whatever order they came",
            [](Stream& s) {
              for (const std::uint64_t block : {8, 2, 6, 0, 4, 9, 3, 7, 1, 5})
                s.warn(1, "at " + std::to_string(block), block);
              s.warn(0, "of a");
              s.sink_done(0);
              s.sink_done(1);
            },
            Outcome::ok, "of a; b: at 0; at 1; at 2; and more"},
           {"an error wins over the sinks, and that of the node before the other",
            [](Stream& s) {
              s.fail(1, ItemError::failed("of b"));
              s.fail(0, ItemError::skipped("of a"), 7);
              s.sink_done(0);
              s.sink_done(1);
            },
            Outcome::skipped, "of a"},
           {"of one node that of its first block, be it the last to be known",
            [](Stream& s) {
              s.fail(0, ItemError::failed("late"), 5);
              s.fail(0, ItemError::skipped("early"), 2);
            },
            Outcome::skipped, "early"},
           {"skipped", [](Stream& s) { s.fail(0, ItemError::skipped("too short")); },
            Outcome::skipped, "too short"},
           {"cancelled, and failed: another node might have had more to say",
            [](Stream& s) {
              s.fail(1, ItemError::failed("bad"));
              s.cancel();
            },
            Outcome::not_run, ""},
           {"cancelled", [](Stream& s) { s.cancel(); }, Outcome::not_run, ""},
           {"cancelled: a block was dropped, though the last one came through",
            [](Stream& s) {
              s.cancel();
              s.sink_done(0);
              s.sink_done(1);
            },
            Outcome::not_run, ""},
           {"one sink is missing", [](Stream& s) { s.sink_done(0); }, Outcome::failed,
            "lost on the way: not every output took it (a bug in a stage)"},
       }) {
    CAPTURE(std::string(row.what));
    const Reach reach = Reach::plain(2, 2);
    Ledger ledger;
    ledger.open(1, {"a", "b"});
    auto stream = std::make_shared<Stream>(ledger, Stream::Records{0}, 10, reach);
    auto copy = stream;
    row.act(*stream);
    stream.reset();
    CHECK(ledger.outcome(0) == Outcome::open);
    copy.reset();
    CHECK(ledger.outcome(0) == row.outcome);
    CHECK(ledger.entry(0).reason == row.reason);
  }
}

}  // namespace melflow::ledger_test
