// melflow report: compares two runs by their JSON documents.
#include <CLI/CLI.hpp>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/report/saved_report.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"

namespace melflow {
namespace {

int report(const std::string& before_path, const std::string& after_path) {
  RunSpeed before, after;
  try {
    before = read_saved_report(before_path);
    after = read_saved_report(after_path);
  } catch (const RunError& e) {
    complain(e.what());
    return kUsage;
  }
  const Comparison comparison = compare_runs(before, after);
  put(stdout, comparison_text(comparison, before, after));
  return comparison.is_slower() ? kRunFailed : kDone;
}

}  // namespace

Action add_report(CLI::App& verb) {
  auto before = std::make_shared<std::string>(), after = std::make_shared<std::string>();
  verb.add_option("FIRST", *before, "the report of a run (--json=FILE)")->required();
  verb.add_option("SECOND", *after, "that of another")->required();
  verb.footer(
      "Exit status: 0, or 1 where the second run is slower by more than noise; 2 where one cannot\n"
      "be read.\n"
      "\n"
      "Example:\n"
      "  melflow run mine.yaml --json=monday.json; melflow run mine.yaml --json=friday.json\n"
      "  melflow report monday.json friday.json");
  return [before, after] { return report(*before, *after); };
}

}  // namespace melflow
