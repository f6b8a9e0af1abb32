// Which devices a job gets, and when: they are opened while files are read; backend: auto keeps
// short jobs on the processor and runs without missing devices, backend: cuda refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <thread>

#include "cuda/opening.h"
#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_kernel.h"
#include "tests/emulated/host_gpus.h"
#include "tests/jobs/cuda_jobs.h"

namespace melflow::test::cuda_opening_test {
namespace {

// Devices are used at once, however short the job is.
constexpr const char* kAtOnce = "preset: whisper, backend: auto, auto_from: 0";

std::string with_dtype(std::string yaml, const std::string& dtype) {
  yaml.replace(yaml.find("overwrite: true"), 15, "overwrite: true, dtype: " + dtype);
  return yaml;
}

std::string warnings_of(const JobResult& job) {
  std::string out;
  for (const std::string& w : job.run_warnings()) out += w + "\n";
  return out;
}

// Files that are too short are refused by another node.
void check_same(const Output& a, const Output& b) {
  CHECK(a.mel_bytes == b.mel_bytes);
  CHECK(a.files == b.files);
  CHECK(a.texts.at("feature_fingerprint") == b.texts.at("feature_fingerprint"));
}

bool is_by_processor(const Output& out) {
  return out.texts.at("backend") == "cpu" &&
         out.texts.at("instruction_set") == MelKernel::instruction_set();
}

JobResult run_with(const TempFolder& folder, const std::string& yaml, const std::string& out,
                   const std::function<void(Runner&)>& meanwhile = {},
                   Update update = Update::none) {
  return run_job(yaml, in_out(folder / "clips", folder / out), meanwhile, update);
}

}  // namespace

TEST_CASE("cuda opening: auto keeps a short job on the processor, and starts no driver for it") {
  const Filled<make_clips> folder;
  for (const std::string mel : {"preset: whisper", "preset: kaldi, use_energy: true",
                                "sample_rate: 16000, n_fft: 600, hop: 150, n_mels: 20, log: db, "
                                "top_db: 60"}) {
    for (const std::string dtype : {"float32", "float16"}) {
      CAPTURE(mel);
      CAPTURE(dtype);
      completed(
          run_with(folder, with_dtype(cuda_pipeline("", mel + ", backend: cpu"), dtype), "cpu.h5"));
      HostGpus gpus;
      const cuda::ScopedGpus scope(gpus);
      const JobResult job = completed(run_with(
          folder, with_dtype(cuda_pipeline("", mel + ", backend: auto"), dtype), "auto.h5"));
      CHECK(gpus.counts.lists == 0);
      CHECK(gpus.counts.opened == 0);
      CHECK(summary_of(job, "backend")
                .starts_with(fmt::format("cpu, {} (auto: ", MelKernel::instruction_set())));
      CHECK(warnings_of(job) == "");
      const Output out = read_output(folder / "auto.h5");
      CHECK(is_by_processor(out));
      check_same(out, read_output(folder / "cpu.h5"));
      CHECK(job.stage("mel.h2d").items_in == job.stage("batch").items_out);
    }
  }
}

TEST_CASE("cuda opening: on the processor small batches are put together, many for each worker") {
  const TempFolder folder;
  for (unsigned i = 0; i < 200; ++i)
    write_wav(folder.file(fmt::format("clips/{:03}.wav", i)), 1000, kRate, i);
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  REQUIRE(
      run_with(folder, cuda_pipeline("", "preset: whisper, backend: cpu"), "cpu.h5").complete());
  const JobResult job =
      completed(run_with(folder, cuda_pipeline("", "preset: whisper, backend: auto"), "auto.h5"));
  // 200 files of 2044 bytes, two workers: a batch is sent on from 12,775 bytes on, which takes
  // seven files.
  const std::size_t batches = job.stage("mel.h2d").items_in;
  CHECK(job.stage("batch").items_out > 60);
  CHECK(batches >= 200 / 9);
  CHECK(batches <= 40);
  check_same(read_output(folder / "auto.h5"), read_output(folder / "cpu.h5"));
}

TEST_CASE(
    "cuda opening: without a backend it is the processor's, and the report says that there may be "
    "a device") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  const JobResult job = completed(run_with(folder, cuda_pipeline("", "preset: whisper"), "out.h5"));
  CHECK(gpus.counts.lists == 0);
  CHECK(gpus.counts.opened == 0);
  CHECK(is_by_processor(read_output(folder / "out.h5")));
  CHECK(
      summary_of(job, "backend")
          .ends_with("(there may be a CUDA device; backend: auto weighs whether it is worth it)"));
}

