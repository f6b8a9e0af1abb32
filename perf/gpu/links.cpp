// Measures the ceilings of all transfers to a device and back: copies of page-locked memory.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench.h"

namespace melflow::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Memory::Kind;

enum class Way { in, out };

void copy(cuda::Stream& stream, Way way, const Memory& device, const Memory& host,
          std::size_t bytes, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i)
    way == Way::in ? stream.copy_in(device.data(), host.data(), bytes)
                   : stream.copy_out(host.data(), device.data(), bytes);
}

double one_way(cuda::Gpu& gpu, Way way, std::size_t bytes, const Effort& effort) {
  const Memory device(gpu, Kind::device, bytes), host(gpu, Kind::pinned, bytes);
  std::memset(host.data(), 1, bytes);
  const auto stream = gpu.make_stream();
  const std::size_t times = std::max<std::size_t>(1, effort.copied_bytes / 16 / bytes);
  std::vector<double> seconds;
  for (int i = -2; i < effort.repetitions; ++i) {
    stream->mark(0);
    copy(*stream, way, device, host, bytes, times);
    stream->mark(1);
    stream->wait();
    if (i >= 0) seconds.push_back(stream->between(0, 1));
  }
  return static_cast<double>(bytes * times) / median(seconds);
}

// Measures both directions at once by the host's clock, since no event spans two streams.
double both_ways(cuda::Gpu& gpu, const Effort& effort) {
  const std::size_t bytes = effort.copy_bytes;
  const Memory device_in(gpu, Kind::device, bytes), device_out(gpu, Kind::device, bytes);
  const Memory host_in(gpu, Kind::pinned, bytes), host_out(gpu, Kind::pinned, bytes);
  std::memset(host_in.data(), 1, bytes);
  const auto in = gpu.make_stream(), out = gpu.make_stream();
  const std::size_t times = std::max<std::size_t>(2, effort.copied_bytes / 2 / bytes);
  std::vector<double> seconds;
  for (int i = -1; i < std::max(3, effort.repetitions / 4); ++i) {
    const auto begin = Clock::now();
    for (std::size_t k = 0; k < times; ++k) {
      copy(*in, Way::in, device_in, host_in, bytes, 1);
      copy(*out, Way::out, device_out, host_out, bytes, 1);
    }
    in->wait();
    out->wait();
    if (i >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return static_cast<double>(2 * bytes * times) / median(seconds);
}

}  // namespace

void measure_links(cuda::Gpu& gpu, const Effort& effort, Ceilings& ceilings, Report& report) {
  report.text(
      "| size of a copy | host to device [GB/s] | device to host [GB/s] |\n|---|---|---|\n");
  for (std::size_t bytes = 256U << 10; bytes <= effort.copy_bytes; bytes *= 4) {
    const double in = one_way(gpu, Way::in, bytes, effort);
    const double out = one_way(gpu, Way::out, bytes, effort);
    report.text(fmt::format("| {} KiB | {:.1f} | {:.1f} |\n", bytes >> 10, in / 1e9, out / 1e9));
    report.figures("copy", {{"bytes", bytes}, {"to_device", in}, {"from_device", out}});
    ceilings.to_device = std::max(ceilings.to_device, in);
    ceilings.from_device = std::max(ceilings.from_device, out);
  }
  ceilings.both_ways = both_ways(gpu, effort);
  report.text(fmt::format("\nCopies of page-locked memory; both ways at once {:.1f} GB/s.\n\n",
                          ceilings.both_ways / 1e9));
  report.figures("link", {{"to_device", ceilings.to_device},
                          {"from_device", ceilings.from_device},
                          {"both_ways", ceilings.both_ways}});
}

}  // namespace melflow::bench
