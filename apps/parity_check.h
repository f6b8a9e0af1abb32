// One comparison each: of a golden case, of derivatives, of a recording.
#pragma once

#include "apps/parity_reference.h"
#include "apps/parity_report.h"
#include "mel/mel_presets.h"

namespace melflow {

/// The preset's name in reports on derivatives.
constexpr const char* kDeltas = "deltas";

ParityResult check_case(const ParityCase& one, const ParityTolerance& tolerance);
ParityResult check_delta(const ParityDelta& one, const ParityTolerance& tolerance);
/// `theirs`: what `source` made of the same samples.
ParityResult check_recording(const ParityRecording& recording, const ReferenceRows& theirs,
                             const MelPreset& preset, const ParitySource& source,
                             const ParityTolerance& tolerance);

}  // namespace melflow
