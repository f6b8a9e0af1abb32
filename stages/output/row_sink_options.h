// The options that all sinks of rows share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/schema.h"
#include "pipeline/plan/plan.h"
#include "pipeline/stage/stage.h"
#include "stages/row_type.h"

namespace melflow {

enum class StatisticsOf { none, train, all };
template <>
struct EnumNames<StatisticsOf> {
  static constexpr std::pair<const char*, StatisticsOf> values[] = {
      {"none", StatisticsOf::none}, {"train", StatisticsOf::train}, {"all", StatisticsOf::all}};
};

struct RowSinkOptions {
  std::string path;
  NumberType dtype = NumberType::float32;
  StatisticsOf statistics = StatisticsOf::none;
  std::vector<std::string> statistics_splits;
  std::string statistics_by;
  bool normalize = false;
  bool split_files = false;  // true for npy_write and tar_write, whose files have no groups
  bool overwrite = false;
  CountOrShare max_dropped{{}, 0.1};
  bool sync = false;
  Bytes checkpoint{64 << 20};

  void describe_rows(Schema& s, const std::string& what);
  void describe_ending(Schema& s);
  /// Reports what cannot be; `ending`: what `path` has to end in (RowFormat::ending()).
  void check(const std::string& ending, PlanCheck& check) const;
  /// Stage::settings() of a sink with these options.
  [[nodiscard]] Value settings() const;
};

}  // namespace melflow
