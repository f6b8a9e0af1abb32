#include "pipeline/base/memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/watchdog.h"

namespace melflow::memory_test {

TEST_CASE("memory: a lease is aligned, as large as asked for, and at most a quarter larger") {
  BufferPool pool(1 << 30);
  for (std::size_t bytes : {0UL, 1UL, 4095UL, 4096UL, 4097UL, 5000UL, 65536UL, 65537UL, 100000UL,
                            262143UL, 262144UL, 262145UL, 1000000UL, (1UL << 24) + 1}) {
    CAPTURE(bytes);
    const Buffer b = pool.lease(bytes);
    REQUIRE(b);
    CHECK(b.size() == bytes);
    CHECK(b.capacity() >= bytes);
    CHECK(b.capacity() == BufferPool::rounded(bytes));
    CHECK((b.capacity() <= 4096 || b.capacity() <= bytes + bytes / 4));
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % 64 == 0);
    std::memset(b.data(), 0x5a, b.capacity());
  }
  for (std::size_t bytes = 1; bytes < 200000; bytes += 37) {
    const std::size_t r = BufferPool::rounded(bytes);
    REQUIRE(r >= bytes);
    REQUIRE(r % 64 == 0);
    REQUIRE((r == 4096 || r * 4 <= bytes * 5));
    REQUIRE(BufferPool::rounded(r) == r);
  }
}

TEST_CASE("memory: a view has a caller's bytes, and leaves them to it") {
  std::vector<std::byte> bytes(100, std::byte{7});
  Buffer view = Buffer::over(bytes);
  CHECK(view.data() == bytes.data());
  CHECK(view.size() == 100);
  const Buffer moved = std::move(view);
  CHECK(moved.data() == bytes.data());
  CHECK(!view);
  const BufferPool pool(1 << 20);
  { const Buffer other = Buffer::over(bytes); }
  CHECK(pool.kept() == 0);
  CHECK(bytes[99] == std::byte{7});
  CHECK(!Buffer::over({}));
}

TEST_CASE("memory: the buffer returned last is leased first") {
  BufferPool pool(1 << 20);
  std::byte *first, *second;
  {
    const Buffer a = pool.lease(10000);
    const Buffer b = pool.lease(10000);
    first = a.data();
    second = b.data();
    CHECK(first != second);
  }  // b is released first, then a
  CHECK(pool.leased() == 0);
  CHECK(pool.kept() == 2 * BufferPool::rounded(10000));
  const Buffer c = pool.lease(9999);
  CHECK(c.data() == first);
  CHECK(c.size() == 9999);
  const Buffer d = pool.lease(10001);
  CHECK(d.data() == second);
  CHECK(pool.allocations() == 2);
}

TEST_CASE("memory: leased and kept together stay below the limit") {
  constexpr std::size_t kLimit = 1 << 20;
  BufferPool pool(kLimit);
  std::mt19937 random(7);
  std::vector<Buffer> held;
  std::size_t total = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t bytes = 1 + random() % 100000;
    if (total + BufferPool::rounded(bytes) <= kLimit && random() % 3 != 0) {
      held.push_back(pool.lease(bytes));
      total += held.back().capacity();
    } else if (!held.empty()) {
      const std::size_t at = random() % held.size();
      total -= held[at].capacity();
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    }
    REQUIRE(pool.leased() == total);
    REQUIRE(pool.leased() + pool.kept() <= kLimit);
  }
}

TEST_CASE("memory: beyond the limit a lease still succeeds, and nothing is kept") {
  BufferPool pool(10000);
  {
    const Buffer large = pool.lease(300000);
    CHECK(large);
    CHECK(pool.leased() >= 300000);
  }
  CHECK(pool.leased() == 0);
  CHECK(pool.kept() == 0);
}

TEST_CASE("memory: the steady state takes nothing from the system") {
  BufferPool pool(16 << 20);
  const auto round = [&] {
    std::vector<Buffer> all;
    for (std::size_t bytes : {5000UL, 80000UL, 300000UL, 80000UL, 1000000UL})
      all.push_back(pool.lease(bytes));
  };
  round();
  const std::size_t after_first = pool.allocations();
  CHECK(after_first == 5);
  for (int i = 0; i < 1000; ++i) round();
  CHECK(pool.allocations() == after_first);
}

