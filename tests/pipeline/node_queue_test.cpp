// What a queue decides, without a graph and without a clock: moments are made up.
#include "pipeline/run/node_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "pipeline/stage/ledger.h"
#include "pipeline/stage/reach.h"

namespace melflow::node_queue_test {

using std::chrono::seconds;

namespace {

using Finish = NodeQueue::Finish;
using Works = std::vector<Work*>;

NodeQueue::Time at(int second) { return NodeQueue::Time{} + seconds(second); }

// Streams whose blocks come to a node. None is brought to its end: the ledger is not looked at.
class Streams {
 public:
  explicit Streams(std::size_t count) {
    ledger_.open(count, {"stage"});
    for (std::size_t i = 0; i < count; ++i)
      streams_.push_back(std::make_shared<Stream>(ledger_, Stream::Records{i}, 1, reach_));
  }
  // An item with a piece of each of these streams, as a batch has them.
  [[nodiscard]] Item pieces(const std::vector<std::size_t>& of) const {
    auto origins = std::make_shared<Origins>();
    for (const std::size_t i : of) origins->push_back({nullptr, streams_[i], false, false});
    return {std::move(origins), nullptr};
  }
  [[nodiscard]] Item whole(std::size_t i) const {
    return {std::make_shared<Origins>(Origins{{nullptr, streams_[i], true, true}}), nullptr};
  }

 private:
  Ledger ledger_;
  const Reach reach_ = Reach::plain(1, 1);
  std::vector<std::shared_ptr<Stream>> streams_;
};

// A node with branches behind it, and all work that ever came to it. The calls return the work that
// may begin.
struct Node {
  explicit Node(int concurrency, const std::vector<std::size_t>& branches = {},
                std::size_t start_level = 0, NodeQueue::Order order = NodeQueue::Order::blocks)
      : queue(concurrency, start_level, order, at(0)) {
    for (std::size_t most : branches) queue.add_branch(most);
  }
  Work& make(std::size_t index = 0) {
    Work& w = works.emplace_back();
    w.index = index;
    return w;
  }
  Works arrive(Work& w, int second = 0) {
    StartList list;
    const bool begins = queue.arrive(at(second), w, list);
    Works out = all(list);
    if (begins) out.push_back(&w);
    CHECK((w.queued.entry == Entry::direct) == begins);
    return out;
  }
  Works come(int second = 0) { return arrive(make(), second); }
  void begin(const Work& w, int second = 0) { queue.begin(at(second), w.queued.entry); }
  Works finish(Work& w, int second = 0, Finish f = {.gave = true}) {
    if (!f.goes_on) f.streams.swap(w.queued.streams);
    StartList list;
    queue.finish(at(second), f, list);
    return all(list);
  }
  Works free_token(std::size_t branch, int second = 0) {
    StartList list;
    queue.free_token(at(second), branch, list);
    return all(list);
  }
  Works resume(Work& w, int second = 0) {
    StartList list;
    queue.resume(at(second), w, list);
    return all(list);
  }
  static Works all(StartList& list) {
    Works out;
    while (Work* w = list.take()) out.push_back(w);
    return out;
  }
  [[nodiscard]] NodeQueue::Snapshot now(int second = 0) const { return queue.snapshot(at(second)); }

