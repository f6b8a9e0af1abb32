// spilled_rows.h - finishes the rows of a file that did not fit into one block.
//
// In:  the file's rows in the temporary file beside the output (RowPartFile::spill), float32 from
//      byte 0 on, and the steps that remain.
// Out: finished rows, piece by piece, in order.
#pragma once

#include <cstdint>
#include <functional>

#include "stages/features/mel/utterance_steps.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

using TakeRows = std::function<void(std::int64_t row, const float* values, std::int64_t count)>;

// Finishes `rows` rows [rows, columns] and passes them to `take`; overwrites the temporary file.
// Throws RunError.
void finish_spilled(RowPartFile& file, const UtteranceSteps& finish, std::int64_t rows, int columns,
                    const TakeRows& take);

}  // namespace melflow
