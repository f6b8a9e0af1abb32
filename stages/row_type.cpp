#include "stages/row_type.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr NumberType kTypes[] = {NumberType::float32, NumberType::float16, NumberType::bfloat16};

// Facts of one edge are merged by their larger value: one for each type, so that none is lost.
std::string fact_of(NumberType type) { return std::string("rows_as_") + to_text(type); }

}  // namespace

void demand_rows(Facts& above, NumberType wanted) { above.set(fact_of(wanted), 1); }

NumberType demanded_rows(const Facts& demanded) {
  NumberType only = NumberType::float32;
  int count = 0;
  for (const NumberType type : kTypes)
    if (demanded.get(fact_of(type))) {
      only = type;
      ++count;
    }
  return count == 1 ? only : NumberType::float32;
}

void erase_demanded_rows(Facts& above) {
  for (const NumberType type : kTypes) above.erase(fact_of(type));
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