  NodeQueue queue;
  std::deque<Work> works;
};

bool nothing() { return false; }

}  // namespace

TEST_CASE("node queue: as many begin as the concurrency allows, the next when one is done") {
  Node n(2);
  Work &a = n.make(), &b = n.make(), &c = n.make();
  CHECK(n.arrive(a) == Works{&a});
  CHECK(n.arrive(b) == Works{&b});
  CHECK(n.arrive(c).empty());
  CHECK(n.now().waiting == 1);
  n.begin(a);
  n.begin(b);
  CHECK(n.now().running == 2);
  CHECK(n.finish(a) == Works{&c});
  CHECK(n.now().waiting == 1);  // it keeps its token in the queue until it begins
  n.begin(c);
  CHECK(n.now().waiting == 0);
}

TEST_CASE("node queue: the oldest source item goes first, of one the earliest block") {
  Node n(1);
  Work &first = n.make(), &b = n.make(7), &c = n.make(3), &d = n.make(3);
  c.count = 1;
  n.arrive(first);
  for (Work* w : {&b, &c, &d}) CHECK(n.arrive(*w).empty());
  n.begin(first);
  CHECK(n.finish(first) == Works{&d});
  n.begin(d);
  CHECK(n.finish(d) == Works{&c});
  n.begin(c);
  CHECK(n.finish(c) == Works{&b});
}

TEST_CASE("node queue: an item has a token in every queue behind before it begins") {
  Node n(3, {2, 1});
  Work &a = n.make(), &b = n.make();
  CHECK(n.arrive(a) == Works{&a});
  CHECK(n.arrive(b).empty());
  n.begin(a);
  CHECK(n.finish(a).empty());  // its output still has both tokens
  CHECK(n.free_token(0).empty());
  CHECK(n.free_token(1) == Works{&b});
}

TEST_CASE("node queue: who gave nothing gives its tokens back at once") {
  Node n(1, {1});
  Work &a = n.make(), &b = n.make();
  n.arrive(a);
  CHECK(n.arrive(b).empty());
  n.begin(a);
  CHECK(n.finish(a, 0, {}) == Works{&b});
}

TEST_CASE("node queue: who gave to some branches gives back its tokens in the others") {
  Node n(4, {1, 2, 1});
  Work &a = n.make(), &b = n.make(), &c = n.make();
  n.arrive(a);
  CHECK(n.arrive(b).empty());
  n.begin(a);
  const std::vector<std::size_t> given{1};
  const Finish f{.gave = true, .branches = &given};
  CHECK(n.finish(a, 0, f) == Works{&b});  // one more token there, one in each other branch
  CHECK(n.arrive(c).empty());
  n.begin(b);
  CHECK(n.finish(b, 0, f).empty());
  CHECK(n.free_token(1) == Works{&c});
}

TEST_CASE("node queue: a source's task holds tokens until it is known where it goes") {
  Node n(1, {1, 1});
  Work &a = n.make(), &cursor = n.make();
  n.arrive(a);
  n.begin(a);
  CHECK(n.finish(a, 0, {.goes_on = true, .gave = true}).empty());
  CHECK(n.now().announced == 1);
  StartList list;
  n.queue.sent_on(at(0), {1, 1, 1}, {0}, &cursor, list);
  CHECK(Node::all(list).empty());
  CHECK(n.now().announced == 0);
  CHECK(n.free_token(0) == Works{&cursor});
  CHECK(n.queue.given().items == 1);
}

TEST_CASE("node queue: who goes on is resumed without a token of the queue") {
  Node n(1, {4});
  Work& a = n.make();
  n.arrive(a);
  n.begin(a);
  CHECK(n.finish(a, 0, {.goes_on = true, .gave = true}).empty());
  CHECK(n.now().announced == 1);
  CHECK(n.resume(a) == Works{&a});
  CHECK(n.now().announced == 0);
  CHECK(n.now().waiting == 0);
  n.begin(a);
  CHECK(n.finish(a, 0, {.goes_on = true, .resumed = &a, .gave = true}) == Works{&a});
  n.begin(a);
  CHECK(n.now().running == 1);
  CHECK(n.finish(a).empty());
  CHECK(n.now().free == 1);  // of the concurrency
  n.queue.announce(at(0));
  n.queue.withdraw(at(0));
  CHECK(n.now().announced == 0);
}

TEST_CASE("node queue: who is put back begins when one more may, if it is the oldest then") {
  Node n(2);
  Work &a = n.make(5), &older = n.make(1);
  n.arrive(a);
  n.begin(a);
  CHECK(n.finish(a, 0, {.goes_on = true}).empty());
  n.queue.put_back(at(0), a);
  CHECK(n.now().announced == 1);
  StartList list;
  n.queue.announce(at(0));
  n.queue.put_back(at(0), older);
  n.queue.resume_oldest(at(0), list);
  CHECK(Node::all(list) == Works{&older});
  n.queue.resume_oldest(at(0), list);
  CHECK(Node::all(list) == Works{&a});
}

TEST_CASE("node queue: one that fills lets nobody in before its level, then all it can") {
  Node n(4, {}, 3);
  CHECK(n.come(1).empty());
  CHECK(n.come(2).empty());
  CHECK(n.come(4).size() == 3);
  CHECK(n.now(4).start_depth == 3);
  CHECK(n.now(4).start_wait_seconds == 3);
  StartList list;
  CHECK_FALSE(n.queue.open(at(5), list));
}

TEST_CASE("node queue: one that fills is opened with what there is, and not with nothing") {
  Node n(4, {}, 3);
  StartList list;
  CHECK_FALSE(n.queue.open(at(0), list));
  CHECK(n.come(1).empty());
  CHECK(n.queue.open(at(3), list));
  CHECK(Node::all(list).size() == 1);
  CHECK(n.now(3).start_depth == 1);
  CHECK(n.now(3).start_wait_seconds == 2);
}

// ---- the end ------------------------------------------------------------------------------------

TEST_CASE("node queue: ends when its input is over and nothing is left, once") {
  Node n(1);
  CHECK(n.queue.end_input(at(0)));
  CHECK_FALSE(n.queue.end_input(at(0)));
  CHECK(n.queue.may_end());
  CHECK(n.queue.try_end(at(0), nothing) == NodeQueue::End::now);
  CHECK(n.queue.is_ended());
  CHECK(n.queue.try_end(at(0), nothing) == NodeQueue::End::not_yet);
}

TEST_CASE("node queue: whatever is still here keeps it from its end") {
  const auto not_yet = [&](Node& n) {
    return n.queue.try_end(at(0), nothing) == NodeQueue::End::not_yet &&
           !n.queue.try_flush(at(0), [] { return true; });
  };
  Node called(1);
  Work &a = called.make(), &b = called.make();
  called.arrive(a);
  CHECK(not_yet(called));
  called.begin(a);
  CHECK(not_yet(called));
  called.arrive(b);
  called.finish(a);
  CHECK(not_yet(called));
  called.begin(b);
  called.finish(b);
  CHECK_FALSE(not_yet(called));
  Node filling(1, {}, 3);
  filling.come();
  CHECK(not_yet(filling));
  Node announced(1);
  announced.queue.announce(at(0));
  CHECK(not_yet(announced));
  announced.queue.put_back(at(0), announced.make());
  CHECK(not_yet(announced));
}

TEST_CASE("node queue: a batch that is held is sent on before the end, and that is announced") {
  bool held = true;
  const auto holds = [&] { return held; };
  Node n(1, {1});
  Work& flush = n.make();
  n.queue.end_input(at(0));
  CHECK(n.queue.try_end(at(0), holds) == NodeQueue::End::flush);
  CHECK_FALSE(n.queue.is_ended());
  CHECK(n.queue.try_end(at(0), holds) == NodeQueue::End::not_yet);
  CHECK(n.resume(flush) == Works{&flush});
  n.begin(flush);
  held = false;
  CHECK(n.finish(flush).empty());
  CHECK(n.queue.try_end(at(0), holds) == NodeQueue::End::now);
}

TEST_CASE("node queue: a batch can be sent on before the input is over") {
  Node n(1, {1});
  CHECK_FALSE(n.queue.try_flush(at(0), nothing));
  CHECK(n.queue.try_flush(at(0), [] { return true; }));
  CHECK(n.now().announced == 1);
}

// ---- accounts -----------------------------------------------------------------------------------

TEST_CASE("node queue: counts what passes, and the cost of visits") {
  Node n(1, {9});
  Work& a = n.make();
  n.arrive(a);
  n.begin(a);
  n.finish(a, 0, {.gave = true, .in = {1, 20, 300}, .out = {2, 30, 500}, .visit = {.took = 1000}});
  CHECK(n.queue.taken_in().items == 1);
  CHECK(n.queue.taken_in().bytes == 20);
  CHECK(n.queue.taken_in().rows == 300);
  CHECK(n.queue.given().items == 2);
  CHECK(n.now().out.rows == 500);
  CHECK(n.queue.meter().service().calls == (kMeasures ? 1 : 0));
}

TEST_CASE("node queue: where the time of each token goes") {
  Node n(2, {1});
  Work &a = n.make(), &b = n.make();
  // 0 to 1 s: both tokens wait for input.
  n.arrive(a, 1);  // may begin
  n.arrive(b, 1);  // no token behind
  // 1 to 3 s: one waits for a core, one for a token.
  n.begin(a, 3);
  // 3 to 6 s: one is busy, one waits for a token.
  n.finish(a, 6);
  // 6 to 7 s: one waits for a token; there is no other item.
  CHECK(n.free_token(0, 7) == Works{&b});
  n.begin(b, 7);
  n.queue.end_input(at(8));
  // 8 to 9 s: one is busy, the other has nothing more to do.
  n.finish(b, 9, {});
  n.queue.try_end(at(9), nothing);
  const NodeQueue::Snapshot s = n.now(10);
  CHECK(s.time.busy == 3 + 2);
  CHECK(s.time.waiting_core == 2);
  CHECK(s.time.blocked_output == 2 + 3 + 1);
  CHECK(s.time.waiting_input == 2 + 1 + 1);
  CHECK(s.time.idle_after_end == 1 + 2);
  CHECK(s.time.total() == 10 * 2);
  CHECK(s.peak_concurrency == 1);
  CHECK(s.max_depth == 1);
  CHECK(s.mean_depth == doctest::Approx(1 * 6 / 9.0));  // until it ended
}

TEST_CASE("node queue: where it waits for its queue to fill, nothing is ready or held back") {
  Node n(1, {}, 2);
  n.come(1);
  CHECK(n.now(3).time.waiting_input == 3);
}

TEST_CASE("node queue: a moment that is past changes nothing") {
  Node n(1);
  Work& a = n.make();
  n.arrive(a, 5);
  n.begin(a, 4);  // another thread looked at the clock before
  n.finish(a, 6);
  const NodeQueue::Snapshot s = n.now(6);
  CHECK(s.time.busy == 1);
  CHECK(s.time.total() == 6);
}

// ---- blocks of a stream, in order ---------------------------------------------------------------

TEST_CASE("node queue: blocks of one stream begin one at a time, in the order in which they came") {
  const Streams streams(2);
  Node n(8);
  Work &a = n.make(), &b = n.make(), &c = n.make(), &other = n.make();
  for (Work* w : {&a, &b, &c}) w->items = {streams.pieces({0})};
  other.items = {streams.pieces({1})};
  c.count = 0, b.count = 7;  // the order of arrival counts
  CHECK(n.arrive(a) == Works{&a});
  CHECK(n.arrive(b).empty());
  CHECK(n.arrive(c).empty());
  CHECK(n.arrive(other) == Works{&other});  // streams do not wait for each other
  CHECK(n.now().waiting == 2);
  n.begin(a);
  CHECK(n.finish(a, 0, {.goes_on = true}).empty());  // it is not through
  CHECK(n.resume(a) == Works{&a});
  n.begin(a);
  CHECK(n.finish(a) == Works{&b});
  n.begin(b);
  CHECK(n.finish(b) == Works{&c});
}

TEST_CASE("node queue: a block waits also where its work has the address of the one before") {
  const Streams streams(2);
  Node n(2);
  Work& w = n.make();
  w.items = {streams.pieces({0, 1})};
  CHECK(n.arrive(w) == Works{&w});
  n.begin(w);
  Finish f{.gave = true, .streams = std::move(w.queued.streams)};
  // The output is sent on, processed and destroyed before the node gets to finish().
  std::destroy_at(&w);
  std::construct_at(&w);
  w.items = {streams.pieces({0}), streams.pieces({1}), streams.pieces({0})};
  CHECK(n.arrive(w).empty());
  CHECK(n.now().waiting == 1);
  StartList list;
  n.queue.finish(at(0), f, list);
  CHECK(Node::all(list) == Works{&w});
  n.begin(w);
  CHECK(n.finish(w).empty());
  CHECK(n.queue.drain().empty());
}

TEST_CASE("node queue: a whole file waits for no block, and only both marks make a whole file") {
  const Streams streams(1);
  Node n(8);
  Work &block = n.make(), &whole = n.make(), &last = n.make();
  block.items = {streams.pieces({0})};
  whole.items = {streams.whole(0)};
  last.items = {{std::make_shared<Origins>(*streams.pieces({0}).origins), nullptr}};
  const_cast<Origin&>(last.items[0].origins->front()).last = true;
  n.arrive(block);
  CHECK(n.arrive(whole) == Works{&whole});
  CHECK(n.arrive(last).empty());
}

TEST_CASE(
    "node queue: a batch waits for a block of each of its streams, and holds up all of them") {
  const Streams streams(3);
  Node n(8);
  Work &a = n.make(), &b = n.make(), &batch = n.make(), &next = n.make();
  a.items = {streams.pieces({0})};
  b.items = {streams.pieces({1})};
  batch.items = {streams.pieces({0, 1, 0}), streams.pieces({0})};
  next.items = {streams.pieces({1})};
  n.arrive(a);
  n.arrive(b);
  CHECK(n.arrive(batch).empty());
  CHECK(n.arrive(next).empty());
  for (Work* w : {&a, &b}) n.begin(*w);
  CHECK(n.finish(b).empty());
  CHECK(n.finish(a) == Works{&batch});
  n.begin(batch);
  CHECK(n.finish(batch) == Works{&next});
}

TEST_CASE("node queue: blocks behind one that waits for memory can give their tokens to others") {
  const Streams streams(1);
  Node n(8);
  Work &a = n.make(), &b = n.make();
  for (Work* w : {&a, &b}) w->items = {streams.pieces({0})};
  n.arrive(a);
  b.sent = {.node = 4, .sender = nullptr, .branch = 2};
  n.arrive(b);
  n.begin(a);
  n.finish(a, 0, {.goes_on = true});
  const std::vector<Work::Sent> senders = n.queue.release_tokens(at(0));
  REQUIRE(senders.size() == 1);
  CHECK(senders[0].branch == 2);
  CHECK(b.sent.node == 4);
  CHECK(n.now().waiting == 0);
  CHECK(n.now().announced == 2);
  CHECK(n.queue.release_tokens(at(0)).empty());
  StartList list;
  Work::Queued& queued = a.queued;
  n.queue.cut_off(at(0), queued.streams, list);
  CHECK(Node::all(list) == Works{&b});
  CHECK(b.queued.entry == Entry::resumed);
  CHECK(n.now().announced == 0);
}

TEST_CASE("node queue: what is left at the end is given back once") {
  const Streams streams(2);
  Node n(1);
  Work &first = n.make(), &a = n.make(), &b = n.make(), &batch = n.make();
  a.items = {streams.pieces({0})};
  b.items = {streams.pieces({0})};
  batch.items = {streams.pieces({0, 1})};
  for (Work* w : {&first, &a, &b, &batch}) n.arrive(*w);
  Works left = n.queue.drain();
  std::sort(left.begin(), left.end());
  Works expected{&a, &b, &batch};
  std::sort(expected.begin(), expected.end());
  CHECK(left == expected);
}

// ---- against a plain model ----------------------------------------------------------------------

namespace {

// The same, decided anew from nothing but where each piece of work is.
struct Model {
  enum Place { waits, called, running, announced, put_back, left };
  struct Piece {
    Work* work;
    std::vector<std::size_t> streams;
    Place place = waits;
  };
  std::size_t concurrency = 1;
  std::vector<std::size_t> most, behind;  // tokens of each branch, and output that has one
  std::size_t extra = 0;                  // what is put back is not among what may begin
  bool open = true;
  std::vector<Piece> pieces;

