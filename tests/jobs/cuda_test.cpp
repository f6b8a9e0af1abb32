// Whole jobs with backend: cuda, on an emulated device: rows equal the processor's up to the order
// of summation, whatever the batches are and wherever they run; and errors of a device are
// reported.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cuda/slot_pool.h"
#include "pipeline/base/number_type.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/output/row_sink.h"
#include "tests/emulated/host_gpus.h"
#include "tests/jobs/cuda_jobs.h"
#include "tests/jobs/front_end_options.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/problems.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::cuda_test {
namespace {

struct Case {
  const char* name;
  std::string segment;
  std::string mel;
  double tolerance;  ///< of a value, absolute; logarithms are kept away from their floor
};

// On a device, mel refuses a file in the node that packs its samples.
std::map<std::string, std::string> remarks_of(const JobResult& job) {
  std::map<std::string, std::string> out = job.remarks_by_name();
  for (auto& [name, remark] : out)
    if (const std::size_t at = remark.find("mel.h2d"); at != remark.npos)
      remark.replace(at, 7, "mel");
  return out;
}

double largest_difference(const Output& a, const Output& b) {
  REQUIRE(a.mel.size() == b.mel.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.mel.size(); ++i) {
    const double d = std::abs(static_cast<double>(a.mel[i]) - b.mel[i]);
    if (!(d <= largest)) largest = d;  // also for NaN
  }
  return largest;
}

}  // namespace

TEST_CASE("cuda: the rows of the processor, for every kind of unit, sample and front end") {
  const Filled<make_clips> folder;
  const Case cases[] = {
      {"two stages", ", long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}",
       "sample_rate: 16000, n_fft: 512, center: false, n_mels: 32, log: db", 2e-3},
      {"windows of several frames", ", length: 2048, hop: 1000",
       "sample_rate: 16000, n_fft: 256, hop: 100, n_mels: 20, log: ln", 1e-3},
      {"padded tails", ", length: 3000, hop: 2000, tail: pad",
       "sample_rate: 16000, n_fft: 1024, hop: 512, center: false, n_mels: 40, log: db, amin: 1e-6",
       2e-3},
      {"whole recordings", "", "preset: whisper", 1e-4},
      {"Kaldi: conditioned samples and an energy", "", "preset: kaldi, use_energy: true", 1e-3},
      {"noise, which the host adds", "", "preset: kaldi, dither: 1, dither_seed: 3", 1e-3},
      {"pre-emphasis of the signal, by the host", "",
       "preset: kaldi, preemphasis_of: signal, remove_dc: false, snip_edges: false", 1e-3},
      {"Kaldi's frames over both ends of a recording", "", "preset: kaldi, snip_edges: false",
       1e-3},
      {"a window in the middle of its frame, any size", "",
       "sample_rate: 16000, n_fft: 600, win_length: 333, hop: 150, n_mels: 40, log: db, remove_dc: "
       "true, preemphasis: 0.9, preemphasis_of: frame",
       2e-3},
      {"any size, by cuFFT's way", "",
       "sample_rate: 16000, n_fft: 600, hop: 150, n_mels: 40, log: db, top_db: 60", 2e-3},
      {"a spectrogram", "",
       "sample_rate: 16000, n_fft: 2048, hop: 512, output: spectrogram, power: 1", 1e-4},
      {"a straight line to zero at both ends", "",
       "sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 40, pad_mode: linear_ramp, log: db",
       2e-3},
      {"zeros before the mirror image, an even sum of the weights", "",
       "sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 40, pad_zeros: 90, norm: 1, log: db, "
       "db_factor: 20, window: tukey, tukey_alpha: 0.3",
       4e-3},
      {"a low floor of the energy, windows of a list", "",
       "preset: kaldi, use_energy: true, energy_eps: 1e-15, n_fft: 4, win_length: 4, n_mels: 1, "
       "fmin: 0, hop: 4, path: cufft, window: values, window_values: [0.5, 1, 1, 0.25]",
       1e-3},
      {"the deviation of the population", "",
       "preset: kaldi, normalize: per_feature, norm_ddof: 0, norm_eps: 1e-7, norm_eps_to: "
       "variance",
       1e-3},
      {"statistics of the file", "",
       "sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 64, log: ln, log_offset: 1e-6, "
       "normalize: per_feature",
       1e-3},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    const JobResult on_cpu =
        completed(run_cuda(cuda_pipeline(c.segment, c.mel + ", backend: cpu"), folder, "cpu.h5"));
    const Output expected = read_output(folder / "cpu.h5");
    REQUIRE(expected.rows() > 0);
    std::string first_bytes;
    for (const char* how :
         {"", ", accumulate: {bytes: 4KiB}", ", slots: 1, accumulate: {bytes: 60KiB}",
          ", devices: [1, 0], slots: 2, accumulate: {bytes: 100KiB}"}) {
      CAPTURE(std::string(how));
      HostGpus gpus({.devices = 2});
      {
        const cuda::ScopedGpus scope(gpus);
        const JobResult job = completed(
            run_cuda(cuda_pipeline(c.segment, c.mel + ", backend: cuda" + how), folder, "cuda.h5"));
        CHECK(remarks_of(job) == remarks_of(on_cpu));
      }
      CHECK(gpus.complaints() == "");
      CHECK(gpus.runtime.counts.kernels > 0);
      const Output got = read_output(folder / "cuda.h5");
      CHECK(got.shape == expected.shape);
      CHECK(got.files == expected.files);
      CHECK(largest_difference(got, expected) <= c.tolerance);
      // The bytes do not depend on how the work was distributed.
      if (first_bytes.empty()) first_bytes = got.mel_bytes;
      CHECK(got.mel_bytes == first_bytes);
      CHECK(got.texts.at("backend") == "cuda");
    }
  }
}

