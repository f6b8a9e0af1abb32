// row_type.h - chooses the number type of rows in the graph.
//
// In:  the types that the readers of rows ask for, from the sinks up.
// Out: the type in which the stage that makes the rows may emit them.
//
// Where all readers ask for the same 16-bit type, rows can be made in it and take half the memory.
// Every reader also accepts float32. Rows of integers (FeatureInfo::type) have their type from the
// stage that makes them to the end; no reader converts them.
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
      {"float32", NumberType::float32},   {"float16", NumberType::float16},
      {"bfloat16", NumberType::bfloat16}, {"int16", NumberType::int16},
      {"int8", NumberType::int8},         {"uint8", NumberType::uint8},
      {"uint16", NumberType::uint16},     {"int32", NumberType::int32},
      {"int64", NumberType::int64}};
};

/// Requires rows of type `wanted`, for a reader of rows. A stage that computes with values wants
/// float32.
void require_rows(Requirements& above, NumberType wanted);
/// The type that rows may have: float32 unless all readers want the same other type.
NumberType required_rows(const Requirements& required);

/// Checks the option `dtype` of a stage that stores or emits rows in another type. float32, its
/// default, is also for integers, which are stored as they are.
void check_dtype(const FeatureInfo& info, NumberType dtype, PlanCheck& check);
/// The type in which a stage with that option stores or emits the rows.
NumberType stored_type(const FeatureInfo& info, NumberType dtype);
/// Reports integers that come to a stage which computes with floats. Returns whether there are any.
bool refuse_integers(const FeatureInfo& info, PlanCheck& check);

/// Returns the error of rows [rows, frames, columns], from `first_row` of their file on, that
/// cannot be stored as `type` because a value would not be finite; nothing where all can be.
std::optional<ItemError> unstorable(const float* values, std::int64_t first_row, std::int64_t rows,
                                    const FeatureInfo& info, NumberType type);

}  // namespace melflow
