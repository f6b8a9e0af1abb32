// row_type.h - chooses the number type of rows in the graph.
//
// In:  the types that the readers of rows ask for, from the sinks up.
// Out: the type in which the stage that makes the rows may emit them.
//
// Where all readers ask for the same 16-bit type, rows can be made in it and take half the memory.
// Every reader also accepts float32.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "pipeline/base/number_type.h"
#include "pipeline/base/result.h"
#include "pipeline/options/option_type.h"
#include "pipeline/stage/facts.h"
#include "pipeline/stage/stage.h"
#include "stages/items.h"

namespace melflow {

template <>
struct EnumNames<NumberType> {
  static constexpr std::pair<const char*, NumberType> values[] = {
      {"float32", NumberType::float32},
      {"float16", NumberType::float16},
      {"bfloat16", NumberType::bfloat16},
      {"int16", NumberType::int16}};
};

/// Requires rows of type `wanted`, for a reader of rows. A stage that computes with values wants
/// float32.
void require_rows(Requirements& above, NumberType wanted);
/// The type that rows may have: float32 unless all readers want the same other type.
NumberType required_rows(const Requirements& required);

/// Checks the option `dtype` of a stage that stores or emits rows in another type.
void check_dtype(const FeatureInfo& info, NumberType dtype, PlanCheck& check);

/// Returns the error of rows [rows, frames, columns], from `first_row` of their file on, that
/// cannot be stored as `type` because a value would not be finite; nothing where all can be.
std::optional<ItemError> unstorable(const float* values, std::int64_t first_row, std::int64_t rows,
                                    const FeatureInfo& info, NumberType type);

}  // namespace melflow
