#include "stages/row_type.h"

#include <string>

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

}  // namespace melflow
