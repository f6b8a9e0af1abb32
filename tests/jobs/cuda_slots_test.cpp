// Jobs with backend: cuda and their slots: as many as can be used, of the right size from the
// start, and batches that do not fit are split.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <thread>

#include "cuda/slot.h"
#include "stages/device/slot_load.h"
#include "stages/features/mel/mel_plan.h"
#include "tests/emulated/host_gpus.h"
#include "tests/jobs/cuda_jobs.h"
#include "tests/support/problems.h"

namespace melflow::test::cuda_slots_test {
namespace {

std::size_t number_in(const JobResult& job, const std::string& name) {
  return std::stoul(summary_of(job, name));
}

JobResult run_on(HostGpus& gpus, const TempFolder& folder, const std::string& segment,
                 const std::string& mel) {
  const cuda::ScopedGpus scope(gpus);
  JobResult job = completed(run_cuda(cuda_pipeline(segment, mel), folder, "out.h5"));
  return job;
}

}  // namespace

TEST_CASE("cuda slots: never more frames than a launch can have") {
  MelOptions o;
  o.hop = 1;
  const std::size_t batch = std::size_t{8} << 30;
  CHECK(slot_size(MelPlan(o), std::nullopt, batch, 16000, std::size_t{1} << 20).frames ==
        cuda::MelKernels::frame_limit);
}

TEST_CASE("cuda slots: what a recording takes is what crosses the link for it, to the byte") {
  struct Row {
    const char* name;
    std::string segment, mel;
    std::optional<WindowGrid> grid;
    MelOptions options;
  };
  const auto options = [](int n_fft, int hop) {
    MelOptions o;
    o.sample_rate = kRate;
    o.n_fft = n_fft;
    o.hop = hop;
    o.n_mels = 20;
    o.center = false;
    return o;
  };
  MelOptions centred = options(400, 160), tilted = options(400, 160);
  centred.center = true;
  tilted.dither = 1;
  const Row rows[] = {
      {"two stages", ", long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}",
       "n_fft: 512, hop: 512, center: false", WindowGrid{512, 1024, 512, 256, 3},
       options(512, 512)},
      {"short windows that do not meet",
       ", long: {length: 1000, hop: 500}, short: {length: 300, hop: 200}",
       "n_fft: 256, hop: 44, center: false", WindowGrid{300, 1000, 500, 200, 4}, options(256, 44)},
      {"windows of several frames", ", length: 2048, hop: 1000",
       "n_fft: 256, hop: 100, center: false", WindowGrid{2048, 2048, 1000, 1000, 1},
       options(256, 100)},
      {"frames over both ends of every window", ", length: 2000", "n_fft: 400, hop: 160",
       WindowGrid{2000, 2000, 2000, 2000, 1}, centred},
      {"whole recordings", "", "n_fft: 512, hop: 128, center: false", {}, options(512, 128)},
      {"frames over both ends of a recording", "", "n_fft: 400, hop: 160", {}, centred},
      {"frames that the host conditions",
       "",
       "n_fft: 400, hop: 160, center: false, dither: 1",
       {},
       tilted},
  };
  for (const Row& row : rows) {
    for (const std::int64_t length : {12345, 20000}) {
      CAPTURE(std::string(row.name));
      CAPTURE(length);
      const TempFolder folder;
      write_wav(folder.file("clips/a.wav"), length, kRate, 1);
      HostGpus gpus;
      const JobResult job = run_on(gpus, folder, row.segment,
                                   "sample_rate: 16000, n_mels: 20, backend: cuda, " + row.mel);
      const MelPlan plan(row.options);
      const SlotLoad load = slot_load(plan, row.grid, length);
      const std::int64_t bytes = 4 * load.frames + load.samples * (row.options.dither > 0 ? 4 : 2);
      CHECK(number_in(job, "bytes_to_device") ==
            cuda::SlotMemory::header + static_cast<std::size_t>(bytes));
    }
  }
}

TEST_CASE("cuda slots: batches of the two-stage job fit as they are, with little to spare") {
  const TempFolder folder;
  for (unsigned i = 0; i < 60; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 20'480, kRate, i);
  HostGpus gpus;
  const JobResult job =
      run_on(gpus, folder, ", long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}",
             "sample_rate: 16000, n_fft: 512, center: false, n_mels: 32, backend: cuda, slots: 2, "
             "accumulate: {bytes: 512KiB}");
  CHECK(number_in(job, "batches") == job.stage("mel.h2d").items_in);
  // Windows of 512 begin every 256 samples: 79 per file of 40,960 bytes. A quarter is reserve for
  // batches that have one more file.
  const std::size_t files = 512 * 1024 * 5 / 4 / 40'960;
  const std::size_t frames = number_in(job, "frames_of_slot");
  CHECK(frames >= (files - 1) * 79);
  CHECK(frames <= (files + 1) * 79 + 1);
}

TEST_CASE("cuda slots: so many batches together as accumulate.batches says, and room for them") {
  const TempFolder folder;
  for (unsigned i = 0; i < 60; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 20'480, kRate, i);
  HostGpus gpus;
  std::vector<std::string> rows;
  // 20 batches of three files.
  for (const auto& [accumulate, together] : {std::pair("", 1U),
                                             {", accumulate: {batches: 1}", 20U},
                                             {", accumulate: {batches: 4}", 5U},
                                             {", accumulate: {batches: 7}", 3U},
                                             {", accumulate: {batches: 1000}", 1U}}) {
    CAPTURE(std::string(accumulate));
    const JobResult job = run_on(
        gpus, folder, "", std::string("preset: whisper, backend: cuda, slots: 1") + accumulate);
    CHECK(job.stage("mel.accumulate").items_in == 20);
    CHECK(job.stage("mel.h2d").items_in == together);
    CHECK(number_in(job, "batches") == together);  // no batch is split
    rows.push_back(read_output(folder / "out.h5").mel_bytes);
    CHECK(rows.back() == rows.front());
  }
  // A slot takes what is accumulated: 12 files of 40,960 bytes, and a quarter more.
  const JobResult job = run_on(
      gpus, folder, "", "preset: whisper, backend: cuda, slots: 1, accumulate: {batches: 4}");
  CHECK(number_in(job, "sample_bytes_of_slot") >= 12 * 40'960);
  CHECK(number_in(job, "sample_bytes_of_slot") <= 16 * 40'960);
}

TEST_CASE("cuda slots: a batch that does not fit into a slot goes in pieces, the same bytes") {
  const TempFolder folder;
  for (unsigned i = 0; i < 7; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 30'000 + 77 * i, kRate, i);
  write_audio(folder.file("clips/long.flac"), audio_kind("flac s16"), kRate, test_signal(120'000));
  write_audio(folder.file("clips/x_float.wav"), audio_kind("wav float"), kRate,
              test_signal(16'000));
  for (const char* mel :
       {"preset: whisper", "preset: kaldi, use_energy: true", "preset: kaldi, dither: 1",
        "sample_rate: 16000, n_fft: 600, hop: 150, n_mels: 20, log: db, top_db: 60"}) {
    CAPTURE(std::string(mel));
    HostGpus gpus;
    const std::string on = std::string(mel) + ", backend: cuda, slots: 1";
    const JobResult whole = run_on(gpus, folder, "", on);
    CHECK(number_in(whole, "batches") == whole.stage("mel.h2d").items_in);
    const Output expected = read_output(folder / "out.h5");
    // Three files of a batch have 180 KB, a slot has room for a block of 64 KB.
    const JobResult split = run_on(gpus, folder, "", on + ", accumulate: {bytes: 4KiB}");
    CHECK(number_in(split, "batches") > 2 * split.stage("mel.h2d").items_in);
    const Output got = read_output(folder / "out.h5");
    CHECK(got.difference(expected) == "");
    CHECK(got.mel_bytes == expected.mel_bytes);
    CHECK(gpus.complaints() == "");
  }
}

TEST_CASE("cuda slots: no memory is taken but at the beginning") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const JobResult job = run_on(
      gpus, folder, "", "preset: whisper, backend: cuda, slots: 2, accumulate: {bytes: 4KiB}");
  const std::size_t frames = number_in(job, "frames_of_slot");
  const cuda::SlotSize size{number_in(job, "sample_bytes_of_slot"),
                            static_cast<std::uint32_t>(frames)};
  CHECK(gpus.runtime.counts.pinned_taken ==
        2 * (cuda::SlotMemory::bytes_in(size) +
             cuda::SlotMemory::bytes_out(size, 80 * sizeof(float))));
  // A recording of several blocks is one file, and files without frames reach no device.
  for (const auto& [name, value] : job.stage("mel").summary)
    if (name == "device_rates") CHECK(value.items().at(0).find("files")->text() == "9");
}

TEST_CASE(
    "cuda slots: as many as batches are packed at once, shared by the devices, and two more") {
  const Filled<make_clips> folder;
  const auto slots = [&](int devices, const std::string& mel) {
    HostGpus gpus({.devices = devices});
    return number_in(run_on(gpus, folder, "",
                            "preset: whisper, backend: cuda, accumulate: {bytes: 64KiB}" + mel),
                     "slots");
  };
  CHECK(slots(1, ", h2d: {concurrency: 1}") == 3);
  CHECK(slots(1, ", h2d: {concurrency: 6}") == 8);
  CHECK(slots(2, ", h2d: {concurrency: 5}") == 2 * (3 + 2));
  CHECK(slots(2, ", h2d: {concurrency: 5}, slots: 4") == 8);
}

TEST_CASE("cuda slots: a device that breaks between two pieces fails the files behind it") {
  const TempFolder folder;
  for (unsigned i = 0; i < 6; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 31'000, kRate, i);
  // The second of a batch's two pieces finds the device broken.
  HostGpus gpus({.break_at = 1});
  const cuda::ScopedGpus scope(gpus);
  const JobResult job = run_cuda(
      cuda_pipeline("", "preset: whisper, backend: cuda, slots: 1, accumulate: {bytes: 4KiB}"),
      folder, "out.h5");
  const Ledger::Counts& c = job.report.counts;
  CHECK(c.ok + c.failed == 6);
  CHECK(c.ok == 1);
  for (const auto& [name, remark] : job.remarks_by_name())
    CHECK(remark.find("cudaErrorLaunchFailure") != std::string::npos);
  CHECK(read_output(folder / "out.h5").rows() == 193);  // one file's: 31,000 / 160
}

TEST_CASE(
    "cuda slots: a device that hangs is given up after the limit, and the run ends in order") {
  const TempFolder folder;
  for (unsigned i = 0; i < 40; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 8192, kRate, i);
  // Four copies, those of two batches, succeed.
  HostGpus gpus({.hang_at = 4});
  const cuda::ScopedGpus scope(gpus);
  LoadOptions options = in_out(folder / "clips", folder / "out.h5");
  const std::string mel =
      "preset: whisper, backend: cuda, slots: 1, graphs: off, device_timeout: 5, "
      "accumulate: {bytes: 32KiB}";
  const JobResult job = run_job(cuda_pipeline("", mel), options, [&](Runner&) {
    while (gpus.runtime.hung < 0) std::this_thread::yield();
    gpus.time = 5.5;
  });
  const Ledger::Counts& c = job.report.counts;
  CHECK(c.ok + c.failed == 40);
  CHECK(c.ok > 0);
  CHECK(c.failed > 0);
  const std::string why =
      "device 0 (emulated) has done nothing for 6 s with 1 batches under way; it is "
      "given up";
  for (const auto& remark : job.remarks_by_name())
    CHECK_MESSAGE(remark.second.find(why) != std::string::npos, remark.second);
  std::string failures;
  for (const auto& [name, value] : job.stage("mel").summary)
    if (name == "device_failures") failures = to_json(value);
  CHECK(failures == "[\"" + why + "\"]");
  CHECK(read_output(folder / "out.h5").rows() > 0);
}

TEST_CASE("cuda slots: graphs can be off") {
  const TempFolder folder;
  for (unsigned i = 0; i < 20; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 8192, kRate, i);
  const auto replayed = [&](const std::string& graphs) {
    HostGpus gpus;
    const JobResult job = run_on(gpus, folder, ", length: 512",
                                 "sample_rate: 16000, n_fft: 512, center: false, n_mels: 20, "
                                 "backend: cuda, slots: 1, accumulate: {bytes: 48KiB}" +
                                     graphs);
    CHECK(gpus.runtime.counts.replays == static_cast<long>(number_in(job, "replayed")));
    return number_in(job, "replayed");
  };
  CHECK(replayed("") > 0);
  CHECK(replayed(", graphs: on") > 0);
  CHECK(replayed(", graphs: off") == 0);
}

TEST_CASE("cuda slots: files of a split go to its devices, others to any") {
  const TempFolder folder;
  const auto put = [&](const char* split, unsigned n) {
    for (unsigned i = 0; i < n; ++i)
      write_wav(folder.file(fmt::format("clips/{}/{:02}.wav", split, i)), 5000 + 10 * i, kRate, i);
  };
  put("train", 11);
  put("val", 5);
  put("test", 4);
  const auto files_of = [&](const std::string& devices, std::string& warnings) {
    HostGpus gpus({.devices = 3});
    const cuda::ScopedGpus scope(gpus);
    std::string yaml = cuda_pipeline(
        "", "preset: whisper, backend: cuda, accumulate: {bytes: 24KiB}, devices: " + devices);
    yaml.replace(yaml.find("root:"), 5, "splits: top_dir, root:");
    const JobResult job = completed(run_cuda(yaml, folder, "out.h5"));
    CHECK(gpus.complaints() == "");
    warnings.clear();
    for (const std::string& w : job.run_warnings()) warnings += w;
    std::map<std::string, std::size_t> out;
    for (const auto& [name, value] : job.stage("mel").summary)
      if (name == "device_rates")
        for (const Value& device : value.items())
          out[device.find("device")->text()] = std::stoul(device.find("files")->text());
    return out;
  };
  std::string warnings;
  auto files = files_of("{train: [1], val: [0], test: [2]}", warnings);
  CHECK(files == std::map<std::string, std::size_t>{{"0", 5}, {"1", 11}, {"2", 4}});
  CHECK(warnings == "");
  const std::string pinned = read_output(folder / "out.h5").mel_bytes;
  files = files_of("{train: [0, 2], val: 1, test: 1}", warnings);
  CHECK(files["1"] == 9);
  CHECK(files["0"] + files["2"] == 11);
  // A batch is at a border of splits: rows are the same wherever they are computed.
  CHECK(read_output(folder / "out.h5").mel_bytes == pinned);
  files = files_of("{train: [1], vall: [0]}", warnings);
  CHECK(files["0"] + files["1"] == 20);
  CHECK(files["1"] >= 11);
  CHECK(warnings == "mel.devices: there is no split vall; there are train, val, test");
}

TEST_CASE("cuda slots: devices of splits are checked like others") {
  const Filled<make_clips> folder;
  HostGpus gpus;
  const cuda::ScopedGpus scope(gpus);
  struct Row {
    const char* devices;
    const char* expected;
  };
  const Row rows[] = {
      {"{}", "mel.devices: an empty map; write all, or devices for a split, such as"},
      {"{train: []}", "mel.devices: train: an empty list; write all"},
      {"{train: [0, 0]}", "mel.devices: train: a device is listed twice"},
      {"{train: -1}", "mel.devices: train: -1 is out of range"},
      {"{train: {a: 1}}", "mel.devices: train: "},
      {"{train: [0], val: [4]}", "mel.devices: there is no device 4; there are 1"},
  };
  for (const Row& row : rows) {
    const std::string problem = problems_in([&] {
      return run_cuda(
          cuda_pipeline("", std::string("preset: whisper, backend: cuda, devices: ") + row.devices),
          folder, "out.h5");
    });
    CHECK_MESSAGE(problem.find(row.expected) != std::string::npos, problem);
  }
  // Without splits, these names match nothing.
  const JobResult job =
      completed(run_cuda(cuda_pipeline("", "preset: whisper, backend: cuda, devices: {train: [0]}"),
                         folder, "out.h5"));
  CHECK(job.run_warnings() ==
        std::vector<std::string>{"mel.devices: there is no split train; the files have none"});
  CHECK(read_output(folder / "out.h5").texts.at("config").find("train") != std::string::npos);
}

}  // namespace melflow::test::cuda_slots_test
