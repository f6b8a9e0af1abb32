#include "stages/row_type.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stages/facts.h"

namespace melflow {
void require_rows(Requirements& above, NumberType wanted) {
  std::set<NumberType> types = above.get_or(requirement::kRowTypes, {});
  types.insert(wanted);
  above.set(requirement::kRowTypes, std::move(types));
}

NumberType required_rows(const Requirements& required) {
  const std::set<NumberType> types = required.get_or(requirement::kRowTypes, {});
  return types.size() == 1 ? *types.begin() : NumberType::float32;
}

void check_dtype(const FeatureInfo& info, NumberType dtype, PlanCheck& check) {
  if (info.has_integers()) {
    if (dtype != NumberType::float32 && dtype != info.type)
      check.error("dtype", fmt::format("what arrives are integers of {}, which are stored as they "
                                       "are; leave it out, or change dtype of the node that makes "
                                       "them",
                                       to_text(info.type)));
    return;
  }
  if (is_integer(dtype) && dtype != NumberType::int16)
    check.error("dtype", fmt::format("{} holds integers, which a node python or onnx gives by a "
                                     "dtype of its own, and what arrives is {}{}; store float32, "
                                     "float16 or bfloat16",
                                     to_text(dtype), info.name,
                                     info.unit.empty() ? "" : " in " + info.unit));
  if (dtype == NumberType::int16 && !info.is_full_scale)
    check.error("dtype", fmt::format("int16 holds samples of which 1 is full scale (stage "
                                     "samples), and what arrives is {} in {}; store float32, "
                                     "float16 or bfloat16",
                                     info.name, info.unit));
  if (dtype == NumberType::float16 && !info.is_log && !info.is_full_scale)
    check.warning("dtype",
                  "float16 holds 6e-8 to 65504, and these values are not logarithms: quiet ones "
                  "become 0, and files with louder ones fail");
}

NumberType stored_type(const FeatureInfo& info, NumberType dtype) {
  return info.has_integers() ? info.type : dtype;
}

bool refuse_integers(const FeatureInfo& info, PlanCheck& check) {
  if (!info.has_integers()) return false;
  check.error("from",
              fmt::format("what arrives are integers of {}, and this node computes with floats; "
                          "write or deliver them as they are, or leave out dtype of the node that "
                          "makes them",
                          to_text(info.type)));
  return true;
}

std::optional<ItemError> unstorable(const float* values, std::int64_t first_row, std::int64_t rows,
                                    const FeatureInfo& info, NumberType type) {
  const auto width = static_cast<std::int64_t>(info.values_per_row());
  const std::int64_t at =
      first_not_finite(values, static_cast<std::size_t>(rows * width), NumberType::float32, type);
  if (at < 0) return std::nullopt;
  std::string reason =
      fmt::format("row {}, column {} is {}", first_row + at / width, at % info.columns, values[at]);
  if (std::isfinite(values[at]))
    reason += fmt::format(", {} ends at {}: store another dtype, or logarithms", to_text(type),
                          greatest_of(type));
  return ItemError::failed(std::move(reason));
}

}  // namespace melflow
