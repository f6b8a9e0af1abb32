#include "apps/job/merging.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "apps/job/part_record.h"
#include "pipeline/base/problem.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/output/merged_parts.h"
#include "stages/output/row_sink.h"

namespace melflow {
namespace {

int columns_of(const Plan& plan) {
  for (const PlanNode& node : plan.nodes)
    if (const auto* sink = dynamic_cast<const RowSink*>(node.stage.get()))
      return sink->info().columns;
  return 0;
}

}  // namespace

std::string parts_text(const Job& job, const std::vector<std::size_t>& parts) {
  constexpr std::size_t kShown = 12;
  std::string out;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t last = i;
    while (last + 1 < parts.size() && parts[last + 1] == parts[last] + 1) ++last;
    if (++shown > kShown) return out + " and more";
    out += (out.empty() ? "" : ", ") + job.name(parts[i]);
    if (last > i) out += (last > i + 1 ? " to " : ", ") + job.name(parts[last]);
    i = last + 1;
  }
  return out;
}

Plan merging_plan(const Job& job, std::optional<int> workers, const std::string& output) {
  Plan plan = job.load(workers, output);
  const auto merged = std::make_shared<MergedParts>();
  std::vector<std::size_t> missing;
  const int columns = columns_of(plan);
  for (std::size_t i = 0; i < job.parts.size(); ++i) {
    const auto record = PartRecord::read(job, i);
    if (!record) {
      missing.push_back(i);
      continue;
    }
    FinishedPart part{job.part_path(i), job.parts[i].first, job.parts[i].end,
                      record->bytes,    record->hash,       std::nullopt};
    if (record->sums) {
      part.sums = ColumnSums::of(*record->sums, columns);
      if (!part.sums)
        throw RunError(job.done_path(i) +
                       ": has no sums of the output's columns; remove it, and "
                       "`melflow work` makes the part again");
    }
    merged->parts.push_back(std::move(part));
  }
  if (!missing.empty())
    throw RunError(fmt::format(
        "of {} parts {} {} not done: {}; `melflow status {}` says why, and `melflow work {}` makes "
        "what can be made",
        job.parts.size(), missing.size(), missing.size() == 1 ? "is" : "are",
        parts_text(job, missing), job.folder, job.folder));
  const std::vector<ManifestRange> ranges(job.parts.begin(), job.parts.end());
  auto corpus = std::make_shared<FrozenCorpus>(read_manifest(job.in(kJobManifest), ranges));
  corpus->remarks = job.remarks;
  plan.services.add(std::move(corpus));
  plan.services.add(merged);
  return plan;
}

}  // namespace melflow
