// The length that a list says a recording has, which the recording may not have.
#pragma once

#include <memory>
#include <string_view>

#include "pipeline/stage/stage_kinds.h"
#include "stages/items.h"

namespace melflow {

/// Passes the blocks of a recording on, with a warning where its end is more than 25 ms from
/// `declared` [s], which is as much as Lhotse allowed until 1.31.
std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> with_declared_length(
    std::unique_ptr<Expand<RawBytes, Waveform>::Cursor> blocks, double declared);
/// Finds such a warning in a recording's warnings; returns the length that it names [s], else 0.
double declared_length_in(std::string_view warning);

}  // namespace melflow