TEST_CASE("cuda: every option of today's front ends gives the rows of the processor") {
  const TempFolder folder;
  for (unsigned i = 0; i < 3; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 9000 + 777 * i, kRate, i);
  write_audio(folder.file("clips/x_float.wav"), audio_kind("wav float"), kRate,
              test_signal(20'000));
  folder.write("clips/z_broken.wav", "no sound");
  const char* hows[] = {"",
                        ", devices: [1, 0], slots: 2, accumulate: {bytes: 100KiB}, path: cufft"};
  for (std::size_t i = 0; i < front_end_options().size(); ++i) {
    const FrontEndOptions& o = front_end_options()[i];
    CAPTURE(std::string(o.what));
    const JobResult on_cpu =
        completed(run_cuda(pipeline_of(o, 2, ", backend: cpu"), folder, "cpu.h5"));
    const Output expected = read_output(folder / "cpu.h5");
    REQUIRE(expected.rows() > 0);
    HostGpus gpus({.devices = 2});
    {
      const cuda::ScopedGpus scope(gpus);
      const std::string mel = std::string(", backend: cuda") + hows[i % 2];
      const JobResult job = completed(run_cuda(pipeline_of(o, 4, mel), folder, "cuda.h5"));
      CHECK(remarks_of(job) == remarks_of(on_cpu));
    }
    CHECK(gpus.complaints() == "");
    CHECK(gpus.runtime.counts.kernels > 0);
    const Output got = read_output(folder / "cuda.h5");
    CHECK(got.shape == expected.shape);
    CHECK(got.files == expected.files);
    CHECK(largest_difference(got, expected) <= 4e-3);
    CHECK(got.texts.at("backend") == "cuda");
  }
}

TEST_CASE("cuda: batches of equal size are recorded and launched as a whole") {
  const TempFolder folder;
  for (unsigned i = 0; i < 40; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 8192, kRate, i);
  const std::string mel = "sample_rate: 16000, n_fft: 512, center: false, log: db, n_mels: 20";
  const std::string cut = ", length: 512, hop: 512";
  REQUIRE(run_cuda(cuda_pipeline(cut, mel + ", backend: cpu"), folder, "cpu.h5").complete());
  HostGpus gpus;
  JobResult job;
  {
    const cuda::ScopedGpus scope(gpus);
    job =
        run_cuda(cuda_pipeline(cut, mel + ", backend: cuda, slots: 1, accumulate: {bytes: 48KiB}"),
                 folder, "cuda.h5");
  }
  REQUIRE_MESSAGE(job.complete(), job.text());
  CHECK(gpus.complaints() == "");
  CHECK(gpus.runtime.counts.replays >= 5);
  CHECK(largest_difference(read_output(folder / "cuda.h5"), read_output(folder / "cpu.h5")) < 2e-3);
}

TEST_CASE("cuda: the nodes around mel are there, with bounds of their own") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  LoadOptions options = in_out(folder / "clips", folder / "out.h5");
  options.sets = {{"mel.h2d.queue", "4"}, {"mel.rows.concurrency", "2"}};
  const JobResult job =
      completed(run_job(cuda_pipeline("", "preset: whisper, backend: auto, queue: 7"), options));
  std::string names;
  for (const StageReport& s : job.report.stages) names += s.name + " ";
  CHECK(names == "files read decode segment batch mel.accumulate mel.h2d mel mel.rows write ");
  CHECK(job.stage("mel.rows").concurrency == 2);
  for (const EdgeReport& e : job.report.edges) {
    if (e.to == "mel.h2d") CHECK(e.capacity == 4);
    if (e.to == "mel") CHECK(e.capacity == 7);
  }
}

TEST_CASE("cuda: a mel node that waits for its queue to fill waits where batches come in") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  // With one slot, nothing after the device could wait for a second batch.
  const JobResult job = completed(run_cuda(
      cuda_pipeline(
          "", "preset: whisper, backend: cuda, slots: 1, start_at: 1, accumulate: {queue: 2}"),
      folder, "out.h5"));
  for (const EdgeReport& e : job.report.edges)
    CHECK(e.start_depth == (e.to == "mel.accumulate" ? 2U : 0U));
}