  [[nodiscard]] std::size_t count(Place place) const {
    return static_cast<std::size_t>(std::count_if(
        pieces.begin(), pieces.end(), [&](const Piece& p) { return p.place == place; }));
  }
  [[nodiscard]] std::size_t room() const {
    const std::size_t busy = count(called) + count(running);
    std::size_t least = concurrency - busy;
    for (std::size_t i = 0; i < most.size(); ++i)
      least = std::min(least, most[i] - behind[i] - busy);
    return least;
  }
  [[nodiscard]] bool is_first(std::size_t i) const {
    for (std::size_t k = 0; k < i; ++k)
      for (const std::size_t s : pieces[k].streams)
        if (pieces[k].place != left &&
            std::count(pieces[i].streams.begin(), pieces[i].streams.end(), s) > 0)
          return false;
    return true;
  }
  // The work that begins now, of which it takes note. `arrived` goes past what is put back.
  Works let_in(Piece* arrived = nullptr) {
    Works out;
    for (;;) {
      std::size_t ready = 0;
      Piece* oldest = nullptr;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        Piece& p = pieces[i];
        if (p.place != put_back && (p.place != waits || !is_first(i))) continue;
        ++ready;
        if (oldest == nullptr || p.work->index < oldest->work->index) oldest = &p;
      }
      if (!open || ready <= extra || room() == 0) return out;
      if (arrived != nullptr && arrived->work->queued.entry == Entry::direct) oldest = arrived;
      oldest->place = called;
      out.push_back(oldest->work);
    }
  }
};

}  // namespace

