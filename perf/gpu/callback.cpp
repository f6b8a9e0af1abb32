// What the host's callback between the kernels and the copy back costs: the way of a batch,
// recorded with it and without, on as many slots as there are by default.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "bench.h"
#include "cuda/slot_pool.h"
#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Memory::Kind;

// A stream with its memory, as a slot has it, and the way of a batch recorded twice.
struct Way {
  Way(cuda::Gpu& gpu, const MelPlan& plan, const Pack& pack, std::size_t row_bytes)
      : program(gpu.make_mel(kernel_front_end(plan), {}, pack.frames())),
        scratch(gpu, Kind::device, program->scratch_bytes()),
        host_in(gpu, Kind::pinned, pack.sample_bytes()),
        device_in(gpu, Kind::device, pack.sample_bytes()),
        offsets(gpu, Kind::device, pack.frames() * sizeof(std::uint32_t)),
        count(gpu, Kind::device, sizeof(std::uint32_t)),
        rows(gpu, Kind::device, row_bytes),
        host_out(gpu, Kind::pinned, std::max(row_bytes, pack.frames() * sizeof(std::uint32_t))),
        stream(gpu.make_stream()) {
    const std::uint32_t frames = pack.frames();
    put(&frames, sizeof frames, count);
    put(pack.offsets.data(), frames * sizeof(std::uint32_t), offsets);
    std::memcpy(host_in.data(), pack.samples.data(), pack.sample_bytes());
    go(pack, row_bytes, true);  // kernels are loaded by a plain launch, not by a recorded one
    stream->wait();
    plain = stream->record([&] { go(pack, row_bytes, false); });
    with_callback = stream->record([&] { go(pack, row_bytes, true); });
  }

  void launch(bool has_callback) const { stream->launch(has_callback ? *with_callback : *plain); }

  std::atomic<long> calls{0};
  std::unique_ptr<cuda::MelProgram> program;
  Memory scratch, host_in, device_in, offsets, count, rows, host_out;
  std::unique_ptr<cuda::Stream> stream;
  std::unique_ptr<cuda::Recording> plain, with_callback;

 private:
  void put(const void* data, std::size_t bytes, const Memory& to) const {
    std::memcpy(host_out.data(), data, bytes);
    stream->copy_in(to.data(), host_out.data(), bytes);
    stream->wait();
  }
  void go(const Pack& pack, std::size_t row_bytes, bool has_callback) {
    const auto called = [](void* way) { ++static_cast<Way*>(way)->calls; };
    stream->copy_in(device_in.data(), host_in.data(), pack.sample_bytes());
    cuda::MelWork work;
    work.samples = device_in.data();
    work.offsets = static_cast<const std::uint32_t*>(offsets.data());
    work.n_frames = static_cast<const std::uint32_t*>(count.data());
    work.capacity = pack.frames();
    work.rows = rows.data();
    work.scratch = scratch.data();
    stream->mel(*program, work);
    if (has_callback) stream->call(called, this);
    stream->copy_out(host_out.data(), rows.data(), row_bytes);
    stream->call(called, this);  // that a batch is back is always told
  }
};

double files_per_second(std::vector<std::unique_ptr<Way>>& ways, const Pack& pack,
                        std::size_t batches, bool has_callback) {
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < batches; ++i) {
    Way& way = *ways[i % ways.size()];
    way.stream->wait();
    way.launch(has_callback);
  }
  for (const auto& way : ways) way->stream->wait();
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  return static_cast<double>(pack.files * batches) / seconds.count();
}

}  // namespace

void measure_callback(cuda::Gpu& gpu, const Geometry& geometry, const Effort& effort,
                      Report& report) {
  const MelPlan plan(geometry.options);
  report.text(
      fmt::format("**{}**; with and without a callback before the copy back\n\n"
                  "| in [MiB] | with: files/s | without: files/s |\n|---|---|---|\n",
                  geometry.name));
  for (const std::size_t bytes : {effort.batch_bytes, effort.small_batch_bytes}) {
    const Pack pack(geometry, bytes);
    const std::size_t row_bytes =
        pack.frames() * sizeof(float) * static_cast<std::size_t>(plan.columns());
    std::vector<std::unique_ptr<Way>> ways;
    for (int i = 0; i < cuda::SlotSettings{}.slots; ++i)
      ways.push_back(std::make_unique<Way>(gpu, plan, pack, row_bytes));
    std::vector<double> with, without;
    for (int i = -1; i < std::max(3, effort.repetitions / 10); ++i) {
      const double a = files_per_second(ways, pack, 4 * effort.batches, true);
      const double b = files_per_second(ways, pack, 4 * effort.batches, false);
      if (i < 0) continue;
      with.push_back(a);
      without.push_back(b);
    }
    report.text(fmt::format("| {:.1f} | {} | {} |\n", static_cast<double>(bytes) / (1 << 20),
                            with_commas(median(with)), with_commas(median(without))));
    report.figures("callback", {{"geometry", geometry.name},
                                {"small", bytes != effort.batch_bytes},
                                {"with", median(with)},
                                {"without", median(without)}});
  }
  report.text("\n");
}

}  // namespace melflow::bench