TEST_CASE("cuda: without a device, auto takes the processor and cuda says what is missing") {
  const Filled<make_clips> folder;
  HostGpus none({.devices = 0});
  const cuda::ScopedGpus scope(none);
  const JobResult job =
      completed(run_cuda(cuda_pipeline("", "preset: whisper, backend: auto"), folder, "out.h5"));
  CHECK(read_output(folder / "out.h5").texts.at("backend") == "cpu");
  std::string told;
  for (const auto& [name, value] : job.stage("mel").summary) told += name + ": " + value.text();
  CHECK(told.find("the test has none") != std::string::npos);
  const std::string problem = problems_in([&] {
    return run_cuda(cuda_pipeline("", "preset: whisper, backend: cuda"), folder, "out2.h5");
  });
  CHECK(problem.find("mel.backend: cuda: the test has none; use backend: cpu, or auto") !=
        std::string::npos);
}

TEST_CASE("cuda: what cannot be had is an error before the run") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  struct Row {
    const char* mel;
    const char* expected;
  };
  const Row rows[] = {
      {"operands: fp8", "mel.operands: fp8 is not one of fp32, fp16, bf16: it rounds"},
      {"operands: fp64", "mel.operands: 'fp64' is not one of fp32, fp16, bf16"},
      {"path: fused, n_fft: 600, win_length: 400", "mel.path: there is no fused kernel"},
      {"path: cufft, operands: bf16", "mel.operands: only the fused kernel has others than fp32"},
      {"accumulate: {bytes: 1MiB, batches: 2}",
       "mel.accumulate: bytes and batches both say when a batch for the device is full; keep one"},
      {"accumulate: {batches: 0}", "accumulate.batches: 0 is out of range; allowed: 1 to 65536"},
      {"accumulate: {batches: 1.5}", "accumulate.batches: '1.5' is not an integer"},
      {"accumulate: {batches: 16MiB}", "accumulate.batches: '16MiB' is not an integer"},
      {"devices: [3]", "mel.devices: there is no device 3; there are 1, counted from 0"},
      {"devices: [0, 0]", "mel.devices: a device is listed twice"},
      {"h2d: {depth: 3}", "mel.h2d.depth: unknown option"},
      {"precision: double", "mel.precision: double: CUDA devices compute in single precision"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.mel));
    const std::string problem = problems_in([&] {
      return run_cuda(cuda_pipeline("", std::string("preset: whisper, backend: cuda, ") + row.mel),
                      folder, "out.h5");
    });
    CAPTURE(problem);
    CHECK(problem.find(row.expected) != std::string::npos);
    // The other nodes of the device do not report consequences of the same problem.
    CHECK(problem.find("cuda_mel") == std::string::npos);
  }
}

