// Tests the counting alone: no clock (times are made up) and no graph.
#include "pipeline/run/node_places.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace melflow::node_places_test {

using std::chrono::seconds;

namespace {

using Finish = NodePlaces::Finish;

NodePlaces::Time at(int second) { return NodePlaces::Time{} + seconds(second); }

// A node, perhaps with branches after it.
struct Node {
  explicit Node(int concurrency, const std::vector<std::size_t>& branches = {},
                std::size_t start_level = 0)
      : places(concurrency, start_level, at(0)) {
    for (std::size_t most : branches) places.add_branch(most);
  }
  // An item arrives by the queue; returns how many are admitted.
  int come(int second = 0) {
    CHECK_FALSE(places.arrive(at(second), false));
    return places.offer(at(second), Came::by_queue);
  }
  void begin(int second = 0) { places.begin(at(second), Came::by_queue); }
  int finish(int second = 0, bool gave = true) {
    Finish f;
    f.gave = gave;
    return places.finish(at(second), f);
  }
  [[nodiscard]] NodePlaces::Snapshot now(int second = 0) const {
    return places.snapshot(at(second));
  }
  NodePlaces places;
};

}  // namespace

TEST_CASE(
    "node places: as many are admitted as the concurrency allows, the next when one is done") {
  Node n(2);
  CHECK(n.come() == 1);
  CHECK(n.come() == 1);
  CHECK(n.come() == 0);
  CHECK(n.now().waiting == 3);  // until they begin, they have their places in the queue
  n.begin();
  n.begin();
  CHECK(n.now().running == 2);
  CHECK(n.now().waiting == 1);
  CHECK(n.finish() == 1);
}

TEST_CASE("node places: an item has a place in every queue behind before it begins") {
  Node n(3, {2, 1});
  CHECK(n.come() == 1);
  CHECK(n.come() == 0);
  n.begin();
  CHECK(n.finish() == 0);  // its output still has both places
  CHECK(n.places.free_place(at(0), 0) == 0);
  CHECK(n.places.free_place(at(0), 1) == 1);
}

TEST_CASE("node places: who gave nothing gives its places back at once") {
  Node n(1, {1});
  CHECK(n.come() == 1);
  CHECK(n.come() == 0);
  n.begin();
  CHECK(n.finish(0, false) == 1);
}

TEST_CASE("node places: who gave to some branches gives back its places in the others") {
  Node n(4, {1, 2, 1});
  CHECK(n.come() == 1);
  CHECK(n.come() == 0);
  n.begin();
  Finish f;
  f.gave = true;
  const std::vector<std::size_t> given{1};
  f.branches = &given;
  CHECK(n.places.finish(at(0), f) == 1);  // that branch has one more place, each other branch one
  CHECK(n.come() == 0);
  n.begin();
  CHECK(n.places.finish(at(0), f) == 0);
  CHECK(n.places.free_place(at(0), 1) == 1);
  // The output of a source holds places until its branch is known.
  Node source(1, {1, 1});
  CHECK(source.come() == 1);
  CHECK(source.come() == 0);
  source.begin();
  CHECK(source.finish() == 0);
  CHECK(source.places.free_places(at(0), {0}) == 0);
  CHECK(source.places.free_place(at(0), 0) == 1);
}

TEST_CASE("node places: past the queue only where nobody waits, a place is free, and it may") {
  Node n(1);
  CHECK_FALSE(n.places.arrive(at(0), false));
  CHECK_FALSE(n.places.arrive(at(0), true));  // after the item that waits
  CHECK(n.places.offer(at(0), Came::by_queue) == 1);
  CHECK(n.places.offer(at(0), Came::by_queue) == 0);
  n.begin();
  CHECK(n.finish() == 1);
  n.begin();
  CHECK(n.finish() == 0);
  CHECK(n.places.arrive(at(0), true));
  CHECK(n.now().waiting == 0);
  CHECK_FALSE(n.places.arrive(at(0), true));  // no concurrency left
  n.places.begin(at(0), Came::past_queue);
  CHECK(n.now().running == 1);
  CHECK(n.now().waiting == 1);
}

