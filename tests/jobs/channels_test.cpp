// Recordings with a speaker on each channel: two branches of one graph, with an output each.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/jobs/shared.h"

namespace melflow::test::channels_test {
namespace {

std::string way(const std::string& name, const std::string& downmix) {
  return fmt::format(R"(  decode_{0}: {{stage: decode, from: read, downmix: {1}, block: 64KiB}}
  segment_{0}: {{stage: segment, from: decode_{0}}}
  batch_{0}: {{stage: batch, from: segment_{0}}}
  mel_{0}: {{stage: mel, from: batch_{0}, n_fft: 256, hop: 80, n_mels: 20, sample_rate: 8000}}
  write_{0}: {{stage: hdf5_write, from: mel_{0}, path: "${{OUT}}/{0}.h5"}}
)",
                     name, downmix);
}

std::string source(const std::string& folder) {
  return fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}/{}"}}
  read: {{stage: disk_read, from: files}}
)",
                     folder);
}

}  // namespace

TEST_CASE("channels: each channel of a call has the rows of a recording of it alone") {
  const TempFolder folder;
  const AudioKind &stereo = audio_kind("wav s16 stereo"), &mono = audio_kind("wav s16");
  for (unsigned i = 0; i < 3; ++i) {
    const std::vector<float> both = test_signal(9'000 + 30'000 * i, 2, i + 1);
    std::vector<float> one[2];
    for (std::size_t s = 0; s < both.size(); ++s) one[s % 2].push_back(both[s]);
    write_audio(folder.file(fmt::format("calls/{}.wav", i)), stereo, 8000, both);
    write_audio(folder.file(fmt::format("agents/{}.wav", i)), mono, 8000, one[0]);
    write_audio(folder.file(fmt::format("callers/{}.wav", i)), mono, 8000, one[1]);
  }
  const LoadOptions options = in_out(folder.path(), folder.path());
  CHECK(completed(run_job(source("calls") + way("agent", "left") + way("caller", "2"), options))
            .report.counts.ok == 3);
  for (const auto& [way_name, alone] : {std::pair("agent", "agents"), {"caller", "callers"}}) {
    const std::string name = way_name;
    CAPTURE(name);
    completed(run_job(source(alone) + way(alone, "mean"), options));
    const Output got = read_output(folder / (name + ".h5"));
    const Output expected = read_output(folder / (std::string(alone) + ".h5"));
    CHECK(got.rows() > 1000);
    CHECK(got.mel == expected.mel);
  }
}

TEST_CASE("channels: who has no second channel is missing where it is asked for, and only there") {
  const TempFolder folder;
  write_audio(folder.file("calls/a.wav"), audio_kind("wav s16 stereo"), 8000,
              test_signal(9'000, 2));
  write_wav(folder.file("calls/b.wav"), 9'000, 8000);
  std::string caller = way("caller", "2");
  caller.replace(caller.find("block:"), 0, "on_failure: branch, ");
  completed(
      run_job(source("calls") + way("agent", "1") + caller, in_out(folder.path(), folder.path())));
  CHECK(read_output(folder / "agent.h5").file("b.wav").count > 0);
  const Output missing = read_output(folder / "caller.h5");
  CHECK(missing.file("a.wav").count > 0);
  CHECK(missing.file("b.wav").count == 0);
  REQUIRE(missing.remarks.size() == 1);
  CHECK(missing.remarks[0].reason == "has one channel, and downmix asks for channel 2");
}

}  // namespace melflow::test::channels_test
