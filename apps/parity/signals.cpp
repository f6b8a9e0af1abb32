#include "apps/parity/signals.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace melflow {
namespace {

using Signal = std::vector<std::int16_t>;

// Knuth's MMIX generator; a draw is the upper 16 bits of the state.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::int16_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int16_t>(state_ >> 48);
  }

 private:
  std::uint64_t state_;
};

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

// Parabolic sine of a phase, 2^32 is a full turn: -32768 to 32768.
std::int64_t sine(std::uint32_t phase) {
  const std::int64_t s = static_cast<std::int16_t>(phase >> 16);
  return (s * (32768 - std::abs(s))) >> 13;
}

// Ten harmonics gliding from 110 to 330 Hz over noise.
Signal voice(std::int64_t rate) {
  constexpr std::array<int, 10> weights{16, 12, 10, 8, 6, 5, 4, 3, 2, 1};
  const std::int64_t n = rate * 3 / 4, attack = n / 8;
  const std::int64_t first = (std::int64_t{110} << 32) / rate;
  const std::int64_t last = (std::int64_t{330} << 32) / rate;
  Draws draws(1);
  Signal out;
  std::uint32_t phase = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t tone = 0;
    for (std::uint32_t h = 1; h <= weights.size(); ++h) tone += weights[h - 1] * sine(h * phase);
    const std::int64_t envelope = std::min((i + 1) * 32768 / attack, (n - i) * 32768 / n);
    out.push_back(static_cast<std::int16_t>(((tone * envelope) >> 22) + (draws.next() >> 7)));
    phase += static_cast<std::uint32_t>(first + (last - first) * i / n);
  }
  return out;
}

Signal noise(std::int64_t rate) {
  Draws draws(2);
  Signal out(count(rate * 3 / 10));
  for (std::int16_t& s : out) s = static_cast<std::int16_t>(draws.next() >> 2);
  return out;
}

Signal silence(std::int64_t rate) { return Signal(count(rate / 5), 0); }

Signal impulse(std::int64_t rate) {
  Signal out = silence(rate);
  out.at(out.size() / 2) = 20000;
  return out;
}

Signal full_scale(std::int64_t rate) {
  Signal out = silence(rate);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int16_t>(i / 37 % 2 == 0 ? -32768 : 32767);
  return out;
}

Signal dc(std::int64_t rate) { return Signal(count(rate / 5), 12000); }

Signal beginning(std::int64_t rate) {
  Signal out = voice(rate);
  out.resize(150);
  return out;
}

Signal one(std::int64_t) { return {12345}; }

constexpr std::array<std::pair<std::string_view, Signal (*)(std::int64_t)>, 8> kSignals{{
    {"voice", voice},
    {"noise", noise},
    {"silence", silence},
    {"impulse", impulse},
    {"full_scale", full_scale},
    {"dc", dc},
    {"short", beginning},
    {"one", one},
}};

}  // namespace

Signal parity_signal(std::string_view name, int sample_rate) {
  std::string names;
  for (const auto& [known, make] : kSignals) {
    if (known == name && sample_rate >= 1000) return make(sample_rate);
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw std::invalid_argument("there is no signal '" + std::string(name) + "' at " +
                              std::to_string(sample_rate) +
                              " Hz; the signals, from 1000 Hz on, are " + names);
}

std::uint32_t fnv1a(std::span<const std::int16_t> samples) {
  std::uint32_t value = 2166136261U;
  for (const std::int16_t sample : samples) {
    const unsigned bits = static_cast<std::uint16_t>(sample);
    for (const unsigned byte : {bits & 0xFFU, bits >> 8}) value = (value ^ byte) * 16777619U;
  }
  return value;
}

}  // namespace melflow