TEST_CASE("node places: who is put off gives its place to the next and keeps that in the queue") {
  Node n(1);
  CHECK(n.come() == 1);
  CHECK(n.come() == 0);
  CHECK(n.places.put_off(at(0)) == 1);
  CHECK(n.now().waiting == 2);
  n.begin();
  CHECK(n.places.offer(at(0), Came::by_queue) == 0);  // it would be the same item again
  CHECK(n.finish() == 1);
}

TEST_CASE("node places: who goes on comes again without a place in the queue") {
  Node n(1, {4});
  CHECK(n.come() == 1);
  n.begin();
  Finish f;
  f.goes_on = f.gave = true;
  CHECK(n.places.finish(at(0), f) == 0);
  CHECK(n.now().again == 1);
  CHECK(n.places.offer(at(0), Came::again) == 1);
  CHECK(n.now().again == 0);
  CHECK(n.now().waiting == 0);
  n.places.begin(at(0), Came::again);
  CHECK(n.now().running == 1);
  f.goes_on = false;
  CHECK(n.places.finish(at(0), f) == 0);
  CHECK(n.now().free == 1);  // concurrency that is free
  n.places.expect(at(0));
  n.places.forget(at(0));
  CHECK(n.now().again == 0);
}

TEST_CASE("node places: a queue that fills lets nobody in before its level, then all it can") {
  Node n(4, {}, 3);
  CHECK_FALSE(n.places.arrive(at(1), true));  // nor may it pass the queue
  CHECK(n.places.offer(at(1), Came::by_queue) == 0);
  CHECK(n.come(2) == 0);
  CHECK(n.come(4) == 3);
  CHECK(n.now(4).start_depth == 3);
  CHECK(n.now(4).start_wait_seconds == 3);
  CHECK_FALSE(n.places.open(at(5)).has_value());
}

TEST_CASE("node places: a queue that fills is opened with what there is, and not with nothing") {
  Node n(4, {}, 3);
  CHECK_FALSE(n.places.open(at(0)).has_value());
  CHECK(n.come(1) == 0);
  CHECK(n.places.open(at(3)) == 1);
  CHECK(n.now(3).start_depth == 1);
  CHECK(n.now(3).start_wait_seconds == 2);
}

TEST_CASE("node places: ends when its input is over and nothing is left, once") {
  const auto nothing = [] { return false; };
  Node n(1);
  CHECK(n.places.end_input(at(0)));
  CHECK_FALSE(n.places.end_input(at(0)));
  CHECK(n.places.may_end());
  CHECK(n.places.try_end(at(0), nothing) == NodePlaces::End::now);
  CHECK(n.places.is_ended());
  CHECK(n.places.try_end(at(0), nothing) == NodePlaces::End::not_yet);
}

TEST_CASE("node places: whatever is still here keeps it from its end") {
  const auto nothing = [] { return false; };
  const auto not_yet = [&](Node& n) {
    return n.places.try_end(at(0), nothing) == NodePlaces::End::not_yet &&
           !n.places.try_flush(at(0), [] { return true; });
  };
  Node arrived(1);
  arrived.places.arrive(at(0), false);
  CHECK(not_yet(arrived));
  Node past(1);
  REQUIRE(past.places.arrive(at(0), true));
  CHECK(not_yet(past));
  Node let_in(1);
  let_in.come();
  CHECK(not_yet(let_in));
  let_in.begin();
  CHECK(not_yet(let_in));
  Node again(1);
  again.places.expect(at(0));
  CHECK(not_yet(again));
  REQUIRE(again.places.offer(at(0), Came::again) == 1);
  CHECK(not_yet(again));
}

TEST_CASE(
    "node places: who is put off late, when it has been through already, keeps it from its end") {
  Node n(2);
  CHECK(n.come() == 1);
  // The item is offered again before the thread that put it off has reported that.
  CHECK(n.places.offer(at(0), Came::by_queue) == 1);
  n.begin();
  n.finish();
  n.places.end_input(at(0));
  const auto holds = [] { return false; };
  CHECK(n.places.try_end(at(0), holds) == NodePlaces::End::not_yet);
  CHECK(n.places.put_off(at(0)) == 0);
  CHECK(n.places.try_end(at(0), holds) == NodePlaces::End::now);
}

