#include "stages/files/under_way.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace melflow::under_way_test {

using State = UnderWay::State;
using Entries = UnderWay::Entries;

namespace {

// Memory that stands for a file.
struct Memory {
  explicit Memory(std::size_t entries) : bytes(entries) {}
  struct alignas(UnderWay::kEntry) Line {
    std::array<std::byte, UnderWay::kEntry> bytes{};
  };
  std::vector<Line> bytes;
  [[nodiscard]] std::span<std::byte> all() {
    return {bytes.front().bytes.data(), bytes.size() * sizeof(Line)};
  }
  [[nodiscard]] Entries left() { return UnderWay::read(all()); }
};

}  // namespace

TEST_CASE("under way: only a suspect that alone was under way when another run ended is excluded") {
  struct Row {
    const char* what;
    Entries left, judged;
  };
  const Row rows[] = {
      {"nothing", {}, {}},
      {"one alone, the first time: a kill", {{1, State::begun}}, {{1, State::suspect}}},
      {"two", {{1, State::begun}, {2, State::begun}}, {{1, State::suspect}, {2, State::suspect}}},
      {"one by two nodes", {{1, State::begun}, {1, State::begun}}, {{1, State::suspect}}},
      {"a suspect alone", {{1, State::begun}, {1, State::suspect}}, {{1, State::excluded}}},
      {"a suspect alone, and another that waits",
       {{1, State::begun}, {2, State::suspect}, {1, State::suspect}},
       {{2, State::suspect}, {1, State::excluded}}},
      {"another than the suspect",
       {{3, State::begun}, {1, State::suspect}},
       {{1, State::suspect}, {3, State::suspect}}},
      {"two suspects at once",
       {{1, State::begun}, {2, State::begun}, {1, State::suspect}, {2, State::suspect}},
       {{1, State::suspect}, {2, State::suspect}}},
      {"one that hung says nothing of others",
       {{1, State::begun}, {2, State::hung}},
       {{2, State::suspect}}},
      {"a suspect that hung",
       {{1, State::begun}, {2, State::hung}, {2, State::suspect}},
       {{2, State::excluded_as_hung}}},
      {"excluded stays so",
       {{5, State::excluded}, {6, State::excluded_as_hung}},
       {{5, State::excluded}, {6, State::excluded_as_hung}}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    CHECK(UnderWay::judge(row.left) == row.judged);
  }
}

TEST_CASE("under way: what is marked stands in the memory as long as it is") {
  Memory memory(3);
  UnderWay run;
  { const UnderWay::Mark before(&run, 7, 0); }  // recorded nowhere
  CHECK(!run.is_kept());
  run.keep_in({}, memory.all(), {{9, State::excluded}}, {});
  const Entries known{{9, State::excluded}};
  CHECK(memory.left() == known);
  CHECK(run.why_excluded(9) != nullptr);
  CHECK(run.why_excluded(7) == nullptr);
  {
    const UnderWay::Mark one(&run, 7, 0);
    std::thread([&] {
      const UnderWay::Mark two(&run, 8, 0), none(&run, 10, 0);  // only two entries are free
      CHECK(memory.left().size() == 3);
    }).join();
    CHECK(memory.left() == Entries{{7, State::begun}, {9, State::excluded}});
  }
  CHECK(memory.left() == known);
}

TEST_CASE("under way: one at a time while there are suspects") {
  Memory memory(4);
  UnderWay run;
  run.keep_in({}, memory.all(), {{1, State::suspect}, {2, State::suspect}}, {});
  std::atomic<bool> is_in{false}, asks{false};
  const auto other = [&] {
    asks = true;
    asks.notify_all();
    const UnderWay::Mark mark(&run, 8, 0);
    is_in = true;
  };
  std::thread thread;
  {
    const UnderWay::Mark mark(&run, 1, 0);
    thread = std::thread(other);
    asks.wait(false);
    run.pass(1);  // the other suspect is still to come
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    CHECK(!is_in);
    CHECK(memory.left() == Entries{{1, State::begun}, {2, State::suspect}});
  }
  thread.join();
  CHECK(is_in);
  run.pass(3);  // not a suspect
  run.pass(2);
  const UnderWay::Mark mark(&run, 4, 0);
  std::thread(other).join();  // it need not wait
  CHECK(memory.left() == Entries{{4, State::begun}});
}

TEST_CASE("under way: what takes more than its time is named, and what waits is not") {
  Memory memory(2);
  std::atomic<std::uint64_t> named{0};
  UnderWay run;
  run.expect(0);
  run.expect(1);
  run.keep_in({}, memory.all(), {}, [&](std::uint64_t file, int timeout) {
    CHECK(timeout == 1);
    named = file;
    named.notify_all();
  });
  std::thread waits([&] {
    const UnderWay::Mark mark(&run, 5, 1);
    named.wait(0);
  });
  {
    const UnderWay::Mark mark(&run, 6, 1);
    while (named == 0) {
    }
    CHECK(named == 6);
    waits.join();
    const Entries left = memory.left();
    CHECK(std::find(left.begin(), left.end(), UnderWay::Entry{6, State::hung}) != left.end());
  }
}

}  // namespace melflow::under_way_test
