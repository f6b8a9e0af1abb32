#include "apps/report/plan_text.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "stages/manifest.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

std::string split_of(const SourceStage& source, std::size_t file) {
  const auto* listed = dynamic_cast<const ManifestSource*>(&source);
  return listed != nullptr ? listed->manifest().split_name(listed->manifest().split(file)) : "";
}

// Returns a file's reason with its split, such as "new in train".
std::string reason_of(const SourceStage& source, std::size_t file, PlannedRange::Found found) {
  const std::string split = split_of(source, file);
  return split.empty() ? to_text(found) : fmt::format("{} in {}", to_text(found), one_line(split));
}

std::size_t kept_files(const RowPlan& plan) {
  std::size_t out = 0;
  for (const RowPlan::Section& section : plan.sections)
    for (const PlannedRange& range : section.ranges)
      if (range.is_kept()) out += range.end - range.first;
  return out;
}

std::string what_happens(const RowPlan& plan, std::size_t computed) {
  if (plan.copies_first) return "a new output would be made\n";
  if (!plan.is_update) return "there is no such output yet: a new one would be made\n";
  if (computed == 0 && plan.is_in_place()) return "nothing to compute: the output is up to date\n";
  return plan.is_in_place()
             ? "new rows would come after the others, which stay where they are\n"
             : "all rows would be put into a new output, in the order of the files, which then "
               "takes the place of this one\n";
}

std::string output_text(const RowPlan& plan, const SourceStage& source, std::size_t limit) {
  std::map<std::string, std::size_t> reasons;  // "new in train": how many
  std::string named;
  std::size_t computed = 0;
  each_computed(plan, [&](std::size_t file, PlannedRange::Found found) {
    const std::string reason = reason_of(source, file, found);
    ++reasons[reason];
    if (++computed <= limit)
      named += fmt::format("  {}: {}\n", excerpt(source.name(file), 4096), reason);
  });
  std::string out =
      fmt::format("{}: {} {}, {} to compute", one_line(plan.path), plural(kept_files(plan), "file"),
                  plan.copies_first ? "to copy" : "as before", count_text(computed));
  const char* before = " (";
  for (const auto& [reason, count] : reasons)
    out += fmt::format("{}{} {}", std::exchange(before, ", "), count_text(count), reason);
  if (computed > 0) out += ")";
  if (plan.dropped.count > 0)
    out += fmt::format(", {} gone with {}: {}", plural(plan.dropped.count, "file"),
                       plural(static_cast<std::size_t>(plan.dropped_rows), "row"),
                       first_names(plan.dropped.names, plan.dropped.count));
  out += "\n" + (plan.refusal.empty() ? what_happens(plan, computed) : "") + named;
  if (computed > limit)
    out += fmt::format("  … and {} more (all with --json)\n", count_text(computed - limit));
  return out;
}

Json output_json(const RowPlan& plan, const SourceStage& source) {
  Json out{{"output", plan.path},
           {"is_there", plan.is_update},
           {"in_place", plan.is_in_place()},
           {"kept_files", kept_files(plan)},
           {"dropped_files", plan.dropped.count},
           {"dropped_rows", plan.dropped_rows},
           {"dropped", plan.dropped.names},
           {"compute", Json::array()}};
  each_computed(plan, [&](std::size_t file, PlannedRange::Found found) {
    out["compute"].push_back({{"path", source.name(file)}, {"why", to_text(found)}});
    if (const std::string split = split_of(source, file); !split.empty())
      out["compute"].back()["split"] = split;
  });
  return out;
}

}  // namespace

std::string refusals_of(const RowPlans& plans) {
  std::string out;
  for (const RowPlan& plan : plans)
    if (!plan.refusal.empty()) out += (out.empty() ? "" : "\n") + plan.refusal;
  return out;
}

std::string plan_text(const RowPlans& plans, const SourceStage& source, std::size_t limit) {
  std::string out;
  std::set<std::size_t> read;
  for (const RowPlan& plan : plans) {
    out += output_text(plan, source, limit);
    if (plans.size() > 1)
      each_computed(plan, [&](std::size_t file, PlannedRange::Found) { read.insert(file); });
  }
  if (plans.size() > 1)
    out += fmt::format("{} would be read, once for all outputs.\n", plural(read.size(), "file"));
  return out + "Nothing was computed or written.\n";
}

Json plan_json(const RowPlans& plans, const SourceStage& source, const RunReport& report,
               int exit_code) {
  const std::string error = report.error.empty() ? refusals_of(plans) : report.error;
  Json out{{"melflow_version", kVersion},
           {"dry_run", true},
           {"exit_code", exit_code},
           {"error", error.empty() ? Json() : Json(error)}};
  if (plans.size() > 1) {
    out["outputs"] = Json::array();
    for (const RowPlan& plan : plans) out["outputs"].push_back(output_json(plan, source));
  } else {
    out.update(output_json(plans.empty() ? RowPlan{} : plans.front(), source));
  }
  out["warnings"] = report.warnings;
  return out;
}

}  // namespace melflow
