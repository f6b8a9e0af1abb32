// The use of devices during a job with backend: cuda, in its report; NVML has known figures, the
// devices are threads of the host.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cuda/fake_nvml/fake_nvml.h"
#include "tests/emulated/host_gpus.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::device_use_test {
namespace {

constexpr const char* kPipeline = R"(version: 1
memory: {host: 256MiB}
workers: 2
graph:
  files:   {stage: file_list, root: "${DATA}"}
  read:    {stage: disk_read, from: files}
  decode:  {stage: decode, from: read}
  segment: {stage: segment, from: decode}
  batch:   {stage: batch, from: segment}
  mel:     {stage: mel, from: batch, preset: whisper, backend: cuda, devices: [1, 0]}
  write:   {stage: hdf5_write, from: mel, path: "${OUT}"}
)";

// Runs a job on two devices, with this file as NVML.
JobResult run_with(const char* nvml) {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 9000, 16000, 1);
  LoadOptions options = in_out(folder / "clips", folder / "out.h5");
  HostGpus gpus({.devices = 2});
  const cuda::ScopedGpus scope(gpus);
  setenv("MELFLOW_NVML", nvml, 1);
  JobResult job = run_job(kPipeline, options);
  unsetenv("MELFLOW_NVML");
  REQUIRE_MESSAGE(job.complete(), job.text());
  return job;
}

// Returns null where the node does not report it.
const Value* said(const JobResult& job, const std::string& what) {
  for (const auto& [name, value] : job.stage("mel").summary)
    if (name == what) return &value;
  return nullptr;
}

// The expected text of the report after `samples` samples.
std::string expected_use(int device, std::size_t samples) {
  unsigned sum = 0, most = 0;
  unsigned long long most_memory = 0;
  std::vector<unsigned> each;
  for (std::size_t n = 1; n <= samples; ++n) {
    each.push_back(fake_utilization(device, n));
    sum += fake_utilization(device, n);
    most = std::max(most, fake_utilization(device, n));
    most_memory = std::max(most_memory, fake_memory(device, n));
  }
  return fmt::format(
      R"({{"device": {}, "name": "emulated", )"
      R"("utilization_percent": {{"mean": {:.1f}, "most": {}, "samples": {}, )"
      R"("samples_of_piece": 1, "over_time": [{}]}}, )"
      R"("memory_bytes": {{"most": {}, "total": {}}}, "pcie": {{"generation": 5, "width": 16}}}})",
      device, sum / static_cast<double>(samples), most, samples, fmt::join(each, ", "), most_memory,
      kFakeTotalMemory);
}

}  // namespace

TEST_CASE("device use: the report has utilisation, memory and link of every device of the run") {
  const JobResult job = run_with(MELFLOW_FAKE_NVML);
  const Value* uses = said(job, "device_use");
  REQUIRE(uses != nullptr);
  REQUIRE(uses->items().size() == 2);
  for (const int i : {0, 1}) {
    const Value& use = uses->items()[static_cast<std::size_t>(i)];
    const Value* percent = use.find("utilization_percent");
    REQUIRE(percent != nullptr);
    const std::size_t samples = std::stoul(percent->find("samples")->text());
    REQUIRE(samples > 0);
    REQUIRE(samples <= 100);  // each is a piece of its own
    CHECK(to_json(use) == expected_use(1 - i, samples));
  }
  REQUIRE(said(job, "driver") != nullptr);
  CHECK(to_json(*said(job, "driver")) == "\"555.42\"");
}

TEST_CASE("device use: without NVML the run goes on, and the report says why there is nothing") {
  struct Row {
    const char* nvml;
    const char* expected;
  };
  for (const Row& row :
       {Row{"/no/such/file.so", "not known: NVML, which is part of NVIDIA's driver, is not there"},
        Row{MELFLOW_OLD_NVML, "has no nvmlDeviceGetMemoryInfo"}}) {
    CAPTURE(std::string(row.nvml));
    const JobResult job = run_with(row.nvml);
    const Value* use = said(job, "device_use");
    REQUIRE(use != nullptr);
    CAPTURE(use->text());
    CHECK(use->text().find(row.expected) != std::string::npos);
    CHECK(said(job, "driver") == nullptr);
  }
}

}  // namespace melflow::test::device_use_test