TEST_CASE("node queue: random sequences are decided as a plain model decides them") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto upto = [&random](std::size_t n) { return 1 + random() % n; };
    const std::size_t stream_count = upto(4);
    const Streams streams(stream_count);
    Model m;
    m.concurrency = upto(5);
    for (std::size_t i = random() % 4; i > 0; --i) m.most.push_back(upto(6));
    m.behind.resize(m.most.size());
    const std::size_t start_level = random() % 3 == 0 ? upto(5) : 0;
    m.open = start_level <= 1;
    Node n(static_cast<int>(m.concurrency), m.most, start_level);
    const auto pick = [&](Model::Place place) -> Model::Piece* {
      std::vector<Model::Piece*> out;
      for (Model::Piece& p : m.pieces)
        if (p.place == place) out.push_back(&p);
      return out.empty() ? nullptr : out[random() % out.size()];
    };
    std::size_t queued = 0;  // work that has a token
    int second = 0;
    while (++second <= 200) {
      Works begin;
      Model::Piece* arrived = nullptr;
      switch (random() % 6) {
        case 0: {
          Work& w = n.make(static_cast<std::size_t>(second) * 7919 % 1009);
          Model::Piece piece{&w, {}};
          for (std::size_t k = random() % 3; k > 0; --k)
            piece.streams.push_back(random() % stream_count);
          if (!piece.streams.empty()) w.items = {streams.pieces(piece.streams)};
          m.pieces.push_back(piece);
          arrived = &m.pieces.back();
          if (!m.open && queued + 1 >= start_level) m.open = true;
          begin = n.arrive(w, second);
          queued += w.queued.entry == Entry::queued ? 1 : 0;
          break;
        }
        case 1: {
          Model::Piece* p = pick(Model::called);
          if (p == nullptr) break;
          queued -= p->work->queued.entry == Entry::queued ? 1 : 0;
          n.begin(*p->work, second);
          p->place = Model::running;
          break;
        }
        case 2:
        case 3: {
          Model::Piece* p = pick(Model::running);
          if (p == nullptr) break;
          Finish f;
          f.goes_on = random() % 3 == 0;
          f.gave = !m.most.empty() && random() % 3 != 0;
          std::vector<std::size_t> given;
          for (std::size_t b = 0; b < m.most.size(); ++b)
            if (f.gave && random() % 2 == 0) given.push_back(b), ++m.behind[b];
          f.branches = &given;
          if (f.goes_on && random() % 2 == 0) f.resumed = p->work;
          p->place = f.resumed != nullptr ? Model::put_back
                     : f.goes_on          ? Model::announced
                                          : Model::left;
          begin = n.finish(*p->work, second, f);
          break;
        }
        case 4: {
          if (m.behind.empty()) break;
          const std::size_t b = random() % m.behind.size();
          if (m.behind[b] == 0) break;
          --m.behind[b];
          begin = n.free_token(b, second);
          break;
        }
        case 5: {
          Model::Piece* p = pick(Model::announced);
          StartList list;
          if (p != nullptr && random() % 2 == 0) {
            p->place = Model::put_back;
            begin = n.resume(*p->work, second);
          } else if (p != nullptr) {
            p->place = Model::put_back;
            ++m.extra;
            n.queue.put_back(at(second), *p->work);
          } else if (m.extra > 0) {
            --m.extra;
            n.queue.resume_oldest(at(second), list);
            begin = Node::all(list);
          } else if (!m.open && m.count(Model::waits) > 0) {
            m.open = true;
            REQUIRE(n.queue.open(at(second), list));
            begin = Node::all(list);
          }
          break;
        }
      }
      REQUIRE(begin == m.let_in(arrived));
      const NodeQueue::Snapshot s = n.now(second);
      REQUIRE(s.running == static_cast<int>(m.count(Model::running)));
      REQUIRE(s.waiting == queued);
      REQUIRE(s.announced == m.count(Model::announced) + m.extra);
      REQUIRE(s.free == static_cast<std::ptrdiff_t>(m.room()));
    }
    CHECK(n.now(200).time.total() ==
          doctest::Approx(200 * static_cast<double>(m.concurrency)).epsilon(1e-12));
  }
}

}  // namespace melflow::node_queue_test
