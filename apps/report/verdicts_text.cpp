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

using Json = nlohmann::ordered_json;

const Json* child(const Json& of, const std::string& name) {
  if (of.is_object()) return of.contains(name) ? &of[name] : nullptr;
  if (!of.is_array()) return nullptr;
  for (const Json& element : of)
    for (const char* key : {"name", "to"})
      if (element.is_object() && element.contains(key) && element[key] == name) return &element;
  for (const Json& element : of)
    if (element.is_object() && element.contains("device") &&
        element["device"].is_number_integer() && element["device"].dump() == name)
      return &element;
  const bool is_of_one_device = of.size() == 1 && of[0].is_object() && of[0].contains("device");
  return is_of_one_device ? child(of[0], name) : nullptr;
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

const Json* find_in_report(const Json& report, std::string_view place) {
  for (std::size_t end = place.find('.');; end = place.find('.', end + 1)) {
    const Json* next = child(report, std::string(place.substr(0, end)));
    if (end == place.npos) return next;
    if (next == nullptr) continue;
    if (const Json* found = find_in_report(*next, place.substr(end + 1))) return found;
  }
}

std::vector<Verdict> verdicts_on_figures(const FigureBounds& expected, const Json& report) {
  std::vector<Verdict> out;
  for (const auto& [place, bound] : expected.list) {
    const Json* at = find_in_report(report, place);
    if (at != nullptr && at->is_number())
      out.push_back({place, bound.text, Verdict::Unit::number, at->get<double>(),
                     bound.is_met_by(at->get<double>())});
    else
      out.push_back({place, bound.text, Verdict::Unit::none, 0, false});
  }
  return out;
}

}  // namespace melflow