TEST_CASE(
    "memory: what other threads returned is leased before anything is taken from the system") {
  BufferPool pool(64 << 20);
  std::vector<Buffer> all;
  for (int i = 0; i < 20; ++i) all.push_back(pool.lease(100'000));
  std::thread([&] { all.clear(); }).join();
  CHECK(pool.leased() == 0);
  CHECK(pool.kept() == 20 * BufferPool::rounded(100'000));
  for (int i = 0; i < 20; ++i) all.push_back(pool.lease(100'000));
  CHECK(pool.allocations() == 20);
}

TEST_CASE(
    "memory: a lease of another size drives out what threads keep, where the limit wants it") {
  BufferPool pool(16 << 20);
  std::vector<Buffer> all;
  for (int i = 0; i < 4; ++i) all.push_back(pool.lease(80'000));
  all.clear();
  CHECK(pool.kept() > 0);
  const Buffer most = pool.lease(std::size_t{16} << 20);
  CHECK(pool.kept() == 0);
  CHECK(pool.leased() == most.capacity());
}

TEST_CASE("memory: threads that lease and return while the pool goes lose nothing") {
  for (int round = 0; round < 50; ++round) {
    auto pool = std::make_unique<BufferPool>(std::size_t{8} << 20);
    std::vector<std::thread> threads;
    std::vector<std::vector<Buffer>> held(4);
    for (std::vector<Buffer>& mine : held)
      for (int i = 0; i < 8; ++i) mine.push_back(pool->lease(5000));
    for (std::vector<Buffer>& mine : held) threads.emplace_back([&mine] { mine.clear(); });
    pool.reset();
    for (std::thread& t : threads) t.join();
  }
}

TEST_CASE("memory: buffers outlive their pool, in any order") {
  std::optional<BufferPool> pool(1 << 20);
  Buffer a = pool->lease(5000);
  Buffer b = pool->lease(300000);
  pool.reset();
  std::memset(a.data(), 1, a.size());
  std::memset(b.data(), 2, b.size());
  a = Buffer();
  CHECK_FALSE(a);
  b = std::move(a);
  CHECK_FALSE(b);
}

TEST_CASE("memory: a buffer that is moved goes back once, and self-exchange is safe") {
  BufferPool pool(1 << 20);
  {
    Buffer a = pool.lease(5000);
    Buffer b = std::move(a);
    CHECK_FALSE(a);  // NOLINT: the moved-from state is defined
    CHECK(b.size() == 5000);
    Buffer& same = b;
    b = std::move(same);
    CHECK(b);
    b = pool.lease(6000);
    CHECK(pool.leased() == BufferPool::rounded(6000));
  }
  CHECK(pool.leased() == 0);
}

TEST_CASE("memory: what the system refuses leaves the accounts as they were") {
  BufferPool pool(1 << 20);
  CHECK_THROWS_AS((void)pool.lease(std::size_t{1} << 60), std::bad_alloc);
  CHECK(pool.leased() == 0);
  CHECK(pool.lease(5000));
}

TEST_CASE("memory: many threads lease and return at once") {
  const test::Watchdog watchdog("memory: many threads");
  BufferPool pool(4 << 20);
  std::vector<std::thread> threads;
  std::atomic<int> mixed_up{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Buffer> held;
      for (int i = 0; i < 3000; ++i) {
        Buffer b = pool.lease(4096 + random() % 60000);
        // Another owner of this memory at the same time would write another number.
        std::memset(b.data(), static_cast<int>(t), 64);
        held.push_back(std::move(b));
        if (held.size() > 4) {
          const std::size_t at = random() % held.size();
          for (int k = 0; k < 64; ++k)
            if (held[at].as<unsigned char>()[k] != t) ++mixed_up;
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        }
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(mixed_up == 0);
  CHECK(pool.leased() == 0);
  CHECK(pool.kept() <= 4 << 20);
}

}  // namespace melflow::memory_test
