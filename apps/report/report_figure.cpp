#include "apps/report/report_figure.h"

#include <nlohmann/json.hpp>
#include <string>

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

const Json* child(const Json& of, const std::string& name) {
  if (of.is_object()) return of.contains(name) ? &of[name] : nullptr;
  if (!of.is_array()) return nullptr;
  for (const Json& element : of)
    for (const char* key : {"name", "to"})
      if (element.is_object() && element.contains(key) && element[key] == name) return &element;
  return nullptr;
}

}  // namespace

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
