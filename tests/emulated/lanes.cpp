// Compiled without sanitizers: the data that all lanes share here would look like races. So a lane
// must not call any function that other files may instantiate, too.
#include "tests/emulated/lanes.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#ifdef MELFLOW_LANES_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef MELFLOW_LANES_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace melflow::cuda {

extern thread_local unsigned char shared_memory[];
constexpr std::size_t fence_bytes = 4096;
alignas(256) thread_local unsigned char shared_memory[test::most_shared_bytes + fence_bytes]
    __attribute__((visibility("default")));

}  // namespace melflow::cuda

// Saves the registers that a function must preserve, stores the stack pointer in *from, and
// continues at `to`, which another call of this function or prepare() left.
extern "C" void melflow_switch_stack(void** from, void* to);
#if defined(__x86_64__)
asm(R"(
  .text
  .globl melflow_switch_stack
  .type melflow_switch_stack, @function
melflow_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size melflow_switch_stack, .-melflow_switch_stack
)");
#else
#error "the emulated device switches stacks on x86-64 only"
#endif

namespace melflow::test {
namespace {

constexpr unsigned warp = 32, most_threads = 1024;
constexpr std::size_t stack_bytes = std::size_t{256} << 10;
constexpr unsigned char fence = 0xFF;  // bytes of a NaN, detected where they are read

struct Fiber {
  void* stack_pointer = nullptr;
  std::byte* stack = nullptr;  // its lowest byte
  std::size_t size = stack_bytes;
  void* of_tsan = nullptr;
  void* of_asan = nullptr;
};

enum class At { begin, warp_barrier, block_barrier, end };

struct Lane : Fiber {
  At at = At::begin;
  int line = 0;
};

// The current launch. Lanes and the fiber that runs them take turns.
struct Running {
  Lane lanes[most_threads];
  Fiber scheduler;
  void (*kernel)(KernelLaunch::Argument) = nullptr;
  const KernelLaunch* launch = nullptr;
  unsigned thread = 0, block = 0;
  unsigned turn = 0;   // position in `order`
  unsigned first = 0;  // first thread of the current warp
  unsigned order[warp] = {};
  LaneOrder kind = LaneOrder::rising;
  std::uint64_t random = 1;
  LaneCounts counts;
  // Addresses that stand for barriers in ThreadSanitizer.
  char of_warp[most_threads / warp] = {}, of_block = 0;
};
Running g;

unsigned draw(unsigned below) {
  g.random ^= g.random << 13;
  g.random ^= g.random >> 7;
  g.random ^= g.random << 17;
  return static_cast<unsigned>((g.random >> 33) % below);
}

#ifdef MELFLOW_LANES_TSAN
void acquire(void* place) { __tsan_acquire(place); }
void release(void* place) { __tsan_release(place); }
#else
void acquire(void*) {}
void release(void*) {}
#endif

void go(Fiber& from, Fiber& to) {
#ifdef MELFLOW_LANES_ASAN
  __sanitizer_start_switch_fiber(&from.of_asan, to.stack, to.size);
#endif
#ifdef MELFLOW_LANES_TSAN
  __tsan_switch_to_fiber(to.of_tsan, __tsan_switch_to_fiber_no_sync);
#endif
  melflow_switch_stack(&from.stack_pointer, to.stack_pointer);
#ifdef MELFLOW_LANES_ASAN
  __sanitizer_finish_switch_fiber(from.of_asan, nullptr, nullptr);
#endif
}

// Switches from the current lane to the next one, or back to the scheduler.
void pass_on() {
  Lane& from = g.lanes[g.thread];
  const unsigned own = g.thread;
  if (++g.turn < warp) {
    g.thread = g.first + g.order[g.turn];
    go(from, g.lanes[g.thread]);
  } else {
    go(from, g.scheduler);
  }
  g.thread = own;
}

void* sync_of(At at) { return at == At::warp_barrier ? &g.of_warp[g.thread / warp] : &g.of_block; }

void wait(At at, int line) {
  Lane& lane = g.lanes[g.thread];
  lane.at = at;
  lane.line = line;
  if (at != At::end) ++g.counts.waits;
  release(sync_of(at));
  pass_on();
  acquire(sync_of(at));
}

[[noreturn]] void run_lane() {
#ifdef MELFLOW_LANES_ASAN
  __sanitizer_finish_switch_fiber(g.lanes[g.thread].of_asan, nullptr, nullptr);
#endif
  acquire(&g.of_block);
  g.kernel(g.launch->argument);
  wait(At::end, 0);
  abort();
}

void prepare(Lane& lane) {
  if (lane.stack == nullptr) {
    void* memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    lane.stack = static_cast<std::byte*>(memory);
    mprotect(memory, static_cast<std::size_t>(getpagesize()), PROT_NONE);
#ifdef MELFLOW_LANES_TSAN
    lane.of_tsan = __tsan_create_fiber(0);
#endif
  }
  lane.at = At::begin;
  // Six registers, then the return address; after these the stack is as after a call.
  void** top = reinterpret_cast<void**>(lane.stack + stack_bytes - 64);
  *top = reinterpret_cast<void*>(&run_lane);
  lane.stack_pointer = top - 6;
}

// ---- on the stack of the launching thread

std::string said(At at, int line) {
  return at == At::end ? "have ended"
                       : std::string("wait at ") +
                             (at == At::warp_barrier ? "__syncwarp()" : "__syncthreads()") +
                             " in line " + std::to_string(line);
}

// Runs a warp until all of its lanes wait or have ended.
std::string run_warp(unsigned first) {
  if (g.kind == LaneOrder::shuffled)
    for (unsigned i = warp - 1; i > 0; --i) {
      const unsigned other = draw(i + 1), held = g.order[i];
      g.order[i] = g.order[other];
      g.order[other] = held;
    }
  g.first = first;
  g.turn = 0;
  g.thread = first + g.order[0];
  go(g.scheduler, g.lanes[g.thread]);
  const Lane& one = g.lanes[first];
  for (unsigned i = 1; i < warp; ++i) {
    const Lane& other = g.lanes[first + i];
    if (other.at != one.at || other.line != one.line)
      return "a warp diverges: some of its lanes " + said(one.at, one.line) + ", others " +
             said(other.at, other.line);
  }
  return "";
}

std::string run_block() {
  const unsigned threads = g.launch->threads;
  for (unsigned i = 0; i < threads; ++i) prepare(g.lanes[i]);
  release(&g.of_block);
  const unsigned warps = threads / warp;
  unsigned next = 0;
  for (;;) {
    // Chooses a warp that can continue: the next in turn, the last one as long as it can, or any.
    const unsigned from = g.kind == LaneOrder::shuffled ? draw(warps) : next;
    unsigned chosen = warps;
    for (unsigned i = 0; i < warps && chosen == warps; ++i) {
      const unsigned w = g.kind == LaneOrder::falling ? warps - 1 - i : (from + i) % warps;
      const At at = g.lanes[w * warp].at;
      if (at == At::begin || at == At::warp_barrier) chosen = w;
    }
    if (chosen < warps) {
      next = (chosen + 1) % warps;
      if (std::string error = run_warp(chosen * warp); !error.empty()) return error;
      continue;
    }
    const Lane& one = g.lanes[0];
    for (unsigned w = 1; w < warps; ++w) {
      const Lane& other = g.lanes[w * warp];
      if (other.at != one.at || other.line != one.line)
        return "a block waits for ever: some of its warps " + said(one.at, one.line) + ", others " +
               said(other.at, other.line);
    }
    if (one.at == At::end) {
      acquire(&g.of_block);
      return "";
    }
    for (unsigned i = 0; i < threads; ++i) g.lanes[i].at = At::begin;  // continues all of them
  }
}

void fence_shared_memory(std::size_t bytes) {
  unsigned char* const memory = cuda::shared_memory;
  std::memset(memory, fence, bytes + cuda::fence_bytes);
#ifdef MELFLOW_LANES_ASAN
  ASAN_POISON_MEMORY_REGION(memory + bytes, cuda::fence_bytes);
#endif
}

bool is_fence_whole(std::size_t bytes) {
  const unsigned char* const behind = cuda::shared_memory + bytes;
#ifdef MELFLOW_LANES_ASAN
  ASAN_UNPOISON_MEMORY_REGION(behind, cuda::fence_bytes);
#endif
  for (std::size_t i = 0; i < cuda::fence_bytes; ++i)
    if (behind[i] != fence) return false;
  return true;
}

// Finds the bounds of this thread's own stack.
void find_own_stack(Fiber& fiber) {
  static thread_local void* stack = nullptr;
  static thread_local std::size_t size = 0;
  if (stack == nullptr) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) abort();
    pthread_attr_getstack(&attributes, &stack, &size);
    pthread_attr_destroy(&attributes);
  }
  fiber.stack = static_cast<std::byte*>(stack);
  fiber.size = size;
#ifdef MELFLOW_LANES_TSAN
  fiber.of_tsan = __tsan_get_current_fiber();
#endif
}

}  // namespace

