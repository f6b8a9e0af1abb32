// row_type.h - in which type rows cross the graph.
//
// In:  from the sinks up, the types that readers of rows want.
// Out: the one that the stage which makes them may give.
//
// Where all want the same 16 bits, rows can be made in them, and are half as large all the way.
// Every reader can be given float32 as well.
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/facts.h"
#include "pipeline/number_type.h"
#include "pipeline/result.h"
#include "stages/items.h"

namespace melflow {

/// What a reader of rows requires. A stage that computes with values wants float32.
void require_rows(Requirements& above, NumberType wanted);
/// The type that rows may have: float32 unless one and the same other type is all that is wanted.
NumberType required_rows(const Requirements& required);

/// Why rows [rows, frames, columns], from `first_row` of their file on, cannot be kept as `type`:
/// one of their values is not finite then. Nothing where all are.
std::optional<ItemError> unstorable(const float* values, std::int64_t first_row, std::int64_t rows,
                                    const FeatureInfo& info, NumberType type);

}  // namespace melflow
