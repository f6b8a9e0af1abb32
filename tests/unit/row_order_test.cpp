#include "stages/output/rows/row_order.h"
#include "pipeline/stage/reach.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "stages/features/mel/fit_step.h"

namespace melflow::row_order_test {
namespace {

std::shared_ptr<const MelPart> part(std::int64_t first_row, std::int64_t count, bool last) {
  auto p = std::make_shared<MelPart>();
  p->first_row = first_row;
  p->row_count = count;
  p->last = last;
  p->file = {8000, (first_row + count) * 100};
  return p;
}

// RowOrder with a disk, as the writer uses it: files are streams of a ledger, and a file's record
// is closed when nobody holds a piece of it any more.
class Writer {
 public:
  explicit Writer(std::size_t files)
      : order_(files, [this](std::size_t i) {
          const Outcome o = ledger_.outcome(i);
          return o != Outcome::open && o != Outcome::ok;
        }) {
    ledger_.open(files, {"test"});
    ledger_.subscribe([this](std::size_t i, Outcome o) {
      if (o == Outcome::ok) return;
      std::vector<PlacedPart> ready;
      order_.closed(i, ready);
      write(ready);
    });
    for (std::size_t i = 0; i < files; ++i)
      streams_.push_back(std::make_shared<Stream>(ledger_, Stream::Records{i}, 0, reach_));
  }

  void give(std::size_t file, std::shared_ptr<const MelPart> p) {
    if (streams_[file]->failed()) return;
    const bool last = p->last;
    std::vector<PlacedPart> ready;
    order_.take(file, std::move(p), {nullptr, streams_[file], true, last}, ready);
    if (last) streams_[file]->sink_done(0);
    write(ready);
  }
  void fail(std::size_t file) { streams_[file]->fail(0, ItemError::failed("test")); }
  /// Releases a file: nothing of it is in flight any more.
  void let_go(std::size_t file) { streams_[file].reset(); }

