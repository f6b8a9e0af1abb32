#include "apps/report/html_report.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "apps/report/page.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRemarks = 200;

std::size_t count(const Json& files, const char* key) {
  const auto it = files.find(key);
  return it != files.end() && it->is_number() ? it->get<std::size_t>() : 0;
}

// Returns the counts of files; "" for a graph that was not run.
std::string summary(const Json& report) {
  const auto it = report.find("files");
  if (it == report.end()) return "";
  return fmt::format(
      "{}, {} ok, {} skipped, {} failed{}", plural(count(*it, "found"), "file"),
      count_text(count(*it, "ok")), count_text(count(*it, "skipped")),
      count_text(count(*it, "failed")),
      count(*it, "not_run") > 0 ? ", " + count_text(count(*it, "not_run")) + " not run" : "");
}

}  // namespace

std::string html_report(const Json& report) {
  Json shown = report;
  if (const auto it = shown.find("remarks"); it != shown.end() && it->size() > kMostRemarks) {
    const std::size_t more = it->size() - kMostRemarks;
    it->erase(it->begin() + kMostRemarks, it->end());
    shown["more_remarks"] = more;
  }
  constexpr std::string_view kScript =
#include "run_js.inc"
      ;
  const std::string files = summary(shown);
  return page(files.empty() ? "melflow" : "melflow: " + files, shown, kScript);
}

}  // namespace melflow
