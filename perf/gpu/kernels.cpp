// Measures the kernels alone. Each launch takes the next input set; all sets together are several
// times the L2 cache, so that every sample comes from the device's memory.
//
// The necessary bytes of a launch count: each sample and each window's position once, and each
// value of a row. Where windows overlap, repeated reads come from a cache and do not count. The
// rate of these bytes over the rate of a copy inside the device is the share of the memory ceiling.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>

#include "bench.h"
#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow::bench {
namespace {

using Kind = Memory::Kind;

// An input set on the device, with space for rows of any type.
struct Set {
  Set(cuda::Gpu& gpu, const Pack& pack, std::size_t columns)
      : samples(gpu, Kind::device, pack.sample_bytes()),
        offsets(gpu, Kind::device, pack.frames() * sizeof(std::uint32_t)),
        count(gpu, Kind::device, sizeof(std::uint32_t)),
        rows(gpu, Kind::device, pack.frames() * columns * sizeof(float)) {}
  Memory samples, offsets, count, rows;
};

void upload(cuda::Gpu& gpu, cuda::Stream& stream, const void* data, std::size_t bytes,
            const Memory& to) {
  const Memory pinned(gpu, Kind::pinned, bytes);
  std::memcpy(pinned.data(), data, bytes);
  stream.copy_in(to.data(), pinned.data(), bytes);
  stream.wait();
}

std::vector<std::unique_ptr<Set>> make_sets(cuda::Gpu& gpu, const Pack& pack, std::size_t columns,
                                            std::size_t count) {
  const auto stream = gpu.make_stream();
  const std::uint32_t frames = pack.frames();
  std::vector<std::unique_ptr<Set>> sets;
  for (std::size_t i = 0; i < count; ++i) {
    sets.push_back(std::make_unique<Set>(gpu, pack, columns));
    const Set& s = *sets.back();
    upload(gpu, *stream, pack.samples.data(), pack.sample_bytes(), s.samples);
    upload(gpu, *stream, pack.offsets.data(), frames * sizeof(std::uint32_t), s.offsets);
    upload(gpu, *stream, &frames, sizeof frames, s.count);
  }
  return sets;
}

struct Case {
  const char* name;
  cuda::KernelOptions options;
};

// The kernels of a case, for input sets of one pack.
struct Launcher {
  Launcher(cuda::Gpu& gpu, const MelPlan& plan, const Pack& pack, const Case& one)
      : frames(pack.frames()),
        program(gpu.make_mel(kernel_front_end(plan), one.options, frames)),
        scratch(gpu, Kind::device, program->scratch_bytes()),
        stream(gpu.make_stream()) {}
  void launch(const Set& s) {
    cuda::MelWork work;
    work.samples = s.samples.data();
    work.offsets = static_cast<const std::uint32_t*>(s.offsets.data());
    work.n_frames = static_cast<const std::uint32_t*>(s.count.data());
    work.capacity = frames;
    work.rows = s.rows.data();
    work.scratch = scratch.data();
    stream->mel(*program, work);
  }
  std::uint32_t frames;
  std::unique_ptr<cuda::MelProgram> program;
  Memory scratch;
  std::unique_ptr<cuda::Stream> stream;
};

constexpr Case fp32 = {"fused, fp32", {cuda::Path::fused, cuda::NumberType::float32, {}}};
constexpr Case fp16 = {"fused, fp16", {cuda::Path::fused, cuda::NumberType::float16, {}}};
constexpr Case bf16 = {"fused, bf16", {cuda::Path::fused, cuda::NumberType::bfloat16, {}}};

Json measure(cuda::Gpu& gpu, const MelPlan& plan, const Pack& pack, const Case& one,
             const std::vector<std::unique_ptr<Set>>& sets, const Effort& effort,
             const Ceilings& ceilings) {
  const std::uint32_t frames = pack.frames();
  Launcher kernels(gpu, plan, pack, one);
  const auto& stream = kernels.stream;
  kernels.launch(*sets.front());  // loads the kernels; recording a launch would not
  stream->wait();
  // Recorded as a graph, so that the device never waits for the host between two launches.
  const auto recording = stream->record([&] {
    stream->mark(0);
    for (const auto& s : sets) kernels.launch(*s);
    stream->mark(1);
  });
  std::vector<double> seconds;
  for (int i = -3; i < effort.repetitions; ++i) {
    stream->launch(*recording);
    stream->wait();
    if (i >= 0) seconds.push_back(stream->between(0, 1) / static_cast<double>(sets.size()));
  }
  const double launch = median(seconds);
  const std::size_t row_bytes =
      frames * size_of(one.options.rows) * static_cast<std::size_t>(plan.columns());
  const std::size_t bytes = pack.sample_bytes() + frames * sizeof(std::uint32_t) + row_bytes;
  const double rate = static_cast<double>(bytes) / launch;
  return {{"kernels", kernels.program->description()},
          {"launch_seconds", launch},
          {"best_seconds", *std::min_element(seconds.begin(), seconds.end())},
          {"files_per_second", static_cast<double>(pack.files) / launch},
          {"windows_per_second", static_cast<double>(frames) / launch},
          {"bytes_per_second", rate},
          {"share_of_memory", rate / ceilings.memory}};
}

std::string row(const char* name, const Json& r) {
  if (r.contains("error"))
    return fmt::format("| {} | {} | | | | |\n", name, r["error"].get<std::string>());
  return fmt::format(
      "| {} | {} | {} | {:.0f} | {:.0f} % | {:.1f} |\n", name, with_commas(r["files_per_second"]),
      with_commas(r["windows_per_second"]), r["bytes_per_second"].get<double>() / 1e9,
      100 * r["share_of_memory"].get<double>(), 1e6 * r["launch_seconds"].get<double>());
}

}  // namespace

