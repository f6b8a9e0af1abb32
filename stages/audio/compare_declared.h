// What a list says of a recording's audio, compared with the recording.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "pipeline/stage/stage_kinds.h"
#include "stages/declared_audio.h"
#include "stages/items.h"

namespace melflow {

/// Passes the blocks of a recording on, with a warning where one of `declared` has another sample
/// rate, or an end that is more than 25 ms away, which is as much as Lhotse allowed until 1.31.
/// `is_cut`: the blocks are not the whole recording, so only the rate is compared.
std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> with_declared(
    std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks, std::vector<DeclaredAudio> declared,
    bool is_cut);
/// Finds such a warning in a recording's warnings; returns what it says of the list.
DeclaredAudio declared_in(std::string_view warning);

}  // namespace melflow