TEST_CASE("cuda: memory that is not allowed or not there is named, with what to lower") {
  const Filled<make_clips> folder;
  const auto error_of = [&](const HostGpuOptions& options, const std::string& memory) {
    HostGpus gpus(options);
    std::string error;
    {
      const cuda::ScopedGpus scope(gpus);
      std::string yaml = cuda_pipeline("", "preset: whisper, backend: cuda");
      yaml.replace(yaml.find("{host: 256MiB}"), 14, memory);
      error = run_cuda(yaml, folder, "out.h5").error;
    }
    CHECK(gpus.complaints() == "");
    return error;
  };
  CHECK(error_of({}, "{host: 256MiB, pinned: 10MiB}")
            .find("memory.pinned: a batch on the device "
                  "needs ") != std::string::npos);
  CHECK(error_of({}, "{host: 256MiB, device: 10MiB}").find("memory.device: ") != std::string::npos);
  CHECK(error_of({.device_memory = 10 << 20}, "{host: 256MiB}")
            .find("device memory: there is no "
                  "room") != std::string::npos);
  CHECK(error_of({.pinned_memory = 10 << 20}, "{host: 256MiB}").find("pinned memory: ") !=
        std::string::npos);
  // Enough for one batch at a time: fewer slots.
  CHECK(error_of({.device_memory = 48 << 20}, "{host: 256MiB}") == "");
}

TEST_CASE("cuda: the limits of memory are the run's, shared by its mel nodes") {
  const Filled<make_clips> folder;
  const std::string settings =
      "preset: whisper, backend: cuda, slots: 1, accumulate: {bytes: 1MiB}";
  const auto error_of = [&](bool two, const std::string& memory) {
    HostGpus gpus;
    std::string error;
    {
      const cuda::ScopedGpus scope(gpus);
      std::string yaml = cuda_pipeline("", settings);
      yaml.replace(yaml.find("{host: 256MiB}"), 14, "{host: 256MiB, " + memory + "}");
      if (two)
        yaml += "  other:   {stage: mel, from: batch, " + settings +
                "}\n  write2:  {stage: hdf5_write, from: other, path: \"" + (folder / "other.h5") +
                "\", overwrite: true}\n";
      error = run_cuda(yaml, folder, "out.h5").error;
    }
    CHECK(gpus.complaints() == "");
    return error;
  };
  // The least amount that suffices for one node, to a MiB; two nodes need twice as much.
  for (const std::string kind : {"pinned", "device"}) {
    CAPTURE(kind);
    int least = 1;
    while (least < 64 && !error_of(false, fmt::format("{}: {}MiB", kind, least)).empty()) ++least;
    REQUIRE(least < 64);
    REQUIRE(least > 1);
    CHECK(error_of(true, fmt::format("{}: {}MiB", kind, least)).find("memory." + kind + ": ") !=
          std::string::npos);
    CHECK(error_of(true, fmt::format("{}: {}MiB", kind, 2 * least)) == "");
  }
}

TEST_CASE("cuda: a device that breaks fails the files that were on it, and the run ends") {
  const TempFolder folder;
  for (unsigned i = 0; i < 60; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 8192, kRate, i);
  HostGpus gpus({.break_at = 2});
  JobResult job;
  {
    const cuda::ScopedGpus scope(gpus);
    job = run_cuda(
        cuda_pipeline("", "preset: whisper, backend: cuda, slots: 2, accumulate: {bytes: 32KiB}"),
        folder, "out.h5");
  }
  const Ledger::Counts& c = job.report.counts;
  CHECK(c.ok + c.failed == 60);
  CHECK(c.failed > 0);
  CHECK(c.ok > 0);
  for (const auto& [name, remark] : job.remarks_by_name())
    CHECK((remark.find("cudaErrorLaunchFailure") != std::string::npos ||
           remark.find("no device works any more") != std::string::npos));
  // Files that were finished before are in the output.
  const Output out = read_output(folder / "out.h5");
  std::int64_t rows = 0;
  for (const Output::File& f : out.files) rows += f.count;
  CHECK(rows == static_cast<std::int64_t>(out.rows()));
  CHECK(rows > 0);
}

TEST_CASE("cuda: of two devices one breaks, and the other does the rest") {
  const TempFolder folder;
  for (unsigned i = 0; i < 120; ++i)
    write_wav(folder.file(fmt::format("clips/{:03}.wav", i)), 8192, kRate, i);
  HostGpus gpus({.devices = 2, .break_at = 2});
  JobResult job;
  {
    const cuda::ScopedGpus scope(gpus);
    job = run_cuda(
        cuda_pipeline("", "preset: whisper, backend: cuda, slots: 1, accumulate: {bytes: 32KiB}"),
        folder, "out.h5");
  }
  const Ledger::Counts& c = job.report.counts;
  CHECK(c.ok + c.failed == 120);
  CHECK(c.failed > 0);
  CHECK(c.failed < 20);  // those on the device, and the batch that noticed
  CHECK(gpus.complaints() == "");
}