  [[nodiscard]] RowOrder& order() { return order_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  /// Returns, for each row on disk, its file and its row there.
  [[nodiscard]] const std::vector<std::pair<std::size_t, std::int64_t>>& disk() const {
    return disk_;
  }
  [[nodiscard]] const std::vector<std::int64_t>& complete_rows() const { return complete_; }

 private:
  void write(std::vector<PlacedPart>& ready) {
    for (const PlacedPart& p : ready) {
      const auto end = static_cast<std::size_t>(p.file_row + p.part->first_row + p.part->row_count);
      if (disk_.size() < end) disk_.resize(end);
      for (std::int64_t r = p.part->first_row; r < p.part->first_row + p.part->row_count; ++r)
        disk_[static_cast<std::size_t>(p.file_row + r)] = {p.file, r};
      complete_.resize(std::max(complete_.size(), p.file + 1), -1);
      if (p.file_rows >= 0) complete_[p.file] = p.file_rows;
    }
    ready.clear();  // releases the last pieces of files, which closes their records
  }

  Ledger ledger_;
  const Reach reach_ = Reach::plain(1, 1);
  RowOrder order_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::pair<std::size_t, std::int64_t>> disk_;
  std::vector<std::int64_t> complete_;
};

}  // namespace

TEST_CASE("row order: a file has as many rows as the steps that remain make of those that came") {
  auto steps = std::make_shared<UtteranceSteps>();
  steps->add(fit_step({.multiple = 8}));
  RowOrder order(2, [](std::size_t) { return false; });
  std::vector<PlacedPart> ready;
  const auto pending = [&](std::int64_t first, std::int64_t count, bool last) {
    auto out = std::make_shared<MelPart>(*part(first, count, last));
    out->pending = steps;
    return out;
  };
  order.take(0, pending(3, 2, true), {}, ready);  // overtook the block before it
  CHECK(ready.back().rows == -1);
  order.take(0, pending(0, 3, false), {}, ready);
  CHECK(ready.back().rows == 5);
  CHECK(ready.back().file_rows == 8);
  order.take(1, part(0, 5, true), {}, ready);
  CHECK(ready.back().file_row == 8);
  CHECK(ready.back().file_rows == 5);
  CHECK(order.rows(0) == 8);
  CHECK(order.offsets() == std::vector<std::int64_t>{0, 8});
  CHECK(order.total() == 13);
}

TEST_CASE("row order: what comes too early waits, the oldest file's blocks go at once") {
  RowOrder order(3, [](std::size_t) { return false; });
  std::vector<PlacedPart> ready;
  order.take(1, part(0, 4, true), {}, ready);
  CHECK(ready.empty());
  order.take(0, part(0, 2, false), {}, ready);
  REQUIRE(ready.size() == 1);
  CHECK(ready[0].file == 0);
  CHECK(ready[0].file_row == 0);
  CHECK(ready[0].file_rows == -1);
  order.take(0, part(2, 3, true), {}, ready);
  REQUIRE(ready.size() == 3);
  CHECK(ready[1].file_rows == 5);
  CHECK(ready[2].file == 1);
  CHECK(ready[2].file_row == 5);
  CHECK(ready[2].file_rows == 4);
  CHECK(order.total() == 9);
  CHECK(order.rows(0) == 5);
  CHECK(order.rows(1) == 4);
  CHECK(order.rows(2) == 0);
  CHECK(order.about(0).frames == 500);
  CHECK(order.about(0).sample_rate == 8000);
}

TEST_CASE("row order: blocks of a file that overtake each other complete it all the same") {
  RowOrder order(2, [](std::size_t) { return false; });
  std::vector<PlacedPart> ready;
  order.take(0, part(5, 2, true), {}, ready);
  order.take(0, part(0, 3, false), {}, ready);
  CHECK(order.total() == 0);
  order.take(0, part(3, 2, false), {}, ready);
  CHECK(order.total() == 7);
  REQUIRE(ready.size() == 3);
  CHECK(ready[2].file_rows == 7);
  // The longest time that any block knew.
  CHECK(order.about(0).frames == 700);
}

TEST_CASE("row order: sub-items are placed one behind the other, in whatever order blocks come") {
  std::vector<std::shared_ptr<const SubItem>> items;
  for (std::size_t i = 0; i < 3; ++i)
    items.push_back(std::make_shared<const SubItem>(SubItem{
        nullptr, nullptr, "takes", i, i, i == 2 ? std::optional(Span{0.5, 2}) : std::nullopt}));
  // A block of a file: its sub-item and its rows.
  struct Block {
    std::size_t item;
    std::int64_t first, count;
    bool last;
  };
  std::vector<Block> blocks{{0, 0, 3, false}, {0, 3, 2, true},  {1, 0, 4, true},
                            {2, 0, 1, false}, {2, 1, 1, false}, {2, 2, 0, true}};
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::shuffle(blocks.begin(), blocks.end(), random);
    RowOrder order(2, [](std::size_t) { return false; });
    std::vector<PlacedPart> ready;
    order.take(1, part(0, 2, true), {}, ready);
    CHECK(ready.empty());
    for (const Block& b : blocks) {
      Origin origin{nullptr, nullptr, true, b.item == 2 && b.last};
      origin.sub_item = items[b.item];
      order.take(0, part(b.first, b.count, b.last), origin, ready);
    }
    REQUIRE(ready.size() == 7);
    std::vector<int> times(13, 0);  // writes of each row
    int complete = 0;
    for (const PlacedPart& p : ready) {
      for (std::int64_t r = 0; r < p.part->row_count; ++r)
        ++times.at(static_cast<std::size_t>(p.row() + r));
      complete += p.rows >= 0 ? 1 : 0;
      if (p.file == 0) CHECK(p.file_rows == (&p == &ready[5] ? 11 : -1));
      CHECK_FALSE((p.file == 0 && p.is_whole()));
    }
    CHECK(complete == 4);
    CHECK(std::count(times.begin(), times.end(), 1) == 13);
    CHECK(ready.back().is_whole());
    CHECK(order.rows(0) == 11);
    CHECK(order.total() == 13);
    CHECK(order.about(0).results ==
          R"([{"rows": 5, "number": {"takes": 0}}, {"rows": 4, "number": {"takes": 1}}, )"
          R"({"rows": 2, "number": {"takes": 2}, "seconds": [0.500000, 2.000000]}])");
    CHECK(order.about(1).results.empty());
  }
}

TEST_CASE("row order: a file that leaves nothing is stepped over, whenever it is closed") {
  std::vector<bool> is_void(4, false);
  RowOrder order(4, [&](std::size_t i) { return static_cast<bool>(is_void[i]); });
  std::vector<PlacedPart> ready;
  order.take(0, part(0, 3, false), {}, ready);  // its earlier rows may be overwritten
  order.take(2, part(0, 2, true), {}, ready);
  is_void[1] = true;
  order.closed(1, ready);
  CHECK(ready.size() == 1);
  is_void[0] = true;
  order.closed(0, ready);
  REQUIRE(ready.size() == 2);
  CHECK(ready[1].file == 2);
  CHECK(ready[1].file_row == 0);
  is_void[3] = true;
  order.closed(3, ready);
  CHECK(order.total() == 2);
  CHECK(order.rows(0) == 0);
}

TEST_CASE("row order: a file without rows is complete with its last block") {
  RowOrder order(2, [](std::size_t) { return false; });
  std::vector<PlacedPart> ready;
  order.take(0, part(0, 0, true), {}, ready);
  order.take(1, part(0, 1, true), {}, ready);
  REQUIRE(ready.size() == 2);
  CHECK(ready[0].file_rows == 0);
  CHECK(ready[1].file_row == 0);
}

TEST_CASE("row order: a file that comes by several inputs is complete when it is by all") {
  std::vector<bool> is_void(4, false);
  RowOrder order(
      4, [&](std::size_t i) { return static_cast<bool>(is_void[i]); }, std::vector<std::size_t>{0},
      2);
  std::vector<PlacedPart> ready;
  order.take(1, part(0, 4, true), {}, ready, 1);  // waits for file 0
  order.take(0, part(0, 2, true), {}, ready, 1);
  REQUIRE(ready.size() == 1);
  CHECK(ready[0].input == 1);
  CHECK(ready[0].file_rows == 2);
  order.take(0, part(0, 0, false), {}, ready, 0);
  order.take(0, part(0, 3, true), {}, ready, 0);
  REQUIRE(ready.size() == 4);  // including the pieces of file 1
  CHECK(ready[1].file_rows == -1);
  CHECK(ready[2].file_rows == 3);
  CHECK(ready[3].file == 1);
  CHECK(ready[3].input == 1);
  is_void[1] = true;  // it does not come by the other input
  order.closed(1, ready);
  order.take(2, part(0, 5, true), {}, ready, 0);
  order.take(3, part(0, 6, true), {}, ready, 0);
  REQUIRE(ready.size() == 5);
  CHECK(ready[4].file == 2);
  order.take(2, part(0, 7, true), {}, ready, 1);
  REQUIRE(ready.size() == 7);
  CHECK(ready[5].file_rows == 7);
  CHECK(ready[6].file == 3);
  CHECK(order.rows(2) == 5);
}

TEST_CASE("row order: rows of a complete file can be forgotten") {
  RowOrder order(2, [](std::size_t) { return false; });
  std::vector<PlacedPart> ready;
  order.take(0, part(0, 3, true), {}, ready);
  order.take(1, part(0, 4, true), {}, ready);
  order.forget(0);
  CHECK(order.rows(0) == 0);
  CHECK(order.total() == 4);
}

TEST_CASE("row order: parts that wait can be dropped while their files are closed") {
  // Every stream that is dropped notifies the order while others are being dropped.
  Writer writer(50);
  for (std::size_t i = 1; i < 50; ++i) {
    writer.give(i, part(0, 2, false));
    writer.fail(i);
    writer.let_go(i);
  }
  CHECK(writer.ledger().counts().closed() == 0);
  writer.order().take_waiting().clear();
  CHECK(writer.ledger().counts().failed == 49);
  CHECK(writer.disk().empty());
}

TEST_CASE("row order: whatever the order of arrival, rows stand in file order without a gap") {
  std::mt19937 random(7);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const auto files = static_cast<std::size_t>(below(12)) + 1;
    Writer writer(files);
    // late: fails in another branch after all rows were taken; these stay until forget().
    enum class Fate { ok, nothing, midway, late };
    std::vector<Fate> fate(files);
    std::vector<std::int64_t> rows(files, 0);
    // The events of each file: its parts in some order, then perhaps a failure, then the end.
    struct Event {
      enum { give, fail, let_go } what;
      std::shared_ptr<const MelPart> part;
    };
    std::vector<std::vector<Event>> events(files);
    for (std::size_t f = 0; f < files; ++f) {
      fate[f] = static_cast<Fate>(below(10) < 6 ? 0 : 1 + below(3));
      std::vector<Event> parts;
      const int blocks = fate[f] == Fate::nothing ? 0 : 1 + below(5);
      for (int b = 0; b < blocks; ++b) {
        const int n = fate[f] == Fate::midway ? 1 + below(3) : below(4);
        parts.push_back({Event::give, part(rows[f], n, b + 1 == blocks)});
        rows[f] += n;
      }
      if (below(2) == 0) std::shuffle(parts.begin(), parts.end(), random);
      if (fate[f] == Fate::midway) {  // later parts are not taken any more
        parts.resize(static_cast<std::size_t>(below(blocks)));
        rows[f] = 0;
      }
      if (fate[f] != Fate::ok) parts.push_back({Event::fail, nullptr});
      parts.push_back({Event::let_go, nullptr});
      std::reverse(parts.begin(), parts.end());
      events[f] = std::move(parts);
    }
    for (std::size_t left = files; left > 0;) {
      auto f = static_cast<std::size_t>(below(static_cast<int>(files)));
      while (events[f].empty()) f = (f + 1) % files;
      const Event e = events[f].back();
      events[f].pop_back();
      if (e.what == Event::give) writer.give(f, e.part);
      if (e.what == Event::fail) writer.fail(f);
      if (e.what == Event::let_go) writer.let_go(f);
      if (events[f].empty()) --left;
    }
    std::int64_t at = 0;
    for (std::size_t f = 0; f < files; ++f) {
      CAPTURE(f);
      CHECK(writer.order().rows(f) == rows[f]);
      CHECK(writer.ledger().outcome(f) == (fate[f] == Fate::ok ? Outcome::ok : Outcome::failed));
      const bool complete = fate[f] == Fate::ok || fate[f] == Fate::late;
      if (complete) CHECK(writer.complete_rows().at(f) == rows[f]);
      for (std::int64_t r = 0; r < rows[f]; ++r, ++at)
        REQUIRE(writer.disk().at(static_cast<std::size_t>(at)) == std::pair(f, r));
    }
    CHECK(writer.order().total() == at);
    CHECK(writer.ledger().counts().closed() == files);
  }
}

}  // namespace melflow::row_order_test
