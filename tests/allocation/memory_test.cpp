// Checks that the peak resident memory of the program on long recordings stays within the budget
// plus 64 MiB, and that the rows equal those of a run without a limit. Runs as its own program,
// because the peak belongs to a process.
#include <doctest/doctest.h>

#include <spawn.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "tests/jobs/shared.h"

using namespace melflow::test;

namespace {

int run_program(const std::vector<std::string>& arguments) {
  std::string program = std::string(std::getenv("MELFLOW_BINARY_DIR")) + "/bin/melflow";
  std::vector<char*> argv{program.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& a : copies) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  REQUIRE(posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ) == 0);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("memory: a 3-hour FLAC and a 20-minute MP3 within 256 MiB, the same rows as unlimited") {
  TempFolder folder;
  // An hour that is written three times: the decoder sees three hours either way.
  const auto hour = test_signal(8000 * 3600);
  std::vector<float> three;
  for (int i = 0; i < 3; ++i) three.insert(three.end(), hour.begin(), hour.end());
  write_audio(folder.file("clips/a_long.flac"), audio_kind("flac s16"), 8000, three);
  three = {};
  const auto minutes = test_signal(16000 * 1200);
  write_audio(folder.file("clips/b_long.mp3"), audio_kind("mp3"), 16000, minutes);
  for (unsigned i = 0; i < 20; ++i)
    write_wav(folder.file("clips/c" + std::to_string(i) + ".wav"), 20000, 16000, i);

  const std::string tight = folder.write("tight.yaml", speech_pipeline({.memory = "256MiB"}));
  const std::string loose = folder.write(
      "loose.yaml", speech_pipeline({.memory = "16GiB", .block = "256MiB", .whole = "512MiB"}));
  // Uses the peak that the program reports (VmHWM): the one that a parent gets includes memory from
  // before the program was loaded.
  const auto peak_of = [&](const std::string& yaml, const std::string& out) {
    const std::string report = folder / (out + ".json");
    REQUIRE(run_program({"run", "--quiet", "--var", "DATA=" + (folder / "clips"), "--var",
                         "OUT=" + (folder / out), "--json=" + report, yaml}) == 0);
    const auto json = nlohmann::json::parse(read_bytes(report));
    return json["memory"]["resident_peak"].get<std::size_t>();
  };
  constexpr std::size_t kMiB = 1 << 20;
  const std::size_t small = peak_of(tight, "tight.h5");
  CHECK(small <= (256 + 64) * kMiB);
  MESSAGE("peak resident with a budget of 256 MiB: ", small / kMiB, " MiB");
  CHECK(peak_of(loose, "loose.h5") > small);
  const Output out = read_output(folder / "tight.h5");
  CHECK(out.file("a_long.flac").count == 3 * 3600 * 100 + 1);
  CHECK(out.difference(read_output(folder / "loose.h5")) == "");
}

TEST_CASE(
    "memory: 300,000 listed files that are not there, within 64 MiB and what the program takes") {
  TempFolder folder;
  write_wav(folder.file("clips/there.wav"), 20000, 16000);
  std::string list = "path\nthere.wav\n";
  for (int i = 0; i < 300'000; ++i)
    list += fmt::format("a/folder/of/speaker{:04}/recording_{:06}.wav\n", i % 1000, i);
  const std::string yaml = folder.write(
      "job.yaml",
      "version: 1\nworkers: 2\nmemory: {host: 64MiB}\ngraph:\n"
      "  files: {stage: file_list, root: \"${DATA}\", manifest: " +
          folder.write("list.csv", list) +
          "}\n"
          "  read: {stage: disk_read, from: files}\n"
          "  decode: {stage: decode, from: read}\n"
          "  mel: {stage: mel, from: decode, sample_rate: 16000, n_fft: 512}\n"
          "  write: {stage: hdf5_write, from: mel, path: \"${OUT}\", overwrite: true}\n");
  const std::string report = folder / "report.json";
  CHECK(run_program({"run", "--quiet", "--var", "DATA=" + (folder / "clips"), "--var",
                     "OUT=" + (folder / "out.h5"), "--json=" + report, yaml}) == 3);
  const auto json = nlohmann::json::parse(read_bytes(report));
  CHECK(json["files"]["failed"] == 300'000);
  CHECK(json["memory"]["resident_peak"].get<std::size_t>() <= std::size_t{64 + 64} << 20);
}

TEST_CASE("memory: large chunks that are compressed count in the budget") {
  TempFolder folder;
  for (int i = 0; i < 6; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 16000 * 300, 16000,
              static_cast<unsigned>(i));
  const auto end_of = [&](const std::string& memory) {
    const std::string yaml = folder.write(
        "job.yaml",
        "version: 1\nworkers: 2\nmemory: {host: " + memory +
            "}\ngraph:\n"
            "  files: {stage: file_list, root: \"${DATA}\"}\n"
            "  read: {stage: disk_read, from: files, whole: 64KiB}\n"
            "  decode: {stage: decode, from: read, block: 256KiB}\n"
            "  segment: {stage: segment, from: decode}\n"
            "  batch: {stage: batch, from: segment, files: 1}\n"
            "  mel: {stage: mel, from: batch, sample_rate: 16000, n_fft: 512, hop: 80, n_mels: 80, "
            "log: db}\n"
            "  write: {stage: hdf5_write, from: mel, path: \"${OUT}\", overwrite: true, "
            "compression: deflate, chunk: 16MiB}\n");
    const std::string report = folder / "report.json";
    const int code = run_program({"run", "--quiet", "--var", "DATA=" + (folder / "clips"), "--var",
                                  "OUT=" + (folder / "out.h5"), "--json=" + report, yaml});
    return std::pair(code, nlohmann::json::parse(read_bytes(report)));
  };
  const auto [refused, why] = end_of("40MiB");
  CHECK(refused == 1);
  const auto error = why["error"].get<std::string>();
  CHECK_MESSAGE(error.find("memory.host: 40MiB is too little: ") == 0, error);
  CHECK_MESSAGE(error.find(", write keeps 161.0 MiB with concurrency: 2, and ") != error.npos,
                error);

  const auto [code, done] = end_of("176MiB");
  CHECK(code == 0);
  CHECK(done["memory"]["peak"].get<std::size_t>() <= std::size_t{176} << 20);
  CHECK(done["memory"]["resident_peak"].get<std::size_t>() <= std::size_t{176 + 64} << 20);
}