TEST_CASE("cuda: rows come from devices of one kind") {
  const Filled<make_clips> folder;
  HostGpus gpus({.devices = 2, .second_major = 10});
  const cuda::ScopedGpus scope(gpus);
  const JobResult all =
      completed(run_cuda(cuda_pipeline("", "preset: whisper, backend: cuda"), folder, "all.h5"));
  for (const auto& [name, value] : all.stage("mel").summary)
    if (name == "devices") CHECK(value.items().size() == 1);
  const std::string problem = problems_in([&] {
    return run_cuda(cuda_pipeline("", "preset: whisper, backend: cuda, devices: [0, 1]"), folder,
                    "both.h5");
  });
  CHECK(problem.find("mel.devices: device 0 is sm_90 and device 1 sm_100: a row would depend") !=
        std::string::npos);
}

TEST_CASE("cuda: sizes without a fused kernel need cuFFT") {
  const Filled<make_clips> folder;
  HostGpus gpus({.why_no_cufft = "cuFFT is not here"});
  const cuda::ScopedGpus scope(gpus);
  const std::string mel = "sample_rate: 16000, n_fft: 600, hop: 150, n_mels: 20";
  const JobResult automatic =
      completed(run_cuda(cuda_pipeline("", mel + ", backend: auto"), folder, "auto.h5"));
  CHECK(read_output(folder / "auto.h5").texts.at("backend") == "cpu");
  CHECK(automatic.stage("mel").summary.at(0).second.text().find("cuFFT is not here") !=
        std::string::npos);
  const std::string problem = problems_in(
      [&] { return run_cuda(cuda_pipeline("", mel + ", backend: cuda"), folder, "cuda.h5"); });
  CHECK(problem.find("mel.path: cuFFT is not here; or use backend: cpu") != std::string::npos);
}

TEST_CASE("cuda: frames are conditioned on the device, so that samples cross the link once") {
  const Filled<make_clips> folder;
  const auto bytes = [&](const std::string& mel) {
    HostGpus gpus;
    const cuda::ScopedGpus scope(gpus);
    const JobResult job = completed(
        run_cuda(cuda_pipeline("", "preset: kaldi, backend: cuda, accumulate: {bytes: 2MiB}" + mel),
                 folder, "out.h5"));
    CHECK(gpus.complaints() == "");
    return std::stoll(summary_of(job, "bytes_to_device"));
  };
  const auto plain = bytes(", remove_dc: false, preemphasis: 0");
  CHECK(bytes("") == plain);
  CHECK(bytes(", remove_dc: false") == plain);
  CHECK(bytes(", preemphasis: 0") == plain);
  CHECK(bytes(", use_energy: true") == plain);
  // The host adds noise, so frames are sent one by one, as floats.
  CHECK(bytes(", dither: 1") > 2 * plain);
  CHECK(bytes(", preemphasis_of: signal") > 2 * plain);
}

TEST_CASE("cuda: what crosses the link is the same whichever file of a batch is packed last") {
  const TempFolder folder;
  // Lengths that are no multiples of the alignment of parts, 8 samples.
  write_wav(folder.file("clips/a.wav"), 4001, kRate, 1);
  write_wav(folder.file("clips/b.wav"), 4003, kRate, 2);
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  const JobResult job =
      completed(run_cuda(cuda_pipeline("", "preset: kaldi, backend: cuda"), folder, "out.h5"));
  // 16-bit samples, and an offset for each frame of 400 samples every 160: 23 per file.
  CHECK(summary_of(job, "bytes_to_device") ==
        std::to_string(cuda::SlotMemory::header + 2 * (2 * 4008) + 4 * (2 * 23)));
}

