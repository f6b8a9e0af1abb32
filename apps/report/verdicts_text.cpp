#include "apps/report/verdicts_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/report/format.h"

namespace melflow {
namespace {

std::string value_text(const Verdict& v) {
  switch (v.unit) {
    case Verdict::Unit::bytes:
      return mebibytes_text(static_cast<std::size_t>(v.value));
    case Verdict::Unit::files:
      return plural(static_cast<std::size_t>(std::llround(v.value)), "file");
    case Verdict::Unit::share:
      return fmt::format("{:.3g}%", 100 * v.value);
    case Verdict::Unit::none:
      return "the report has no such number";
    case Verdict::Unit::number:
      break;
  }
  return v.value < 100 ? fmt::format("{:.3g}", v.value) : rate_text(v.value);
}

}  // namespace

std::string verdicts_text(const std::vector<Verdict>& verdicts) {
  std::string out;
  for (const Verdict& v : verdicts)
    out += fmt::format("expected {} {}: {}, {}\n", v.what, v.expected, value_text(v),
                       v.is_met ? "met" : "NOT met");
  return out;
}

nlohmann::ordered_json verdicts_json(const std::vector<Verdict>& verdicts) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Verdict& v : verdicts)
    out.push_back(
        {{"what", v.what},
         {"expected", v.expected},
         {"value", v.unit == Verdict::Unit::none ? nullptr : nlohmann::ordered_json(v.value)},
         {"met", v.is_met}});
  return out;
}

}  // namespace melflow