void measure_kernels(cuda::Gpu& gpu, const Geometry& geometry, std::size_t l2_bytes,
                     const Effort& effort, const Ceilings& ceilings, Report& report) {
  using cuda::NumberType;
  using cuda::Path;
  const Case cases[] = {fp32,
                        fp16,
                        bf16,
                        {"fused, rows in fp16", {Path::fused, {}, NumberType::float16}},
                        {"fused, rows in bf16", {Path::fused, {}, NumberType::bfloat16}},
                        {"cuFFT", {Path::cufft, NumberType::float32, {}}}};
  const MelPlan plan(geometry.options);
  const Pack pack(geometry, effort.set_bytes);
  const std::size_t n_sets =
      std::max<std::size_t>(3, effort.sets_over_cache * l2_bytes / pack.sample_bytes() + 1);
  report.text(fmt::format(
      "**{}**; {} sets of {} files, {:.0f} MiB of samples each\n\n"
      "| kernels | files/s | windows/s | GB/s | of the memory ceiling | a launch [µs] |\n"
      "|---|---|---|---|---|---|\n",
      geometry.name, n_sets, pack.files, static_cast<double>(pack.sample_bytes()) / (1 << 20)));
  const auto sets = make_sets(gpu, pack, static_cast<std::size_t>(plan.columns()), n_sets);
  for (const Case& one : cases) {
    Json found;
    try {
      found = measure(gpu, plan, pack, one, sets, effort, ceilings);
    } catch (const std::exception& e) {
      found = {{"error", e.what()}};
    }
    report.text(row(one.name, found));
    Json line{{"geometry", geometry.name}, {"case", one.name}};
    line.update(found);
    report.figures("kernel", line);
  }
  report.text("\n");
}

void launch_kernels(cuda::Gpu& gpu, const Geometry& geometry, const Effort& effort,
                    const Report& report) {
  const MelPlan plan(geometry.options);
  const Pack pack(geometry, effort.set_bytes);
  report.text(fmt::format("windows={}\n", pack.frames()));
  const auto sets = make_sets(gpu, pack, static_cast<std::size_t>(plan.columns()), 1);
  for (const Case& one : {fp32, fp16, bf16}) {
    Launcher kernels(gpu, plan, pack, one);
    kernels.launch(*sets.front());
    kernels.stream->wait();
  }
}

}  // namespace melflow::bench
