// melflow_gpu_bench measures a device, the transfers to it, and the share of both that kernels
// reach.
//
// In:  the command line.
// Out: Markdown tables on stdout and, with --json FILE, a line of JSON added to the file for every
//      figure, as soon as it is known. Exit status 77 with one sentence where there is no device.
//
// Every figure is the median of many repetitions after a warm-up. Kernels and copies are timed by
// events of the device, and work that spans several streams by the host's clock.

#include "bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace melflow::bench {
namespace {

constexpr int kNoDevice = 77;

struct Options {
  std::string json, decide, once;
  std::vector<int> devices;
  bool quick = false, list = false, cufft = false, hold = false;
};

void measure_device(cuda::Gpus& gpus, const cuda::GpuInfo& info, const Effort& effort,
                    Report& report) {
  const auto gpu = gpus.open(info.index);
  const DeviceFacts facts = device_facts(info.index);
  Json known{{"index", info.index},
             {"name", info.name},
             {"architecture", info.architecture},
             {"memory_bytes", info.memory}};
  known.update(facts.properties);
  Ceilings ceilings;
  ceilings.memory = device_copy_rate(*gpu, effort);
  known["memory_bytes_per_second"] = ceilings.memory;
  report.figures("device", known);
  report.text(
      fmt::format("### {}, {}\n\nA copy inside the device, read and written: {:.0f} GB/s.\n\n",
                  info.name, info.architecture, ceilings.memory / 1e9));
  measure_links(*gpu, effort, ceilings, report);
  const std::vector<Geometry> all = geometries();
  report.text("#### Kernels alone, on data in device memory\n\n");
  for (const Geometry& g : all) measure_kernels(*gpu, g, facts.l2_bytes, effort, ceilings, report);
  report.text("#### From host memory through the device and back\n\n");
  for (const Geometry& g : all) measure_slots(gpus, info.index, g, effort, ceilings, report);
}

std::vector<cuda::GpuInfo> wanted(const std::vector<cuda::GpuInfo>& all,
                                  const std::vector<int>& named) {
  std::vector<cuda::GpuInfo> out;
  for (const cuda::GpuInfo& info : all)
    if (named.empty() || std::find(named.begin(), named.end(), info.index) != named.end())
      out.push_back(info);
  return out;
}

// Keeps the devices open until standard input ends: an unused device may be put to sleep, and every
// program start then waits until it is awake.
void hold(cuda::Gpus& gpus, const std::vector<cuda::GpuInfo>& devices) {
  std::vector<std::unique_ptr<cuda::Gpu>> open;
  std::vector<std::unique_ptr<cuda::Stream>> streams;
  for (const cuda::GpuInfo& info : devices) {
    open.push_back(gpus.open(info.index));
    streams.push_back(open.back()->make_stream());
  }
  std::puts("open");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

int run_with(const Options& options) {
  if (!options.decide.empty()) {
    std::fputs(decisions(options.decide).c_str(), stdout);
    return 0;
  }
  cuda::Gpus& gpus = cuda::gpus();
  const std::vector<cuda::GpuInfo> devices = wanted(gpus.list(), options.devices);
  if (devices.empty()) {
    const std::string why = gpus.why_none();
    std::fprintf(stderr, "melflow_gpu_bench: %s\n",
                 why.empty() ? "there is no device of that number" : why.c_str());
    return kNoDevice;
  }
  if (options.cufft) {
    const std::string why = gpus.why_no_cufft();
    std::printf("%s\n", why.empty() ? "cuFFT is there" : why.c_str());
    return why.empty() ? 0 : 1;
  }
  if (options.hold) {
    hold(gpus, devices);
    return 0;
  }
  if (options.list) {
    for (const cuda::GpuInfo& info : devices)
      std::printf("%d\t%s\t%s\t%zu\n", info.index, info.name.c_str(), info.architecture.c_str(),
                  info.memory >> 20);
    return 0;
  }
  const Effort effort = options.quick ? Effort::quick() : Effort{};
  Report report(options.json);
  if (!options.once.empty()) {
    bool any = false;
    const auto gpu = gpus.open(devices.front().index);
    for (const Geometry& g : geometries()) {
      if (!g.name.starts_with(options.once)) continue;
      launch_kernels(*gpu, g, effort, report);
      any = true;
    }
    if (!any) throw std::runtime_error("--once " + options.once + ": no geometry begins so");
    return 0;
  }
  for (const cuda::GpuInfo& info : devices) measure_device(gpus, info, effort, report);
  return 0;
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures graphics processors: copies, mel kernels, and batches through both."};
  app.add_option("--json", options.json, "a line of JSON for every figure, added to this file");
  app.add_option("--device", options.devices, "only these devices, by number");
  app.add_flag("--quick", options.quick, "small and few: figures are not to be quoted");
  app.add_flag("--list", options.list,
               "only prints number, name, architecture and MiB of each device");
  app.add_flag("--cufft", options.cufft, "only says whether cuFFT can be had; exit status 1: no");
  app.add_flag("--hold", options.hold,
               "only keeps the devices open, says so, and ends with standard input");
  app.add_option(
      "--once", options.once,
      "only launches each fused kernel of the geometries whose names begin so, once, for "
      "a profiler: builder, two-stage, speech, music");
  app.add_option("--decide", options.decide,
                 "only prints what follows from the lines of JSON in this file");
  CLI11_PARSE(app, argc, argv);
  try {
    return run_with(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "melflow_gpu_bench: %s\n", e.what());
    return 1;
  }
}

}  // namespace melflow::bench
