// What the library without stages cannot do, in the place of pipeline_front.cpp.
#include "apps/c/front.h"

namespace melflow::c_interface {

std::shared_ptr<const Front> pipeline_front(Source, std::string_view, int, int) {
  throw Failure{
      MELFLOW_UNSUPPORTED,
      "this library has the front end alone: files, YAML, and presets that change samples "
      "before mel need libmelflow.so"};
}

std::unique_ptr<RateChange> rate_change(int from, int to, const RateOptions&) {
  throw Failure{MELFLOW_UNSUPPORTED, "the front end is for " + std::to_string(to) +
                                         " Hz and the samples have " + std::to_string(from) +
                                         " Hz; resample them, or use libmelflow.so"};
}

std::int64_t rate_change_lag(int, int, const RateOptions&) { return 0; }

}  // namespace melflow::c_interface