TEST_CASE("cuda: a sink of 16 bits gets rows that the device rounded, the same bytes as its own") {
  const Filled<make_clips> folder;
  // Silence fits, whatever happens to the others.
  write_audio(folder.file("clips/silence.wav"), audio_kind("wav s16"), 16000,
              std::vector<float>(4000));
  struct Row {
    const char* name;
    std::string segment, mel;
    bool overflows = false;  ///< in float16
  };
  const Row rows[] = {
      {"two stages", ", long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}",
       "sample_rate: 16000, n_fft: 512, center: false, n_mels: 32, log: db"},
      {"windows of several frames, with an energy", ", length: 2048, hop: 1000",
       "sample_rate: 16000, n_fft: 256, hop: 100, n_mels: 21, log: ln, use_energy: true"},
      {"copies of windows, with an energy",
       ", long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}",
       "sample_rate: 16000, n_fft: 512, center: false, n_mels: 32, log: ln, use_energy: true"},
      {"whole recordings, conditioned", "", "preset: kaldi, use_energy: true"},
      {"any size", "", "sample_rate: 16000, n_fft: 600, hop: 150, n_mels: 40, log: log10"},
      {"powers beyond what float16 holds", "",
       "sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 40, input_scale: 32768", true},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    const auto made = [&](const std::string& write, HostGpus& gpus) {
      const cuda::ScopedGpus scope(gpus);
      std::string yaml =
          cuda_pipeline(row.segment, row.mel + ", backend: cuda, accumulate: {bytes: 2MiB}");
      yaml.replace(yaml.find("overwrite: true"), 15, write);
      std::filesystem::remove(folder / "out.h5");
      JobResult job = completed(run_cuda(yaml, folder, "out.h5"));
      return job;
    };
    HostGpus wide_gpus;
    const JobResult wide = made("dtype: float32", wide_gpus);
    CHECK(summary_of(wide, "row_type") == "float32");
    CHECK(summary_of(wide, "bytes_from_device") ==
          std::to_string(wide_gpus.runtime.counts.bytes_out));
    const Output expected = read_output(folder / "out.h5");
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
      std::string bytes(expected.mel.size() * 2, '\0');
      from_float(expected.mel, type, bytes.data());
      for (const char* layout : {"layout: contiguous", "compression: deflate"}) {
        CAPTURE(std::string(layout));
        HostGpus gpus;
        const JobResult job = made(fmt::format("dtype: {}, {}", to_text(type), layout), gpus);
        CHECK(gpus.complaints() == "");
        CHECK(summary_of(job, "row_type") == to_text(type));
        const Output got = read_output(folder / "out.h5");
        CHECK(got.type == to_text(type));
        const bool fails = row.overflows && type == NumberType::float16;
        CHECK((got.mel_bytes == bytes) == !fails);
        CHECK((got.files == expected.files) == !fails);
        for (const Output::File& f : expected.files) {
          const std::vector<float> values = expected.rows_of(f.path);
          const bool fits =
              first_not_finite(values.data(), values.size(), NumberType::float32, type) < 0;
          CHECK(got.file(f.path).count == (fits ? f.count : 0));
        }
        // Half of the bytes returned, and of the memory for them: one batch, so no slot grows.
        CHECK(2 * gpus.runtime.counts.bytes_out == wide_gpus.runtime.counts.bytes_out);
        CHECK(summary_of(job, "bytes_from_device") ==
              std::to_string(gpus.runtime.counts.bytes_out));
        const auto& of_32 = wide_gpus.runtime.counts;
        const std::size_t less = of_32.pinned_taken - gpus.runtime.counts.pinned_taken;
        CHECK(less > 0);
        CHECK(less == of_32.device_taken - gpus.runtime.counts.device_taken);
      }
    }
  }
}

TEST_CASE("cuda: rows are of 16 bits only where nothing behind or in mel needs more") {
  const Filled<make_clips> folder;
  struct Row {
    const char* mel;
    const char* write;  ///< options of the node write
    const char* more;   ///< further nodes
    const char* expected;
  };
  const char* plain = "preset: kaldi";
  const Row rows[] = {
      {plain, "dtype: float16", "", "float16"},
      {plain, "dtype: bfloat16", "", "bfloat16"},
      {plain, "dtype: float16",
       "  also: {stage: npy_write, from: mel, path: \"${OUT}.npy\", dtype: float16, overwrite: "
       "true}\n",
       "float16"},
      {plain, "dtype: float16",
       "  also: {stage: npy_write, from: mel, path: \"${OUT}.npy\", dtype: bfloat16, overwrite: "
       "true}\n",
       "float32"},
      {plain, "dtype: float16",
       "  also: {stage: npy_write, from: mel, path: \"${OUT}.npy\", overwrite: true}\n", "float32"},
      {plain, "dtype: float16",
       "  deltas: {stage: deltas, from: mel}\n  also: {stage: npy_write, from: deltas, path: "
       "\"${OUT}.npy\", dtype: float16, overwrite: true}\n",
       "float32"},
      {plain, "dtype: float16, statistics: all", "", "float16"},
      {"preset: kaldi, log: db, top_db: 80", "dtype: float16", "", "float32"},
      {"preset: kaldi, log: db, ref: max", "dtype: float16", "", "float32"},
      {"preset: kaldi, normalize: per_feature", "dtype: float16", "", "float32"},
      {"preset: kaldi, normalize: fixed, norm_mean: [1], norm_std: [2]", "dtype: float16", "",
       "float32"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.mel));
    CAPTURE(std::string(row.write));
    CAPTURE(std::string(row.more));
    HostGpus gpus;
    const cuda::ScopedGpus scope(gpus);
    std::string yaml = cuda_pipeline("", std::string(row.mel) + ", backend: cuda") + row.more;
    const auto made = [&](const std::string& write, const std::string& out) {
      std::string text = yaml;
      text.replace(text.find("overwrite: true"), 15, "overwrite: true, " + write);
      JobResult job = completed(run_cuda(text, folder, out));
      return job;
    };
    CHECK(summary_of(made(row.write, "out.h5"), "row_type") == row.expected);
    // The bytes do not depend on where rounding happens.
    made("dtype: float32", "wide.h5");
    const Output got = read_output(folder / "out.h5"), wide = read_output(folder / "wide.h5");
    std::string bytes(wide.mel.size() * 2, '\0');
    from_float(wide.mel, got.type == "float16" ? NumberType::float16 : NumberType::bfloat16,
               bytes.data());
    CHECK((got.mel_bytes == bytes));
  }
}

