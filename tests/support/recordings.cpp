#include "tests/support/recordings.h"

#include <doctest/doctest.h>
#include <sndfile.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/sha256.h"

namespace melflow::test {
namespace {

std::string audio_folder() {
  const char* folder = std::getenv("MELFLOW_TEST_AUDIO");
  if (folder == nullptr) {
    throw std::runtime_error(
        "MELFLOW_TEST_AUDIO is not set: run tests/run.sh, which fetches the recordings");
  }
  return folder;
}

}  // namespace

Samples read_recording(const nlohmann::json& recording) {
  const std::filesystem::path path = std::filesystem::path(audio_folder()) /
                                     recording["package"].get<std::string>() /
                                     recording["path"].get<std::string>();
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    throw std::runtime_error(path.string() +
                             " is missing: run tests/run.sh, which fetches the recordings");
  }
  // Reads all at once: an iterator over the stream is slow under a sanitizer.
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (reference::sha256(bytes) != recording["sha256"].get<std::string>()) {
    throw std::runtime_error(path.string() +
                             " is not the recording of the golden file (its SHA-256 differs)");
  }
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> sound(sf_open(path.c_str(), SFM_READ, &info),
                                                          sf_close);
  REQUIRE(sound != nullptr);
  REQUIRE(info.channels == 1);
  REQUIRE(info.samplerate == recording["sample_rate"].get<int>());
  Samples samples(recording["samples"].get<std::size_t>());
  const auto count = static_cast<sf_count_t>(samples.size());
  REQUIRE(info.frames == count);
  REQUIRE(sf_readf_short(sound.get(), samples.data(), count) == count);
  return samples;
}

}  // namespace melflow::test
