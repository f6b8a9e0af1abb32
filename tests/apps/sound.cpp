#include "tests/apps/sound.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <numbers>
#include <random>
#include <string>

namespace melflow::test {
namespace {

void put(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

void write_clip(const std::filesystem::path& path, int sample_rate, double seconds, unsigned seed) {
  const auto rate = static_cast<std::uint32_t>(sample_rate);
  const auto count = static_cast<std::uint32_t>(std::lround(seconds * sample_rate));
  std::string out = "RIFF";
  put(out, 36 + 2 * count, 4);
  out += "WAVEfmt ";
  put(out, 16, 4);
  put(out, 1, 2);  // PCM
  put(out, 1, 2);  // channels
  put(out, rate, 4);
  put(out, 2 * rate, 4);
  put(out, 2, 2);
  put(out, 16, 2);
  out += "data";
  put(out, 2 * count, 4);
  std::minstd_rand noise(seed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double t = i / static_cast<double>(rate);
    const double tone = std::sin(2 * std::numbers::pi * (200 + 150 * t) * t);
    const double level = 8000 * tone + static_cast<double>(noise() % 201) - 100;
    put(out, static_cast<std::uint16_t>(static_cast<std::int16_t>(level)), 2);
  }
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << out;
}

}  // namespace melflow::test
