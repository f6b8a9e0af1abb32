#include "apps/report/preview.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "pipeline/base/text.h"
#include "stages/version.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

using Output = UpdatePreview::Output;

// Returns a file's reason with its split, such as "new in train".
std::string reason_of(const UpdatePreview& preview, std::size_t file, const std::string& why) {
  const auto split = preview.splits.find(file);
  return split == preview.splits.end() ? why
                                       : fmt::format("{} in {}", why, one_line(split->second));
}

// Returns counts: "14 new, 2 failed before"; "10 new in train, 4 new in test".
std::string by_reason(const UpdatePreview& preview, const Output& output) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [file, why] : output.to_compute) ++counts[reason_of(preview, file, why)];
  std::string out;
  for (const auto& [reason, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count_text(count), reason);
  return out;
}

std::string what_happens(const Output& output) {
  if (!output.is_there) return "there is no such output yet: a new one would be made\n";
  if (output.to_compute.empty() && output.in_place)
    return "nothing to compute: the output is up to date\n";
  return output.in_place
             ? "new rows would come after the others, which stay where they are\n"
             : "all rows would be put into a new output, in the order of the files, which then "
               "takes the place of this one\n";
}

// `changes`: the files that would be computed for any output, in order.
std::string output_text(const UpdatePreview& preview, const Output& output,
                        const std::vector<Remark>& changes, std::size_t limit) {
  std::string out =
      fmt::format("{}: {} as before, {} to compute", one_line(output.path),
                  plural(output.kept_files, "file"), count_text(output.to_compute.size()));
  if (!output.to_compute.empty()) out += fmt::format(" ({})", by_reason(preview, output));
  if (output.dropped_files > 0)
    out += fmt::format(", {} gone with {}: {}", plural(output.dropped_files, "file"),
                       plural(static_cast<std::size_t>(output.dropped_rows), "row"),
                       first_names(output.dropped, output.dropped_files));
  out += "\n";
  if (output.refusal.empty()) out += what_happens(output);
  std::size_t named = 0;
  for (auto change = changes.begin(); change != changes.end() && named < limit; ++change) {
    const auto computed = output.to_compute.find(change->index);
    if (computed == output.to_compute.end()) continue;
    out += fmt::format("  {}: {}\n", excerpt(change->name, 4096),
                       reason_of(preview, change->index, computed->second));
    ++named;
  }
  if (output.to_compute.size() > named)
    out += fmt::format("  … and {} more (all with --json)\n",
                       count_text(output.to_compute.size() - named));
  return out;
}

Json output_json(const UpdatePreview& preview, const Output& output,
                 const std::vector<Remark>& changes) {
  Json out{{"output", output.path},
           {"is_there", output.is_there},
           {"in_place", output.in_place},
           {"kept_files", output.kept_files},
           {"dropped_files", output.dropped_files},
           {"dropped_rows", output.dropped_rows},
           {"dropped", output.dropped}};
  out["compute"] = Json::array();
  for (const Remark& c : changes) {
    const auto computed = output.to_compute.find(c.index);
    if (computed == output.to_compute.end()) continue;
    out["compute"].push_back({{"path", c.name}, {"why", computed->second}});
    const auto split = preview.splits.find(c.index);
    if (split != preview.splits.end()) out["compute"].back()["split"] = split->second;
  }
  return out;
}

}  // namespace

std::string refusals_of(const UpdatePreview& preview) {
  std::string out;
  for (const Output& o : preview.outputs)
    if (!o.refusal.empty()) out += (out.empty() ? "" : "\n") + o.refusal;
  return out;
}

std::string preview_text(const UpdatePreview& preview, const std::vector<Remark>& changes,
                         std::size_t limit) {
  std::string out;
  for (const Output& output : preview.outputs) out += output_text(preview, output, changes, limit);
  if (preview.outputs.size() > 1)
    out += fmt::format("{} would be read, once for all outputs.\n", plural(changes.size(), "file"));
  return out + "Nothing was computed or written.\n";
}

Json preview_json(const UpdatePreview& preview, const RunReport& report,
                  const std::vector<Remark>& changes, int exit_code) {
  const std::string error = report.error.empty() ? refusals_of(preview) : report.error;
  Json out{{"melflow_version", kVersion},
           {"dry_run", true},
           {"exit_code", exit_code},
           {"error", error.empty() ? Json() : Json(error)}};
  if (preview.outputs.size() > 1) {
    out["outputs"] = Json::array();
    for (const Output& output : preview.outputs)
      out["outputs"].push_back(output_json(preview, output, changes));
  } else {
    out.update(output_json(preview, preview.outputs.empty() ? Output{} : preview.outputs.front(),
                           changes));
  }
  out["warnings"] = report.warnings;
  return out;
}

}  // namespace melflow
