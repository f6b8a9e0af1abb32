#include "pipeline/run/turns.h"
#include "pipeline/stage/reach.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "pipeline/stage/ledger.h"

namespace melflow::turns_test {
namespace {

// Streams whose pieces come to a stage. None of them is ended, so the ledger does not matter.
class Streams {
 public:
  explicit Streams(std::size_t count) {
    ledger_.open(count, {"stage"});
    for (std::size_t i = 0; i < count; ++i)
      streams_.push_back(std::make_shared<Stream>(ledger_, Stream::Records{i}, 1, reach_));
  }
  [[nodiscard]] Origin piece(std::size_t i) const { return {nullptr, streams_[i], false, false}; }
  [[nodiscard]] Origin whole(std::size_t i) const { return {nullptr, streams_[i], true, true}; }

 private:
  Ledger ledger_;
  const Reach reach_ = Reach::plain(1, 1);
  std::vector<std::shared_ptr<Stream>> streams_;
};

void come(Turns& turns, Work& work, const Origins& origins) { turns.issue(origins, 0, work.turns); }

std::vector<Work*> done(Turns& turns, const Work& work) {
  std::vector<Work*> again;
  turns.done(work.turns, again);
  return again;
}

using Works = std::vector<Work*>;

}  // namespace

TEST_CASE("turns: blocks of one stream begin one at a time, in the order in which they came") {
  const Streams streams(1);
  Turns turns;
  Work a, b, c;
  for (Work* w : {&a, &b, &c}) come(turns, *w, {streams.piece(0)});
  CHECK_FALSE(turns.may_begin(c));
  CHECK_FALSE(turns.may_begin(b));
  CHECK(turns.may_begin(a));
  // Waiting pieces are told to ask again; it may still not be their turn.
  Works again = done(turns, a);
  std::sort(again.begin(), again.end());
  Works both{&b, &c};
  std::sort(both.begin(), both.end());
  CHECK(again == both);
  CHECK_FALSE(turns.may_begin(c));
  CHECK(turns.may_begin(b));
  CHECK(done(turns, b) == Works{&c});
  CHECK(turns.may_begin(c));
  CHECK(done(turns, c).empty());
}

TEST_CASE("turns: streams do not wait for each other") {
  const Streams streams(2);
  Turns turns;
  Work a, b;
  come(turns, a, {streams.piece(0)});
  come(turns, b, {streams.piece(1)});
  CHECK(turns.may_begin(b));
  CHECK(turns.may_begin(a));
}

TEST_CASE("turns: a whole file has none, and does not count among the blocks of others") {
  const Streams streams(2);
  Turns turns;
  Work whole, mixed;
  come(turns, whole, {streams.whole(0)});
  CHECK(whole.turns.empty());
  CHECK(turns.may_begin(whole));
  CHECK(done(turns, whole).empty());
  come(turns, mixed, {streams.whole(0), streams.piece(1)});
  CHECK(mixed.turns.size() == 1);
}

TEST_CASE("turns: only the first and last mark together make a whole file") {
  const Streams streams(1);
  Turns turns;
  Work first, last;
  Origin origin = streams.piece(0);
  origin.first = true;
  come(turns, first, {origin});
  origin.first = false;
  origin.last = true;
  come(turns, last, {origin});
  CHECK(first.turns.size() == 1);
  CHECK(last.turns.size() == 1);
  CHECK_FALSE(turns.may_begin(last));
}

TEST_CASE("turns: a batch with several pieces of a stream has one turn in it") {
  const Streams streams(2);
  Turns turns;
  Work batch, next;
  come(turns, batch, {streams.piece(0), streams.piece(1), streams.piece(0)});
  CHECK(batch.turns.size() == 2);
  come(turns, next, {streams.piece(0)});
  CHECK_FALSE(turns.may_begin(next));
  CHECK(turns.may_begin(batch));
  CHECK(done(turns, batch) == Works{&next});
  CHECK(turns.may_begin(next));
}

TEST_CASE("turns: pieces in one task of several items each have their own") {
  const Streams streams(1);
  Turns turns;
  Work task, next;
  come(turns, task, {streams.piece(0)});
  come(turns, task, {streams.piece(0)});
  REQUIRE(task.turns.size() == 2);
  CHECK(task.turns[0].number == 0);
  CHECK(task.turns[1].number == 1);
  come(turns, next, {streams.piece(0)});
  CHECK_FALSE(turns.may_begin(next));
}

TEST_CASE("turns: a stream that was through starts over") {
  const Streams streams(1);
  Turns turns;
  for (int i = 0; i < 3; ++i) {
    Work w;
    come(turns, w, {streams.piece(0)});
    CHECK(w.turns.front().number == 0);
    CHECK(turns.may_begin(w));
    CHECK(done(turns, w).empty());
  }
}

TEST_CASE("turns: the branch goes with them") {
  const Streams streams(1);
  Turns turns;
  Work w;
  turns.issue({streams.piece(0)}, 3, w.turns);
  REQUIRE(w.turns.size() == 1);
  CHECK(w.turns.front().branch == 3);
}

TEST_CASE("turns: whatever is tried first, all begin in the order of each stream, and all begin") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::size_t count = 1 + random() % 4;
    const Streams streams(count);
    Turns turns;
    struct Task {
      Work work;
      std::vector<std::size_t> of;
    };
    std::vector<std::unique_ptr<Task>> tasks;
    std::vector<Work*> ready, running;
    std::map<Work*, std::size_t> number;
    for (std::size_t i = 0; i < 30; ++i) {
      auto task = std::make_unique<Task>();
      Origins origins;
      for (std::size_t k = 0; k <= random() % 3; ++k) {
        task->of.push_back(random() % count);
        origins.push_back(streams.piece(task->of.back()));
      }
      come(turns, task->work, origins);
      number[&task->work] = i;
      ready.push_back(&task->work);
      tasks.push_back(std::move(task));
    }
    std::vector<bool> ended(tasks.size());
    const auto before_it = [&](std::size_t i) {  // not ended, and shares a stream
      for (std::size_t k = 0; k < i; ++k)
        for (std::size_t s : tasks[k]->of)
          if (!ended[k] &&
              std::find(tasks[i]->of.begin(), tasks[i]->of.end(), s) != tasks[i]->of.end())
            return true;
      return false;
    };
    while (!ready.empty() || !running.empty()) {
      std::vector<Work*>& from =
          running.empty() || (!ready.empty() && random() % 2 == 0) ? ready : running;
      const auto it = from.begin() + static_cast<std::ptrdiff_t>(random() % from.size());
      Work* const w = *it;
      from.erase(it);
      const std::size_t i = number[w];
      if (&from == &ready) {
        const bool may = turns.may_begin(*w);
        CHECK(may == !before_it(i));
        if (may) running.push_back(w);
      } else {
        turns.done(w->turns, ready);
        ended[i] = true;
      }
    }
    CHECK(std::count(ended.begin(), ended.end(), false) == 0);
  }
}

}  // namespace melflow::turns_test
