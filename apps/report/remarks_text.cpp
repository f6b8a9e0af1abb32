#include "apps/report/remarks_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/report/format.h"
#include "apps/report/report_json.h"
#include "pipeline/base/text.h"
#include "pipeline/report/reasons.h"

namespace melflow {
namespace {

std::string reason_text(const Ledger::Entry& entry) {
  return remark_text(entry.stage, to_text(entry.outcome), entry.reason);
}

// Lists the most frequent reasons, at most `limit`, one per line, those of failed files first.
std::string by_reason(const Remarks& remarks, std::size_t limit) {
  Reasons reasons;
  for (const Remark& r : remarks) reasons.add(r.entry, r.name);
  std::vector<Reasons::Reason> most = reasons.sorted();
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) {
    return place_of(to_text(a.first.outcome)) < place_of(to_text(b.first.outcome));
  });
  std::string out;
  std::size_t others = 0;
  for (std::size_t i = 0; i < most.size(); ++i) {
    const Reasons::Reason& r = most[i];
    if (i >= limit)
      others += r.count;
    else if (r.count == 1)
      out += fmt::format("  {}: {}\n", first_names(r.names, 1), reason_text(r.first));
    else
      out +=
          fmt::format("  {}: {}{} ({})\n", plural(r.count, "file"), r.is_example ? "such as " : "",
                      reason_text(r.first), first_names(r.names, r.count));
  }
  return others == 0 ? out : out + fmt::format("  {}: other reasons\n", plural(others, "file"));
}

// Returns the paths of outputs whose summary has the entry `has`.
std::vector<std::string> paths_of(const RunReport& report, std::string_view has = "path") {
  std::vector<std::string> out;
  for (const StageReport& s : report.stages) {
    const auto told = [&s](std::string_view what) {
      return std::find_if(s.summary.begin(), s.summary.end(),
                          [what](const auto& entry) { return entry.first == what; });
    };
    if (told("path") != s.summary.end() && told(has) != s.summary.end())
      out.push_back(one_line(told("path")->second.text()));
  }
  return out;
}

// Returns ", 3 are ok (written: a.h5, b.npy)" for a run that wrote something.
std::string rest_text(const RunReport& report) {
  if (report.ending != Ending::complete) return {};
  const std::vector<std::string> paths = paths_of(report);
  const std::size_t skipped = report.counts.skipped;
  return fmt::format(
      "{}, {} {} ok{}",
      skipped == 0
          ? std::string()
          : fmt::format(", {} {} skipped", count_text(skipped), skipped == 1 ? "was" : "were"),
      count_text(report.counts.ok), report.counts.ok == 1 ? "is" : "are",
      paths.empty() ? std::string() : fmt::format(" (written: {})", fmt::join(paths, ", ")));
}

// Returns the command that lists all warnings of a run; "" where no output stores them.
std::string command_that_lists(const RunReport& report) {
  const std::vector<std::string> rows = paths_of(report, "shape");  // files that inspect can read
  return report.ending != Ending::complete || rows.empty()
             ? std::string()
             : fmt::format("`melflow inspect {} --remarks` lists all", rows.front());
}

// "2 of 57 files are skipped, such as a.wav: filter: ...; `melflow inspect` ..."; "" for none.
std::string count_with_example(const RunReport& report, const Remarks& remarks, Outcome outcome,
                               std::size_t count, std::string_view what) {
  const auto found = std::find_if(remarks.begin(), remarks.end(),
                                  [&](const Remark& r) { return r.entry.outcome == outcome; });
  if (found == remarks.end()) return {};
  const Remark first = *found;
  const std::string list = command_that_lists(report);
  return fmt::format("{} of {} {} {}, such as {}: {}: {}{}\n", count_text(count),
                     plural(report.counts.found, "file"), count == 1 ? "is" : "are", what,
                     excerpt(first.name, kLongestPath), one_line(first.entry.stage),
                     excerpt(one_line(first.entry.reason), kLongestReason),
                     list.empty() ? list : "; " + list);
}

}  // namespace

std::string remarks_text(const RunReport& report, const Remarks& of_run, std::size_t limit) {
  if (of_run.size() > limit) {
    const std::string list = command_that_lists(report);
    return by_reason(of_run, limit) +
           fmt::format("  ({})\n", list.empty() ? "all with --json FILE" : list);
  }
  std::vector<Remark> remarks = of_run;
  std::stable_sort(remarks.begin(), remarks.end(), [](const Remark& a, const Remark& b) {
    return place_of(to_text(a.entry.outcome)) < place_of(to_text(b.entry.outcome));
  });
  std::string out;
  for (const Remark& r : remarks)
    out += fmt::format("  {}: {}\n", excerpt(r.name, kLongestPath), reason_text(r.entry));
  return out;
}

std::string failures_text(const RunReport& report, const Remarks& remarks, std::size_t limit) {
  const Remarks failed =
      remarks.where([](const Remark& r) { return r.entry.outcome == Outcome::failed; });
  if (failed.empty()) return {};
  return fmt::format("{} of {} failed{}:\n", count_text(failed.size()),
                     plural(report.counts.found, "file"), rest_text(report)) +
         remarks_text(report, failed, limit);
}

std::string warned_text(const RunReport& report, const Remarks& remarks) {
  return count_with_example(report, remarks, Outcome::ok, report.counts.warned,
                            "ok with a warning");
}

std::string skipped_text(const RunReport& report, const Remarks& remarks) {
  if (report.counts.failed > 0) return {};
  return count_with_example(report, remarks, Outcome::skipped, report.counts.skipped, "skipped");
}

}  // namespace melflow