std::string run_kernel(const KernelLaunch& launch, LaneOrder order, std::uint64_t seed) {
  if (launch.threads == 0 || launch.threads % warp != 0 || launch.threads > most_threads)
    return "a block of " + std::to_string(launch.threads) + " threads";
  if (launch.shared_bytes > most_shared_bytes)
    return "a block with " + std::to_string(launch.shared_bytes) + " bytes of shared memory";
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  find_own_stack(g.scheduler);
  g.launch = &launch;
  g.kernel = reinterpret_cast<void (*)(KernelLaunch::Argument)>(const_cast<void*>(launch.kernel));
  g.kind = order;
  g.random = seed | 1;
  for (unsigned i = 0; i < warp; ++i) g.order[i] = order == LaneOrder::falling ? warp - 1 - i : i;
  for (unsigned i = 0; i < launch.blocks; ++i) {
    g.block = order == LaneOrder::falling ? launch.blocks - 1 - i : i;
    ++g.counts.blocks;
    fence_shared_memory(launch.shared_bytes);
    std::string error = run_block();
    if (!is_fence_whole(launch.shared_bytes) && error.empty())
      error = "a block writes behind its shared memory";
    if (error.empty()) continue;
    // The block's lanes are abandoned where they wait.
    acquire(&g.of_block);
    for (char& of_warp : g.of_warp) acquire(&of_warp);
    return error;
  }
  return "";
}

LaneCounts lane_counts() { return g.counts; }

dim3 thread_index() { return dim3(g.thread); }
dim3 block_index() { return dim3(g.block); }
dim3 block_size() { return dim3(g.launch->threads); }
dim3 grid_size() { return dim3(g.launch->blocks); }
void count_read() { ++g.counts.reads; }
void wait_for_warp(int line) { wait(At::warp_barrier, line); }
void wait_for_block(int line) { wait(At::block_barrier, line); }

}  // namespace melflow::test
