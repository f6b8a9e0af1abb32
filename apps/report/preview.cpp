#include "apps/report/preview.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "pipeline/text.h"
#include "stages/version.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

// "new in train".
std::string reason_of(const UpdatePreview& preview, const Remark& change) {
  const auto split = preview.splits.find(change.index);
  if (split == preview.splits.end()) return change.entry.reason;
  return fmt::format("{} in {}", change.entry.reason, one_line(split->second));
}

// "14 new, 2 failed before"; "10 new in train, 4 new in test".
std::string by_reason(const UpdatePreview& preview, const std::vector<Remark>& changes) {
  std::map<std::string, std::size_t> counts;
  for (const Remark& c : changes) ++counts[reason_of(preview, c)];
  std::string out;
  for (const auto& [reason, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count_text(count), reason);
  return out;
}

std::string what_happens(const UpdatePreview& preview, bool has_changes) {
  if (!preview.is_there) return "there is no such output yet: a new one would be made\n";
  if (!has_changes && preview.in_place) return "nothing to compute: the output is up to date\n";
  return preview.in_place
             ? "new rows would come after the others, which stay where they are\n"
             : "all rows would be put into a new output, in the order of the files, which then "
               "takes the place of this one\n";
}

}  // namespace

std::string preview_text(const UpdatePreview& preview, const RunReport& report,
                         const std::vector<Remark>& changes, std::size_t limit) {
  std::string out = fmt::format("{}: {} as before, {} to compute", one_line(preview.output),
                                plural(report.counts.ok, "file"), count_text(changes.size()));
  if (!changes.empty()) out += fmt::format(" ({})", by_reason(preview, changes));
  if (preview.dropped_files > 0)
    out += fmt::format(", {} gone with {}, such as {}", plural(preview.dropped_files, "file"),
                       plural(static_cast<std::size_t>(preview.dropped_rows), "row"),
                       excerpt(preview.dropped_example));
  out += "\n";
  if (preview.refusal.empty()) out += what_happens(preview, !changes.empty());
  for (std::size_t i = 0; i < std::min(limit, changes.size()); ++i)
    out +=
        fmt::format("  {}: {}\n", excerpt(changes[i].name, 4096), reason_of(preview, changes[i]));
  if (changes.size() > limit)
    out += fmt::format("  … and {} more (all with --json)\n", count_text(changes.size() - limit));
  return out + "Nothing was computed or written.\n";
}

Json preview_json(const UpdatePreview& preview, const RunReport& report,
                  const std::vector<Remark>& changes, int exit_code) {
  const std::string& error = report.error.empty() ? preview.refusal : report.error;
  Json out{{"melflow_version", kVersion},
           {"dry_run", true},
           {"exit_code", exit_code},
           {"error", error.empty() ? Json() : Json(error)},
           {"output", preview.output},
           {"is_there", preview.is_there},
           {"in_place", preview.in_place},
           {"kept_files", report.counts.ok},
           {"dropped_files", preview.dropped_files},
           {"dropped_rows", preview.dropped_rows}};
  out["compute"] = Json::array();
  for (const Remark& c : changes) {
    out["compute"].push_back({{"path", c.name}, {"why", c.entry.reason}});
    const auto split = preview.splits.find(c.index);
    if (split != preview.splits.end()) out["compute"].back()["split"] = split->second;
  }
  out["warnings"] = report.warnings;
  return out;
}

}  // namespace melflow
