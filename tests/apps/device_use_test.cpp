// The program's report on the use of devices, with an NVML whose figures are known.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/cuda/fake_nvml/fake_nvml.h"

namespace melflow::test::device_use_test {
namespace {

Ended run_on_device(const std::string& nvml, std::vector<std::string> more) {
  const TempFolder folder;
  test::write_clip(folder / "clips/a.wav", 16000, 0.5);
  test::write_text(folder / "p.yaml",
                   test::nodes_to_mel("root: clips", "preset: whisper, backend: cuda") +
                       "  write: {stage: npy_write, from: mel, path: out.npy}\n");
  std::vector<std::string> command{MELFLOW_ON_HOST_GPU, "run", "p.yaml"};
  command.insert(command.end(), more.begin(), more.end());
  return run(folder, command, {{"MELFLOW_NVML", nvml}});
}

}  // namespace

TEST_CASE("device use: figures are numbers in the JSON report, names are texts") {
  const Ended e = exits(0, run_on_device(MELFLOW_FAKE_NVML, {"--json", "-q"}));
  const nlohmann::json report = nlohmann::json::parse(e.out);
  nlohmann::json mel;
  for (const auto& stage : report["stages"])
    if (stage["name"] == "mel") mel = stage["summary"];
  CHECK(mel["driver"] == "555.42");
  REQUIRE(mel["device_use"].size() == 1);
  const nlohmann::json& use = mel["device_use"][0];
  CHECK(use["device"] == 0);
  CHECK(use["name"] == "emulated");
  const std::size_t samples = use["utilization_percent"]["samples"];
  REQUIRE(samples > 0);
  double sum = 0;
  for (std::size_t n = 1; n <= samples; ++n) sum += test::fake_utilization(0, n);
  CHECK(use["utilization_percent"]["mean"].get<double>() ==
        doctest::Approx(sum / static_cast<double>(samples)).epsilon(0.01));
  CHECK(use["memory_bytes"]["total"] == test::kFakeTotalMemory);
  CHECK(use["memory_bytes"]["most"] == test::fake_memory(0, 1));
  CHECK(use["pcie"] == nlohmann::json{{"generation", 5}, {"width", 16}});
}

TEST_CASE(
    "device use: conditions and sweeps name its figures, with the device's number or without") {
  const std::string figures =
      "stages.mel.summary.device_use.utilization_percent.mean: \"> 0\", "
      "stages.mel.summary.device_use.0.memory_bytes.most: \"> 0\", "
      "stages.mel.summary.device_rates.files: \">= 1\", "
      "stages.mel.summary.device_rates.0.batches: \">= 1\"";
  exits(0, run_on_device(MELFLOW_FAKE_NVML,
                         {"-q", "--set", fmt::format("expect.figures={{{}}}", figures)}));
  const Ended other =
      exits(4, run_on_device(
                   MELFLOW_FAKE_NVML,
                   {"-q", "--set",
                    "expect.figures={stages.mel.summary.device_rates.1.gaps_percent: \"< 101\"}"}));
  CHECK(has(other.err, "device_rates.1.gaps_percent < 101: the report has no such number"));
}

TEST_CASE("device use: the summary says it, or why it cannot") {
  const Ended with = exits(0, run_on_device(MELFLOW_FAKE_NVML, {}));
  CAPTURE(with.out);
  CHECK(with.out.find("device_use [{\"device\": 0, ") != std::string::npos);
  const Ended without = exits(0, run_on_device("/no/such/file.so", {}));
  CAPTURE(without.out);
  CHECK(without.out.find("device_use not known: NVML, which is part of NVIDIA's driver, is not "
                         "there (/no/such/file.so: ") != std::string::npos);
}

}  // namespace melflow::test::device_use_test