TEST_CASE("cuda: a file with rows that are not finite fails as on the processor") {
  const TempFolder folder;
  for (unsigned i = 0; i < 4; ++i) {
    std::vector<float> samples = test_signal(9000 + 777 * i);
    for (float& v : samples) v *= 1e-3F;
    if (i == 2) samples[5000] = 1e20F;
    write_audio(folder.file(fmt::format("clips/{}.wav", i)), audio_kind("wav float"), kRate,
                samples);
  }
  write_wav(folder.file("clips/loud.wav"), 9000, kRate, 9);
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  for (const bool is_half : {false, true}) {
    std::string yaml = cuda_pipeline("",
                                     "sample_rate: 16000, n_fft: 512, output: spectrogram, "
                                     "input_scale: 100, backend: cuda");
    if (is_half) yaml.replace(yaml.find("overwrite: true"), 15, "overwrite: true, dtype: float16");
    const JobResult job = completed(run_cuda(yaml, folder, "out.h5"));
    const auto remarks = job.remarks_by_name();
    CHECK(remarks.size() == (is_half ? 2U : 1U));
    const std::string end = is_half ? " is not finite as float16, which ends at 65504: sample "
                                    : " is not finite: sample ";
    const std::string& bad = remarks.at("2.wav");
    CHECK_MESSAGE(bad.starts_with("failed: mel.rows: row "), bad);
    CHECK_MESSAGE(bad.ends_with(end + "5000 (at 0.312 s) is 1e+20"), bad);
    if (is_half) {
      CHECK_MESSAGE(remarks.at("loud.wav").find(end) != std::string::npos, remarks.at("loud.wav"));
    }
    const Output out = read_output(folder / "out.h5");
    CHECK(out.rows() > 100);
    CHECK(std::all_of(out.mel.begin(), out.mel.end(), [](float v) { return std::isfinite(v); }));
  }
}

TEST_CASE("cuda: rows of 16 bits are taken over and added to by an update") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  std::string yaml = cuda_pipeline("", "preset: kaldi, backend: cuda");
  yaml.replace(yaml.find("overwrite: true"), 15, "overwrite: true, dtype: bfloat16");
  REQUIRE(run_cuda(yaml, folder, "out.h5").complete());
  write_wav(folder.file("clips/3.wav"), 7000, kRate, 70);     // changed
  write_wav(folder.file("clips/more.wav"), 8000, kRate, 71);  // new
  LoadOptions options = in_out(folder / "clips", folder / "out.h5");
  for (const Update update : {Update::append, Update::compact}) {
    completed(run_job(yaml, options, {}, update));
    REQUIRE(run_cuda(yaml, folder, "full.h5").complete());
    CHECK(read_output(folder / "out.h5").difference(read_output(folder / "full.h5")) == "");
    std::filesystem::remove(folder / "clips/1.wav");
  }
}