TEST_CASE("node places: a batch that is held is sent on before the end, and that comes again") {
  bool held = true;
  const auto holds = [&] { return held; };
  Node n(1, {1});
  n.places.end_input(at(0));
  CHECK(n.places.try_end(at(0), holds) == NodePlaces::End::flush);
  CHECK_FALSE(n.places.is_ended());
  CHECK(n.places.try_end(at(0), holds) == NodePlaces::End::not_yet);
  CHECK(n.places.offer(at(0), Came::again) == 1);
  n.places.begin(at(0), Came::again);
  held = false;
  CHECK(n.finish() == 0);
  CHECK(n.places.try_end(at(0), holds) == NodePlaces::End::now);
}

TEST_CASE("node places: a batch can be sent on before the input is over") {
  Node n(1, {1});
  CHECK_FALSE(n.places.try_flush(at(0), [] { return false; }));
  CHECK(n.places.try_flush(at(0), [] { return true; }));
  CHECK(n.now().again == 1);
}

TEST_CASE("node places: counts what passes, and what a source hands on later") {
  Node n(1, {9});
  n.come();
  n.begin();
  Finish f;
  f.gave = true;
  f.in = {1, 20, 300};
  f.out = {2, 30, 500};
  (void)n.places.finish(at(0), f);
  n.places.note_given({1, 1, 1});
  CHECK(n.places.taken_in().items == 1);
  CHECK(n.places.taken_in().bytes == 20);
  CHECK(n.places.taken_in().rows == 300);
  CHECK(n.places.given().items == 3);
  CHECK(n.places.given().bytes == 31);
  CHECK(n.now().out.rows == 501);
}

TEST_CASE("node places: where the time of each slot goes") {
  Node n(2, {1});
  // 0 to 1 s: both slots wait for input.
  n.come(1);  // admitted
  n.come(1);  // no place downstream
  // 1 to 3 s: one waits for a core, one for a place.
  n.begin(3);
  // 3 to 6 s: one is busy, one waits for a place.
  n.finish(6);
  // 6 to 7 s: one waits for a place; there is no other item.
  CHECK(n.places.free_place(at(7), 0) == 1);
  n.begin(7);
  n.places.end_input(at(8));
  // 8 to 9 s: one is busy, the other has nothing left to do.
  n.finish(9, false);
  n.places.try_end(at(9), [] { return false; });
  const NodePlaces::Snapshot s = n.now(10);
  CHECK(s.time.busy == 3 + 2);
  CHECK(s.time.waiting_core == 2);
  CHECK(s.time.blocked_output == 2 + 3 + 1);
  CHECK(s.time.waiting_input == 2 + 1 + 1);
  CHECK(s.time.idle_after_end == 1 + 2);
  CHECK(s.time.total() == 10 * 2);
  CHECK(s.peak_concurrency == 1);
  CHECK(s.max_depth == 2);
  CHECK(s.mean_depth == doctest::Approx((2 * 2 + 1 * 4) / 9.0));  // until the end
}

TEST_CASE("node places: where it waits for its queue to fill, nothing is ready or held back") {
  Node n(1, {}, 2);
  n.come(1);
  CHECK(n.now(3).time.waiting_input == 3);
}

TEST_CASE("node places: a moment that is past changes nothing") {
  Node n(1);
  n.come(5);
  n.begin(4);  // another thread read the clock earlier
  n.finish(6);
  const NodePlaces::Snapshot s = n.now(6);
  CHECK(s.time.busy == 1);
  CHECK(s.time.total() == 6);
}

namespace {

// A simple model with the same behaviour, which tracks each item.
struct Model {
  std::size_t concurrency;
  std::vector<std::size_t> most, used;  // of each branch
  std::size_t running = 0, called = 0, offered = 0, waiting = 0, again = 0;
  bool open = true;
  std::size_t start_level = 0;

  [[nodiscard]] std::size_t room() const {
    std::size_t least = concurrency - running - called;
    for (std::size_t i = 0; i < most.size(); ++i) least = std::min(least, most[i] - used[i]);
    return least;
  }
  std::size_t let_in() {
    std::size_t n = 0;
    for (; open && offered > 0 && room() > 0; ++n) {
      --offered;
      ++called;
      for (std::size_t& u : used) ++u;
    }
    return n;
  }
};

}  // namespace

