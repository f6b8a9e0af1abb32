// melflow_gpu_bench: what a device and the way to it can do, and how much of that the kernels get.
//
// In:  the command line.
// Out: Markdown tables on stdout; with --json FILE every figure. Exit status 77 with one sentence
//      where there is no device.
//
// Every figure is the median of many repetitions after warm-up; kernels and copies are timed by
// the device's own events, whatever spans several streams by the host's clock.

#include "bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

namespace melflow::bench {
namespace {

constexpr int kNoDevice = 77;

struct Options {
  std::string json;
  std::vector<int> devices;
  bool quick = false, list = false, cufft = false;
};

Json facts_json(const cuda::GpuInfo& info) {
  return {{"index", info.index},
          {"name", info.name},
          {"architecture", info.architecture},
          {"memory_bytes", info.memory}};
}

Json measure_device(cuda::Gpus& gpus, const cuda::GpuInfo& info, const Effort& effort) {
  const auto gpu = gpus.open(info.index);
  const DeviceFacts facts = device_facts(info.index);
  Json out = facts_json(info);
  out.update(facts.properties);
  Ceilings ceilings;
  const auto say = [](const std::string& what) { std::fprintf(stderr, "  %s\n", what.c_str()); };
  say("copies");
  ceilings.memory = device_copy_rate(*gpu, effort);
  out["memory_bytes_per_second"] = ceilings.memory;
  out["links"] = measure_links(*gpu, effort, ceilings);
  out["kernels"] = Json::array();
  out["lanes"] = Json::array();
  const std::vector<Geometry> all = geometries();
  for (const Geometry& g : all) {
    say("kernels: " + g.name);
    out["kernels"].push_back(measure_kernels(*gpu, g, facts.l2_bytes, effort, ceilings));
  }
  for (const Geometry& g : all) {
    say("lanes: " + g.name);
    out["lanes"].push_back(measure_lanes(gpus, info.index, g, effort, ceilings));
  }
  return out;
}

int measure(const Options& options) {
  cuda::Gpus& gpus = cuda::gpus();
  const std::vector<cuda::GpuInfo> all = gpus.list();
  if (all.empty()) {
    std::fprintf(stderr, "melflow_gpu_bench: %s\n", gpus.why_none().c_str());
    return kNoDevice;
  }
  if (options.cufft) {
    const std::string why = gpus.why_no_cufft();
    std::printf("%s\n", why.empty() ? "cuFFT is there" : why.c_str());
    return why.empty() ? 0 : 1;
  }
  const Effort effort = options.quick ? Effort::quick() : Effort{};
  Json document{{"quick", options.quick}, {"devices", Json::array()}};
  for (const cuda::GpuInfo& info : all) {
    if (!options.devices.empty() && std::find(options.devices.begin(), options.devices.end(),
                                              info.index) == options.devices.end())
      continue;
    if (options.list) {
      std::printf("%d\t%s\t%s\t%zu\n", info.index, info.name.c_str(), info.architecture.c_str(),
                  info.memory >> 20);
      continue;
    }
    std::fprintf(stderr, "device %d: %s\n", info.index, info.name.c_str());
    document["devices"].push_back(measure_device(gpus, info, effort));
    std::fputs(tables(document["devices"].back()).c_str(), stdout);
  }
  if (options.list || options.json.empty()) return 0;
  std::ofstream out(options.json, std::ios::binary);
  if (!(out << document.dump(2) << '\n').flush())
    throw std::runtime_error(options.json + ": cannot write");
  return 0;
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures graphics processors: copies, mel kernels, and batches through both."};
  app.add_option("--json", options.json, "every figure into this file");
  app.add_option("--device", options.devices, "only these devices, by number");
  app.add_flag("--quick", options.quick, "small and few: figures are not to be quoted");
  app.add_flag("--list", options.list,
               "only prints number, name, architecture and MiB of each device");
  app.add_flag("--cufft", options.cufft, "only says whether cuFFT can be had; exit status 1: no");
  CLI11_PARSE(app, argc, argv);
  try {
    return measure(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "melflow_gpu_bench: %s\n", e.what());
    return 1;
  }
}

}  // namespace melflow::bench
