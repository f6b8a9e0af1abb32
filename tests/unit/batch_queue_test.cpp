// The queue between threads that make batches and the program that takes them.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stages/training/batch_queue.h"

using namespace melflow;

namespace {

constexpr double kLong = 100;  // [s]

int taken(BatchQueue<int>& queue) {
  int batch = -1;
  CHECK(queue.take(batch, kLong) == TakeResult::batch);
  return batch;
}

}  // namespace

TEST_CASE("batch queue: batches are taken in order, whichever is made first") {
  BatchQueue<int> queue(3, 4);
  CHECK(queue.begin() == 0);
  queue.put(0, 10);
  CHECK(queue.begin() == 1);
  CHECK(queue.begin() == 2);
  queue.put(2, 12);
  CHECK(taken(queue) == 10);
  int batch = -1;
  CHECK(queue.take(batch, 0) == TakeResult::nothing_yet);
  queue.put(1, 11);
  CHECK(taken(queue) == 11);
  CHECK(taken(queue) == 12);
  CHECK(queue.begin() == 3);
  CHECK_FALSE(queue.begin());  // there are four
  queue.put(3, 13);
  CHECK(taken(queue) == 13);
  CHECK(queue.take(batch, kLong) == TakeResult::ended);
}

TEST_CASE("batch queue: no more than its capacity are begun, and none before the first is there") {
  BatchQueue<int> queue(2);
  std::vector<int> made;
  std::thread maker([&] {
    for (int i = 0; queue.put(i); ++i) made.push_back(i);
  });
  for (int i = 0; i < 50; ++i) CHECK(taken(queue) == i);
  CHECK(queue.waiting() <= 2);
  queue.close();
  maker.join();
  CHECK(made.size() <= 52);

  BatchQueue<int> first(4);
  CHECK(first.begin() == 0);
  bool is_there = false;  // guarded by the queue: begin() returns behind put()
  std::thread other([&] {
    CHECK(first.begin() == 1);
    CHECK(is_there);
  });
  is_there = true;
  first.put(0, 0);
  other.join();
  CHECK(first.look(2) == 2);  // behind those that are begun
  CHECK(first.look(2) == 3);
}

TEST_CASE(
    "batch queue: an error comes behind the batches that are there, a closed queue has none") {
  BatchQueue<int> queue(2);
  CHECK(queue.put(1));
  CHECK(queue.begin() == 1);
  queue.fail(std::make_exception_ptr(std::runtime_error("bad")));
  CHECK_FALSE(queue.put(2));
  CHECK(taken(queue) == 1);
  int batch = -1;
  CHECK_THROWS_WITH((void)queue.take(batch, kLong), "bad");
  BatchQueue<int> closed(2);
  CHECK(closed.put(1));
  closed.close();
  CHECK(closed.take(batch, kLong) == TakeResult::ended);
  CHECK_FALSE(closed.look(1));
}
