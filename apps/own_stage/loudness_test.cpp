// Tests the stage loudness alone. Exit status: 0 when every check holds.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/run/stage_runner.h"
#include "stages/waveform_blocks.h"

namespace {

using melflow::Outcome;
using melflow::StageRunner;
using melflow::Waveform;
using melflow::waveform;

int failed = 0;

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("failed: %s\n", what.c_str());
  ++failed;
}

constexpr int kRate = 16'000;

// Returns a second of a 1 kHz sine, whose mean square is amplitude^2 / 2.
std::vector<float> sine(double amplitude) {
  std::vector<float> out(kRate);
  for (int i = 0; i < kRate; ++i)
    out[i] = static_cast<float>(amplitude * std::sin(2 * std::acos(-1.0) * 1000 * i / kRate));
  return out;
}

void passes_on_what_is_loud_enough() {
  StageRunner runner("loudness", {{"min_db", -40}});
  for (const int block : {0, 1, 1000}) {  // the block size must not matter
    const auto in = waveform(sine(0.5), kRate, block);
    const auto out = runner.stream<Waveform>(in);
    check(out.ok() && out.entry.reason.empty(), "a sine of -9 dB is ok, without a warning");
    check(out.blocks == in, "its blocks are handed on as they are");
  }
}

void skips_what_is_too_quiet() {
  StageRunner runner("loudness", {{"min_db", -40}});
  const auto out = runner.stream<Waveform>(waveform(sine(0.01), kRate, 1000));
  check(out.entry.outcome == Outcome::skipped, "a sine of -43 dB is skipped");
  check(out.entry.reason == "has a level of -43.0 dB, below min_db -40", out.entry.reason);
  const auto none = runner.stream<Waveform>(waveform(std::vector<float>(), kRate));
  check(none.entry.reason == "has no samples", none.entry.reason);
}

void remarks_on_what_is_very_loud() {
  StageRunner runner("loudness");
  // Integers: a square wave of full scale has a mean square of 1.
  const auto out = runner.stream<Waveform>(waveform(std::vector<std::int16_t>(100, -32768), kRate));
  check(out.ok(), "full scale is ok");
  check(out.entry.reason == "has a level of 0.0 dB and may be clipped", out.entry.reason);
}

void fails_what_is_no_number() {
  StageRunner runner("loudness");
  std::vector<float> samples = sine(0.5);
  samples[99] = std::numeric_limits<float>::quiet_NaN();
  const auto out = runner.stream<Waveform>(waveform(samples, kRate, 50));
  check(out.entry.outcome == Outcome::failed, "a sample that is not a number fails the recording");
  check(out.blocks.size() == 1, "and ends it there");
}

void keeps_recordings_apart() {
  StageRunner runner("loudness", {{"min_db", -40}});
  const auto loud = waveform(sine(0.5), kRate, 100);
  const auto quiet = waveform(sine(0.01), kRate, 100);
  const auto out = runner.at_once<Waveform, Waveform>({loud, quiet, loud, quiet});
  for (std::size_t i = 0; i < out.size(); ++i)
    check(out[i].ok() == (i % 2 == 0), "at the same time as others: " + out[i].entry.reason);
  check(runner.pool().allocations() == 0, "takes no memory");
}

void checks_its_options() {
  StageRunner runner("loudness", {{"min_db", -20}, {"warn_db", -30}});
  const auto planned = runner.plan();
  check(planned.errors == std::vector<std::string>{"warn_db: -30 is below min_db, -20"},
        "levels that contradict each other");
  try {
    StageRunner("loudness", {{"min_db", 3}});
    check(false, "min_db above 0 is refused");
  } catch (const melflow::ConfigError&) {
  }
}

}  // namespace

int main() {
  passes_on_what_is_loud_enough();
  skips_what_is_too_quiet();
  remarks_on_what_is_very_loud();
  fails_what_is_no_number();
  keeps_recordings_apart();
  checks_its_options();
  if (failed == 0) std::printf("loudness: all checks hold\n");
  return failed == 0 ? 0 : 1;
}
