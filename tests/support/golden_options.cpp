#include "tests/support/golden_options.h"

#include <stdexcept>

#include "stages/features/mel_stage_options.h"

namespace melflow::test {
namespace {

Value value_of(const nlohmann::json& j) {
  if (j.is_null()) return {};
  if (j.is_string()) return Value::scalar(j.get<std::string>());
  if (j.is_array()) {
    std::vector<Value> items;
    for (const auto& item : j) items.push_back(value_of(item));
    return Value::list(std::move(items));
  }
  if (!j.is_object()) return Value::scalar(j.dump());
  Value map = Value::map({});
  for (const auto& [key, item] : j.items()) map.set(key, value_of(item));
  return map;
}

}  // namespace

MelOptions options_of(const nlohmann::json& options) {
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  Problems problems;
  schema.read(value_of(options), "", problems);
  if (!problems.empty()) throw std::invalid_argument(problems.str());
  return stage.resolved();
}

}  // namespace melflow::test
