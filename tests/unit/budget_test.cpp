#include "pipeline/stage/budget.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "tests/support/watchdog.h"

namespace melflow::budget_test {

TEST_CASE("budget: reservations add up to the capacity and not a byte more") {
  MemoryBudget budget(1000, 0);
  auto a = Reservation::try_make(budget, 400, Claim::later);
  auto b = Reservation::try_make(budget, 600, Claim::later);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(budget.used() == 1000);
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::later));
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::oldest_item));
  a.reset();
  CHECK(budget.used() == 600);
  CHECK(Reservation::try_make(budget, 400, Claim::later));
  CHECK(budget.peak() == 1000);
  CHECK(budget.capacity() == 1000);
}

TEST_CASE("budget: a reservation shrinks, gives back what is left of it, and never grows") {
  MemoryBudget budget(1000, 0);
  int told = 0;
  budget.on_release([&] { ++told; });
  auto a = Reservation::try_make(budget, 800, Claim::later);
  CHECK_FALSE(Reservation::try_make(budget, 700, Claim::later));
  a->shrink(300);
  CHECK(budget.used() == 300);
  CHECK(told == 1);
  a->shrink(301);
  CHECK(budget.used() == 300);
  CHECK(told == 1);
  CHECK(Reservation::try_make(budget, 700, Claim::later));
  a.reset();
  CHECK(budget.used() == 0);
}

TEST_CASE(
    "budget: what a stage keeps of an item is all that stays reserved, unless others have it, "
    "too") {
  MemoryBudget budget(1000, 0);
  const auto own = Reservation::try_make(budget, 400, Claim::later);
  const auto origins_of = [](std::shared_ptr<const Reservation> reservation) {
    Origins out(1);
    out.front().reservation = std::move(reservation);
    return std::make_shared<const Origins>(std::move(out));
  };
  const auto keep = [](const Item& item) {
    alignas(RunContext) std::byte no_run[sizeof(RunContext)];
    ItemContext(reinterpret_cast<RunContext&>(no_run), item, 0).keep_only(0, 100);
  };
  Item item;
  item.origins = origins_of(own);
  keep(item);  // the test holds it, too
  CHECK(budget.used() == 400);
  item.origins = origins_of(Reservation::try_make(budget, 500, Claim::later));
  {
    const auto of_another_branch = std::make_unique<Item>(item);
    keep(item);
    CHECK(budget.used() == 900);
  }
  keep(item);
  CHECK(budget.used() == 500);
}

TEST_CASE("budget: only the oldest item may use the reserve") {
  MemoryBudget budget(1000, 300);
  const auto a = Reservation::try_make(budget, 700, Claim::later);
  REQUIRE(a);
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::later));
  const auto b = Reservation::try_make(budget, 300, Claim::oldest_item);
  CHECK(b);
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::oldest_item));
}

TEST_CASE("budget: whoever uses the reserve leaves the others less, never more") {
  MemoryBudget budget(1000, 300);
  const auto oldest = Reservation::try_make(budget, 500, Claim::oldest_item);
  REQUIRE(oldest);
  CHECK_FALSE(Reservation::try_make(budget, 201, Claim::later));
  CHECK(Reservation::try_make(budget, 200, Claim::later));
}

TEST_CASE("budget: of the reserve, an outer stage leaves what the blocks behind it need") {
  MemoryBudget budget(1000, 300, 50);
  const auto others = Reservation::try_make(budget, 700, Claim::later);
  CHECK_FALSE(Reservation::try_make(budget, 151, Claim::oldest_item, 100));
  const auto outer = Reservation::try_make(budget, 150, Claim::oldest_item, 100);
  REQUIRE(outer);
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::oldest_item, 100));
  CHECK(Reservation::try_make(budget, 100, Claim::oldest_item));
  // Never more than the reserve.
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::oldest_item, 10'000));
}

TEST_CASE("budget: a reserve larger than the capacity is the whole capacity") {
  MemoryBudget budget(100, 1000);
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::later));
  CHECK(Reservation::try_make(budget, 100, Claim::oldest_item));
}

TEST_CASE("budget: a request larger than everything is refused, not wrapped around") {
  MemoryBudget budget(100, 0);
  const auto some = Reservation::try_make(budget, 50, Claim::oldest_item);
  CHECK_FALSE(Reservation::try_make(budget, static_cast<std::size_t>(-1), Claim::oldest_item));
  CHECK_FALSE(Reservation::try_make(budget, static_cast<std::size_t>(-40), Claim::oldest_item));
  CHECK(budget.used() == 50);
}

TEST_CASE(
    "budget: a returned reservation that others asked for is announced once, after its bytes are "
    "back") {
  MemoryBudget budget(100, 0);
  int calls = 0;
  budget.on_release([&] {
    ++calls;
    // No lock is held: asking again from here must not hang.
    CHECK(Reservation::try_make(budget, 0, Claim::later));
    CHECK(budget.used() == 0);
  });
  auto reservation = Reservation::try_make(budget, 100, Claim::later);
  auto shared = reservation;
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::later));
  reservation.reset();
  CHECK(calls == 0);
  shared.reset();
  CHECK(calls == 1);
  CHECK(Reservation::try_make(budget, 100, Claim::later));  // nobody waits when it is released
  CHECK(calls == 1);
  budget.on_release({});
}

TEST_CASE("budget: a replaced callback is not called any more once on_release() has returned") {
  const test::Watchdog watchdog("budget: told no more");
  MemoryBudget budget(100, 0);
  std::atomic<bool> is_told{false}, is_replaced{false};
  bool was_replaced = false;
  budget.on_release([&] {
    is_told = true;
    // Gives on_release() time to return, in case it does not wait.
    for (int i = 0; i < 100'000 && !is_replaced; ++i) std::this_thread::yield();
    was_replaced = is_replaced;
  });
  auto reservation = Reservation::try_make(budget, 100, Claim::later);
  CHECK_FALSE(Reservation::try_make(budget, 1, Claim::later));
  std::thread late([&] { reservation.reset(); });
  while (!is_told) std::this_thread::yield();
  budget.on_release({});
  is_replaced = true;
  late.join();
  CHECK_FALSE(was_replaced);
}

TEST_CASE("budget: hard cap under contention") {
  const test::Watchdog watchdog("budget: hard cap");
  constexpr std::size_t kCapacity = 10000, kReserve = 2500;
  MemoryBudget budget(kCapacity, kReserve);
  std::atomic<std::size_t> held{0};
  std::atomic<int> over{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      const bool oldest = t == 0;
      for (int i = 0; i < 20000; ++i) {
        const std::size_t bytes = 1 + random() % 4000;
        const auto reservation =
            Reservation::try_make(budget, bytes, oldest ? Claim::oldest_item : Claim::later);
        if (!reservation) continue;
        // Counted after taking and before releasing, so never more than is really held.
        if (held.fetch_add(bytes) + bytes > kCapacity) ++over;
        if (budget.used() > kCapacity) ++over;
        held.fetch_sub(bytes);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(over == 0);
  CHECK(budget.used() == 0);
  CHECK(budget.peak() <= kCapacity);
  CHECK(budget.peak() > kReserve);
}

}  // namespace melflow::budget_test