TEST_CASE("cuda opening: auto takes devices for a job that is long enough") {
  const Filled<make_clips> folder;
  HostGpus gpus({.devices = 2});
  const cuda::ScopedGpus scope(gpus);
  completed(run_with(folder, cuda_pipeline("", kAtOnce), "out.h5"));
  CHECK(gpus.counts.opened == 2);
  CHECK(gpus.complaints() == "");
  const Output out = read_output(folder / "out.h5");
  CHECK(out.texts.at("backend") == "cuda");
  CHECK(out.texts.at("instruction_set") == "sm_90, fused, fp32");
}

TEST_CASE("cuda opening: files are read while devices are opened") {
  const Filled<make_clips> folder;
  for (const char* mel : {kAtOnce, "preset: whisper, backend: cuda"}) {
    HostGpus gpus({.opens_late = 0});
    const cuda::ScopedGpus scope(gpus);
    const JobResult job = run_with(folder, cuda_pipeline("", mel), "out.h5", [&](Runner& runner) {
      while (gpus.counts.hanging == 0 || runner.progress().bytes == 0) std::this_thread::yield();
      gpus.release();
    });
    REQUIRE_MESSAGE(job.complete(), job.text());
    CHECK(read_output(folder / "out.h5").texts.at("backend") == "cuda");
    CHECK(gpus.complaints() == "");
  }
}

TEST_CASE("cuda opening: auto goes on without what cannot be had and says so, cuda refuses") {
  const Filled<make_clips> folder;
  struct Row {
    const char* what;
    HostGpuOptions options;
    std::string devices;  ///< of the mel node
    std::string expected;
    std::size_t used;
    bool is_planned = false;  ///< cuda refuses before the run
  };
  const std::string exclusive =
      "cudaSetDevice on device 1: cudaErrorDevicesUnavailable, all CUDA-capable devices are busy";
  const std::string old = "device 2 (old, sm_75) is older than the kernels";
  const Row rows[] = {
      {"exclusive",
       {.devices = 3, .refuses = {{1, exclusive}}},
       "all",
       "device 1: " + exclusive,
       2},
      {"full", {.devices = 3, .full = 2}, "all", "device 2: device memory: there is no room", 2},
      {"none of two",
       {.devices = 2, .refuses = {{0, "lost"}, {1, "lost"}}},
       "all",
       "device 0: lost; device 1: lost",
       0},
      {"too old", {.devices = 2, .unusable = {{2, old}}}, "[0, 2]", "device 2: " + old, 1, true},
      {"not there",
       {.devices = 2},
       "[0, 7]",
       "device 7: there is no device 7; there are 2",
       1,
       true},
      {"of another kind",
       {.devices = 2, .second_major = 10},
       "[0, 1]",
       "device 1: device 0 is sm_90 and device 1 sm_100: a row would depend",
       1,
       true},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const std::string devices = ", accumulate: {bytes: 64KiB}, devices: " + row.devices;
    HostGpus gpus(row.options);
    const cuda::ScopedGpus scope(gpus);
    const JobResult job =
        completed(run_with(folder, cuda_pipeline("", kAtOnce + devices), "out.h5"));
    CAPTURE(warnings_of(job));
    CHECK(warnings_of(job).find("mel: backend: auto") == 0);
    CHECK(warnings_of(job).find(row.expected) != std::string::npos);
    const Output out = read_output(folder / "out.h5");
    if (row.used == 0) {
      CHECK(is_by_processor(out));
      CHECK(summary_of(job, "backend").find("(auto: " + row.expected + ")") != std::string::npos);
    } else {
      CHECK(out.texts.at("backend") == "cuda");
      for (const auto& [name, value] : job.stage("mel").summary)
        if (name == "devices") CHECK(value.items().size() == row.used);
    }
    std::string refusal;
    try {
      refusal =
          run_with(folder, cuda_pipeline("", "preset: whisper, backend: cuda" + devices), "cuda.h5")
              .error;
    } catch (const ConfigError& e) {
      CHECK(row.is_planned);
      refusal = e.what();
    }
    CAPTURE(refusal);
    const std::string expected =
        row.is_planned ? row.expected.substr(row.expected.find(": ") + 2) : row.expected;
    CHECK(refusal.find(expected) != std::string::npos);
    CHECK(gpus.complaints() == "");
  }
}

TEST_CASE("cuda opening: all devices are those that can be used; others are a warning") {
  const Filled<make_clips> folder;
  HostGpus gpus({.devices = 1, .unusable = {{1, "device 1 (old) is older than the kernels"}}});
  const cuda::ScopedGpus scope(gpus);
  for (const std::string& mel :
       {std::string(kAtOnce), std::string("preset: whisper, backend: cuda")}) {
    const JobResult job = completed(run_with(folder, cuda_pipeline("", mel), "out.h5"));
    CHECK(fmt::format("{}", fmt::join(job.report.warnings, "\n"))
              .find("device 1 (old) is older than the kernels") != std::string::npos);
    CHECK(read_output(folder / "out.h5").texts.at("backend") == "cuda");
  }
}