TEST_CASE("cuda: precision: double is the processor's, and auto goes there") {
  const Filled<make_clips> folder;
  completed(run_cuda(cuda_pipeline("", "preset: whisper, precision: double, backend: cpu"), folder,
                     "cpu.h5"));
  HostGpus gpus;
  {
    const cuda::ScopedGpus scope(gpus);
    const JobResult job = completed(run_cuda(
        cuda_pipeline("", "preset: whisper, precision: double, backend: auto"), folder, "out.h5"));
    std::string told;
    for (const auto& [name, value] : job.stage("mel").summary) told += value.text();
    CHECK(told.find("(precision: double, which no device has)") != std::string::npos);
  }
  CHECK(gpus.runtime.counts.kernels == 0);
  const Output out = read_output(folder / "out.h5"), cpu = read_output(folder / "cpu.h5");
  CHECK(out.texts.at("backend") == "cpu");
  CHECK(out.difference(cpu) == "");
  // Without a device, the message is about both.
  HostGpus none({.devices = 0});
  const cuda::ScopedGpus scope(none);
  const std::string problem = problems_in([&] {
    return run_cuda(cuda_pipeline("", "preset: whisper, precision: double, backend: cuda"), folder,
                    "out2.h5");
  });
  CAPTURE(problem);
  CHECK(problem.find("mel.backend: cuda: the test has none") != std::string::npos);
  CHECK(problem.find("mel.precision: double: CUDA devices") != std::string::npos);
}

TEST_CASE("cuda: operands are part of what features are, devices are not") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  const auto made = [&](const std::string& how) {
    completed(run_cuda(cuda_pipeline("", "preset: whisper, " + how), folder, "out.h5"));
    return read_output(folder / "out.h5");
  };
  const Output cpu = made("backend: cpu"), cuda = made("backend: cuda"),
               narrow = made("backend: cuda, operands: bf16");
  CHECK(cuda.texts.at("instruction_set") == "sm_90, fused, fp32");
  CHECK(narrow.texts.at("instruction_set") == "sm_90, fused, bf16");
  CHECK(cuda.texts.at("feature_fingerprint") == cpu.texts.at("feature_fingerprint"));
  CHECK(narrow.texts.at("feature_fingerprint") != cpu.texts.at("feature_fingerprint"));
  // The configuration is stored as written, so that it can be run elsewhere.
  CHECK(cuda.texts.at("config").find("cuda_") == std::string::npos);
}

TEST_CASE(
    "cuda: rows of devices and of the processor stand side by side, and the output names both") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  {
    const cuda::ScopedGpus scope(gpus);
    const auto write = [&](const std::string& from) {
      return fmt::format("  w_{0}: {{stage: hdf5_write, from: {0}, path: \"{1}\"}}\n", from,
                         folder / (from + ".h5"));
    };
    std::string yaml =
        cuda_pipeline("",
                      "sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 20, log: db, "
                      "top_db: 30, backend: cuda, slots: 2, accumulate: {bytes: 200KiB}");
    yaml +=
        "  other: {stage: mel, from: batch, sample_rate: 16000, n_fft: 1024, hop: 160, n_mels: 12, "
        "backend: cuda, slots: 1, accumulate: {bytes: 64KiB}}\n"
        "  host: {stage: mel, from: batch, sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 8, "
        "backend: cpu}\n"
        "  all: {stage: concat, from: [other, mel, host]}\n" +
        write("other") + write("host") + write("all");
    // Before a device is open, only the processor's way of computing is known.
    const Plan plan = load_plan_text(yaml, "p.yaml", in_out(folder / "clips", folder / "mel.h5"));
    const auto all = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                                  [](const PlanNode& n) { return n.name == "w_all"; });
    REQUIRE(all != plan.nodes.end());
    CHECK(dynamic_cast<const RowSink&>(*all->stage).info().computed_by->instruction_set ==
          MelKernel::instruction_set());
    completed(run_cuda(yaml, folder, "mel.h5"));
  }
  CHECK(gpus.complaints() == "");
  const Output all = read_output(folder / "all.h5"), mel = read_output(folder / "mel.h5"),
               other = read_output(folder / "other.h5"), host = read_output(folder / "host.h5");
  std::vector<float> beside;
  for (std::size_t r = 0; r < mel.rows(); ++r) {
    beside.insert(beside.end(), &other.mel[r * 12], &other.mel[r * 12] + 12);
    beside.insert(beside.end(), &mel.mel[r * 20], &mel.mel[r * 20] + 20);
    beside.insert(beside.end(), &host.mel[r * 8], &host.mel[r * 8] + 8);
  }
  CHECK(mel.rows() > 100);
  CHECK(all.mel == beside);
  CHECK(all.texts.at("backend") == "cuda and cpu");
}

}  // namespace melflow::test::cuda_test
