// Measures the way from host memory through a device and back, as in a run, by cuda::SlotPool.
//
// link    samples lie in page-locked memory already: copies and kernels alone
// packed  samples come from ordinary memory and rows return there, copied by one thread per stream,
//         as by the nodes h2d and rows

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "bench.h"
#include "cuda/error.h"
#include "cuda/slot_pool.h"
#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow::bench {
namespace {

using Clock = std::chrono::steady_clock;

void fill(cuda::Slot& slot, const Pack& pack) {
  std::memcpy(slot.offsets(), pack.offsets.data(), pack.frames() * sizeof(std::uint32_t));
  std::memcpy(slot.samples(), pack.samples.data(), pack.sample_bytes());
}

void submit(cuda::Slot& slot, const Pack& pack, cuda::Completions& done) {
  slot.submit(cuda::SampleType::int16, pack.sample_bytes(), pack.frames());
  slot.when_done(done, &slot);
}

// Waits before `done` is destroyed, since batches in flight are posted there.
struct FinishAtEnd {
  const std::vector<cuda::SlotPool::Lease>& slots;
  ~FinishAtEnd() {
    for (const auto& slot : slots) slot->finish();
  }
};

// Returns the next tags; throws where a slot's device has failed and no more will come.
std::vector<void*> next(cuda::Completions& done, const std::vector<cuda::SlotPool::Lease>& slots) {
  std::vector<void*> tags;
  while (!done.wait(tags, 1.0))
    for (const auto& slot : slots) slot->check();
  return tags;
}

double link_seconds(cuda::SlotPool& slots, const Pack& pack, std::size_t batches) {
  std::vector<cuda::SlotPool::Lease> leases;
  for (std::size_t i = 0; i < slots.count(); ++i) {
    leases.push_back(slots.take());
    fill(*leases.back(), pack);
  }
  cuda::Completions done;
  const FinishAtEnd guard{leases};
  std::size_t started = 0, finished = 0;
  const auto begin = Clock::now();
  for (; started < std::min(batches, leases.size()); ++started)
    submit(*leases[started], pack, done);
  while (finished < batches) {
    for (void* tag : next(done, leases)) {
      ++finished;
      if (started == batches) continue;
      ++started;
      submit(*static_cast<cuda::Slot*>(tag), pack, done);
    }
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double packed_seconds(cuda::SlotPool& slots, const Pack& pack, std::size_t row_bytes,
                      std::size_t batches) {
  std::atomic<std::size_t> started{0};
  std::vector<std::exception_ptr> errors(slots.count());
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < slots.count(); ++t) {
      threads.emplace_back([&, t] {
        try {
          std::vector<std::byte> rows(row_bytes);
          cuda::Completions done;
          while (started++ < batches) {
            const std::vector<cuda::SlotPool::Lease> slot{slots.take()};
            const FinishAtEnd guard{slot};
            fill(*slot.front(), pack);
            submit(*slot.front(), pack, done);
            next(done, slot);
            std::memcpy(rows.data(), slot.front()->rows(), row_bytes);
          }
        } catch (...) {
          errors[t] = std::current_exception();
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  return seconds;
}

std::size_t bytes_in(const Pack& pack) {
  return pack.sample_bytes() + pack.frames() * sizeof(std::uint32_t);
}

Json figures(double seconds, std::size_t batches, const Pack& pack, std::size_t sample_bytes,
             std::size_t row_bytes, const Ceilings& ceilings) {
  const double each = static_cast<double>(batches) / seconds;
  const double in = static_cast<double>(sample_bytes) * each;
  const double out = static_cast<double>(row_bytes) * each;
  return {{"files_per_second", static_cast<double>(pack.files) * each},
          {"windows_per_second", static_cast<double>(pack.frames()) * each},
          {"bytes_per_second_in", in},
          {"bytes_per_second_out", out},
          {"share_of_link_in", in / ceilings.to_device},
          {"share_of_link_out", out / ceilings.from_device}};
}

struct Case {
  int slots = 0;
  NumberType rows = NumberType::float32;
  bool graphs = true;
};

Json measure(cuda::Gpus& gpus, int index, const std::shared_ptr<const cuda::FrontEnd>& front_end,
             const Pack& pack, const Case& one, const Effort& effort, const Ceilings& ceilings) {
  cuda::SlotSettings settings;
  settings.devices = {index};
  settings.slots = one.slots;
  settings.graphs = one.graphs;
  settings.kernel.rows = one.rows;
  settings.memory =
      std::make_shared<cuda::DeviceBudget>(std::size_t{16} << 30, std::size_t{16} << 30);
  try {
    cuda::SlotPool slots(gpus, front_end, settings, pack.sample_bytes(), pack.frames());
    const std::size_t row_bytes = slots.row_bytes(pack.frames());
    // Small batches are run in a quarter of the bytes.
    const std::size_t batches =
        std::max(effort.batches, effort.batches * effort.batch_bytes / pack.sample_bytes() / 4);
    std::vector<double> link, packed;
    for (int i = -1; i < std::max(3, effort.repetitions / 10); ++i) {
      const double a = link_seconds(slots, pack, batches);
      const double b = packed_seconds(slots, pack, row_bytes, batches);
      if (i < 0) continue;  // warm-up: from here on the slots have their recordings
      link.push_back(a);
      packed.push_back(b);
    }
    const auto of = [&](const std::vector<double>& seconds) {
      return figures(median(seconds), batches, pack, bytes_in(pack), row_bytes, ceilings);
    };
    return {{"slots_made", slots.count()},
            {"bytes_out_of_batch", row_bytes},
            {"link", of(link)},
            {"packed", of(packed)}};
  } catch (const std::exception& e) {
    return {{"error", e.what()}};
  }
}

std::string row(const Case& one, const Pack& pack, const Json& r) {
  const std::string begin = fmt::format("| {} | {:.1f} | {} | {} ", one.slots,
                                        static_cast<double>(bytes_in(pack)) / (1 << 20),
                                        to_text(one.rows), one.graphs ? "on" : "off");
  if (r.contains("error"))
    return fmt::format("{}| {} | | | | | | |\n", begin, r["error"].get<std::string>());
  const auto giga = [](const Json& value) { return value.get<double>() / 1e9; };
  const auto percent = [](const Json& value) { return 100 * value.get<double>(); };
  const Json &a = r["link"], &b = r["packed"];
  return fmt::format("{}| {} | {:.1f} | {:.1f} | {:.0f} % | {} | {:.1f} | {:.0f} % |\n", begin,
                     with_commas(a["files_per_second"]), giga(a["bytes_per_second_in"]),
                     giga(a["bytes_per_second_out"]), percent(a["share_of_link_in"]),
                     with_commas(b["files_per_second"]), giga(b["bytes_per_second_in"]),
                     percent(b["share_of_link_in"]));
}

}  // namespace

void measure_slots(cuda::Gpus& gpus, int index, const Geometry& geometry, const Effort& effort,
                   const Ceilings& ceilings, Report& report) {
  const auto front_end =
      std::make_shared<const cuda::FrontEnd>(kernel_front_end(MelPlan(geometry.options)));
  const Pack large(geometry, effort.batch_bytes), small(geometry, effort.small_batch_bytes);
  report.text(
      fmt::format("**{}**; batches of {} and {} files\n\n"
                  "| slots | in [MiB] | rows | graphs | link: files/s | in [GB/s] | out [GB/s] | "
                  "of the link, in | packed: files/s | in [GB/s] | of the link, in "
                  "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
                  geometry.name, large.files, small.files));
  const auto add = [&](const Pack& pack, const Case& one) {
    const Json found = measure(gpus, index, front_end, pack, one, effort, ceilings);
    report.text(row(one, pack, found));
    Json line{{"geometry", geometry.name},  {"slots", one.slots},
              {"bytes_in", bytes_in(pack)}, {"small", &pack == &small},
              {"rows", to_text(one.rows)},  {"graphs", one.graphs}};
    line.update(found);
    report.figures("slots", line);
  };
  for (const int slots : effort.slots) add(large, {slots});
  const int usual = cuda::SlotSettings{}.slots;
  add(large, {usual, NumberType::float16});  // bfloat16 has the same size
  add(small, {usual});
  for (const Pack* pack : {&large, &small}) add(*pack, {usual, NumberType::float32, false});
  report.text("\n");
}

}  // namespace melflow::bench
