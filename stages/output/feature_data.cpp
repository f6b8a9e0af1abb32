#include "stages/output/feature_data.h"

#include <fmt/format.h>

#include "pipeline/problem.h"

namespace melflow {
namespace {

constexpr std::int64_t kFormat = 1;

}  // namespace

void check_format(const std::string& path, const FeatureData& data) {
  const std::int64_t format = data.integer("format").value_or(0);
  if (format > kFormat)
    throw RunError(fmt::format("{}: was written by melflow {} in format {}, this program reads {}",
                               path, data.text("melflow_version"), format, kFormat));
}

}  // namespace melflow
