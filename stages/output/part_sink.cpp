#include "stages/output/part_sink.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/output/formats/hdf5_layout.h"
#include "stages/output/formats/row_file.h"

namespace melflow {
namespace {

RowSinkOptions options_of(RowSinkOptions out, const PartSink::Part& part) {
  out.path = part.path;
  out.split_files = out.normalize = false;
  out.statistics_by.clear();
  out.overwrite = true;
  if (!part.with_statistics) out.statistics = StatisticsOf::none;
  return out;
}

}  // namespace

PartSink::PartSink(const RowSink& planned, Part part)
    : RowSink(planned, options_of(planned.target(), part)), row_facts_(std::move(part.row_facts)) {}

PartSink& PartSink::replace(Plan& plan, const std::string& name, Part part) {
  PlanNode& node = *std::ranges::find(plan.nodes, name, &PlanNode::name);
  auto sink =
      std::make_unique<PartSink>(dynamic_cast<const RowSink&>(*node.stage), std::move(part));
  PartSink& out = *sink;
  node.stage = std::move(sink);
  node.faces = StageFaces(out);
  node.resources = out.resources();
  return out;
}

void PartSink::announce(RunContext& run) {
  if (!row_facts_.empty()) {
    const std::string other = RunJournal::difference(row_facts_, row_facts());
    if (!other.empty())
      throw RunError(
          fmt::format("this worker would not produce the planned bytes: {}; use "
                      "the program, the libraries and a processor as where the plan was "
                      "made, or plan again here",
                      other));
  }
  RowSink::announce(run);
}

std::unique_ptr<RowPartFile> PartSink::make_row_file(const std::string& path,
                                                     const Opening& opening) const {
  return std::make_unique<RowFile>(path, info().name, target().dtype, info().values_per_row(),
                                   opening);
}

void PartSink::complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) {
  complete_hdf5(static_cast<RowFile&>(file), shape, index);
}

}  // namespace melflow
