#include "apps/parity_check.h"

#include <cmath>
#include <span>

#include <fmt/format.h>

#include "apps/parity_signals.h"

namespace melflow {
namespace {

std::string shapes(const ParityRows& ours, std::int64_t frames, int columns,
                   const std::string& library) {
  return fmt::format("{} x {} values (frames x columns) here, {} x {} by {}", ours.frames,
                     ours.columns, frames, columns, library);
}

}  // namespace

ParityResult check_case(const ParityCase& one, const ParityTolerance& tolerance) {
  ParityResult out;
  out.name = one.name;
  out.preset = one.preset;
  out.libraries = {one.source.text()};
  if (!one.left_out.empty()) {
    out.left_out = 1;
    out.reason = one.left_out;
    return out;
  }
  const std::vector<std::int16_t> samples = parity_signal(one.signal, one.options.sample_rate);
  if (static_cast<std::int64_t>(samples.size()) != one.samples) {
    out.fail(
        fmt::format("its signal has {} samples here, must have {}", samples.size(), one.samples));
    return out;
  }
  const ParityRows ours = parity_rows(one.options, one.cepstrum, samples);
  if (ours.frames != one.frames || ours.columns != one.columns) {
    out.fail(shapes(ours, one.frames, one.columns, one.source.text()));
    return out;
  }
  const ParityJudge judge(one.options, one.cepstrum.has_value(), ours, tolerance);
  for (const ParityRow& row : one.rows) out.take(judge.worst(row));
  out.frames = static_cast<std::int64_t>(one.rows.size());
  return out;
}

ParityResult check_delta(const ParityDelta& one, const ParityTolerance& tolerance) {
  ParityResult out;
  out.name = one.name;
  out.preset = kDeltas;
  out.libraries = {one.source.text()};
  out.take(worst_delta(one, tolerance));
  out.frames = static_cast<std::int64_t>(one.output.size());
  return out;
}

ParityResult check_recording(const ParityRecording& recording, const ReferenceRows& theirs,
                             const MelPreset& preset, const ParitySource& source,
                             const ParityTolerance& tolerance) {
  ParityResult out;
  out.name = recording.path;
  out.preset = preset.name;
  out.libraries = {source.text()};
  if (!recording.problem.empty()) {
    out.fail(recording.problem);
    return out;
  }
  const ParityRows ours =
      parity_rows(preset.options, std::nullopt, std::span<const float>(recording.samples));
  // Some libraries refuse what is shorter than their padding, or has one frame only.
  if (!theirs.refused.empty()) {
    out.left_out = 1;
    out.reason = theirs.refused;
  } else if (ours.frames != theirs.frames || (ours.columns != theirs.columns && ours.frames > 0)) {
    out.fail(shapes(ours, theirs.frames, theirs.columns, source.text()));
  } else {
    const ParityJudge judge(preset.options, false, ours, tolerance);
    for (std::int64_t t = 0; t < theirs.frames; ++t) {
      const float* values = theirs.values.data() + t * theirs.columns;
      out.take(judge.worst({t, {values, values + theirs.columns}, {}}));
    }
    out.frames = theirs.frames;
  }
  return out;
}

}  // namespace melflow