TEST_CASE("cuda opening: without a device, auto's rows are the processor's, of any type") {
  const Filled<make_clips> folder;
  for (const char* dtype : {"float32", "float16", "bfloat16"}) {
    REQUIRE(run_with(folder, with_dtype(cuda_pipeline("", "preset: kaldi, backend: cpu"), dtype),
                     "cpu.h5")
                .complete());
    HostGpus gpus({.refuses = {{0, "lost"}}});
    const cuda::ScopedGpus scope(gpus);
    completed(run_with(
        folder, with_dtype(cuda_pipeline("", "preset: kaldi, backend: auto, auto_from: 0"), dtype),
        "out.h5"));
    const Output out = read_output(folder / "out.h5");
    check_same(out, read_output(folder / "cpu.h5"));
    CHECK(is_by_processor(out));
  }
}

TEST_CASE("cuda opening: a device that does not open is waited for no longer than the limit") {
  const Filled<make_clips> folder;
  const auto run_late = [&](HostGpus& gpus, const std::string& mel) {
    const cuda::ScopedGpus scope(gpus);
    return run_with(folder, cuda_pipeline("", mel), "out.h5", [&](Runner&) {
      while (gpus.counts.hanging == 0) std::this_thread::yield();
      gpus.time = 61;
    });
  };
  {
    HostGpus gpus({.hangs_opening = 0});
    CHECK(warnings_of(completed(run_late(gpus, kAtOnce))) ==
          "mel: backend: auto has no device, and rows are the processor's: "
          "device 0: has not been opened within 60 s\n");
    CHECK(is_by_processor(read_output(folder / "out.h5")));
  }
  {
    HostGpus gpus({.hangs_opening = 0});
    const JobResult job = run_late(gpus, "preset: whisper, backend: cuda");
    CHECK(!job.complete());
    CHECK_MESSAGE(
        job.error.find("mel: backend: cuda: device 0: has not been opened within 60 s; ") == 0,
        job.error);
  }
}

TEST_CASE("cuda opening: those that open are used, whatever the others do") {
  MelOptions o;
  o.sample_rate = kRate;
  o.n_fft = 256;
  o.n_mels = 4;
  HostGpus gpus({.devices = 3, .hangs_opening = 1});
  cuda::SlotSettings settings;
  settings.memory = std::make_shared<cuda::DeviceBudget>(1 << 30, 1 << 30);
  {
    cuda::Opening opening(
        gpus, std::make_shared<const cuda::FrontEnd>(kernel_front_end(MelPlan(o))), settings,
        {1024, 16},
        [](std::vector<cuda::Opening::LeftOut>&) {
          return std::vector<int>{0, 1, 2};
        },
        [](std::size_t devices) { return static_cast<int>(devices); });
    while (opening.opened() < 2 || gpus.counts.hanging == 0) std::this_thread::yield();
    gpus.time = 60.5;
    const cuda::Opening::Result result = opening.wait();
    REQUIRE(result.slots != nullptr);
    CHECK(result.slots->count() == 2 * 3);
    REQUIRE(result.left_out.size() == 1);
    CHECK(result.left_out[0].index == 1);
  }
  CHECK(gpus.complaints() == "");
}

TEST_CASE("cuda opening: the plan has room for rows of 32 bits where the processor may make them") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  const auto largest_block = [&](const std::string& backend, const std::string& dtype) {
    return load_plan_text(
               with_dtype(cuda_pipeline("", "preset: kaldi, backend: " + backend), dtype), "x.yaml",
               in_out(folder / "clips", folder / "out.h5"))
        .largest_block;
  };
  CHECK(largest_block("cuda", "float16") < largest_block("cuda", "float32"));
  CHECK(largest_block("auto", "float16") == largest_block("auto", "float32"));
}

TEST_CASE("cuda opening: an update knows by what its rows will be computed") {
  const Filled<make_clips> folder;
  const auto update = [&](const HostGpuOptions& options, unsigned seed) {
    write_wav(folder.file("clips/new.wav"), 8000, kRate, seed);
    HostGpus gpus(options);
    const cuda::ScopedGpus scope(gpus);
    const JobResult job =
        completed(run_with(folder, cuda_pipeline("", kAtOnce), "out.h5", {}, Update::append));
    return warnings_of(job);
  };
  CHECK(update({}, 1) == "");
  CHECK(update({}, 2) == "");
  const std::string other = update({.refuses = {{0, "lost"}}}, 3);
  CHECK(other.find(fmt::format("computed by cuda sm_90, fused, fp32, new ones are by cpu {}",
                               MelKernel::instruction_set())) != std::string::npos);
}

}  // namespace melflow::test::cuda_opening_test