TEST_CASE("node places: random sequences are counted as a plain model counts them") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto upto = [&random](std::size_t n) { return 1 + random() % n; };
    Model m;
    m.concurrency = upto(5);
    for (std::size_t i = random() % 4; i > 0; --i) m.most.push_back(upto(6));
    m.used.resize(m.most.size());
    m.start_level = random() % 3 == 0 ? upto(5) : 0;
    m.open = m.start_level <= 1;
    Node n(static_cast<int>(m.concurrency), m.most, m.start_level);
    // The admitted items, by the way they came; the items in the queue, and those not yet offered;
    // the items of each branch.
    std::vector<Came> called, offered;
    std::size_t arrived = 0;
    std::vector<std::size_t> behind(m.most.size());
    const auto check_let_in = [&](int got) {
      const std::size_t expected = m.let_in();
      CHECK(got == static_cast<int>(expected));
      // The queue decides which go first; here the first ones do.
      for (std::size_t i = 0; i < expected; ++i) {
        called.push_back(offered.front());
        offered.erase(offered.begin());
      }
    };
    double total = 0;
    for (int second = 1; second <= 200; ++second) {
      total = second;
      switch (random() % 8) {
        case 0: {
          const bool may_begin = random() % 2 == 0;
          const bool begins =
              may_begin && m.waiting == 0 && m.offered == 0 && m.open && m.room() > 0;
          CHECK(n.places.arrive(at(second), may_begin) == begins);
          if (begins) {
            ++m.called;
            for (std::size_t& u : m.used) ++u;
            called.push_back(Came::past_queue);
          } else {
            ++m.waiting;
            ++arrived;
          }
          break;
        }
        case 1:
          if (arrived == 0) break;
          --arrived;
          ++m.offered;
          offered.push_back(Came::by_queue);
          if (m.waiting >= m.start_level) m.open = true;
          check_let_in(n.places.offer(at(second), Came::by_queue));
          break;
        case 2:
          if (m.again == 0) break;
          --m.again;
          ++m.offered;
          offered.push_back(Came::again);
          if (m.waiting >= m.start_level) m.open = true;
          check_let_in(n.places.offer(at(second), Came::again));
          break;
        case 3: {
          if (called.empty()) break;
          const Came came = called.front();
          called.erase(called.begin());
          --m.called;
          if (came == Came::by_queue && random() % 4 == 0) {
            for (std::size_t& u : m.used) --u;
            ++arrived;
            check_let_in(n.places.put_off(at(second)));
            break;
          }
          ++m.running;
          if (came == Came::by_queue) --m.waiting;
          n.places.begin(at(second), came);
          break;
        }
        case 4:
        case 5: {
          if (m.running == 0) break;
          --m.running;
          Finish f;
          f.goes_on = random() % 3 == 0;
          f.gave = random() % 3 != 0;
          m.again += f.goes_on ? 1 : 0;
          for (std::size_t i = 0; i < m.used.size(); ++i) {
            m.used[i] -= f.gave ? 0 : 1;
            behind[i] += f.gave ? 1 : 0;
          }
          check_let_in(n.places.finish(at(second), f));
          break;
        }
        case 6: {
          if (behind.empty()) break;
          const std::size_t b = random() % behind.size();
          if (behind[b] == 0) break;
          --behind[b];
          --m.used[b];
          check_let_in(n.places.free_place(at(second), b));
          break;
        }
        case 7:
          if (m.again > 0 && random() % 2 == 0) {
            --m.again;
            n.places.forget(at(second));
          } else if (!m.open && m.waiting + m.offered > 0) {
            m.open = true;
            const std::optional<int> more = n.places.open(at(second));
            REQUIRE(more.has_value());
            check_let_in(*more);
          }
          break;
      }
      const NodePlaces::Snapshot s = n.now(second);
      REQUIRE(s.running == static_cast<int>(m.running));
      REQUIRE(s.waiting == m.waiting);
      REQUIRE(s.again == m.again);
      REQUIRE(s.free == static_cast<std::ptrdiff_t>(m.room()));
      REQUIRE(m.running + m.called <= m.concurrency);
    }
    CHECK(n.now(200).time.total() ==
          doctest::Approx(total * static_cast<double>(m.concurrency)).epsilon(1e-12));
  }
}

}  // namespace melflow::node_places_test
