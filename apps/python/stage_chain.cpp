#include "apps/python/stage_chain.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/training/batch_source.h"
#include "stages/output/training/recording_rows.h"
#include "stages/row_type.h"

namespace melflow {

StageChain::StageChain(Plan plan, const std::string& name, Input input) {
  bool is_behind = input == Input::files;
  for (PlanNode& n : plan.nodes) {
    if (n.to.size() > 1 || n.inputs.size() > 1 || !n.outputs.empty())
      throw RunError(
          fmt::format("{}: {} has several outputs or inputs; for one recording at a time a "
                      "pipeline has one way from its source to its output",
                      name, n.name));
    if (n.stage->traits().cuts)
      throw RunError(fmt::format(
          "{}: the list names utterances, which are cut out of recordings: use melflow.Loader, or "
          "let the program write rows and open those",
          name));
    if (n.info->traits.kind == StageKind::source) {
      source_ = std::make_unique<StageRunner>(std::move(n));
    } else if (n.info->traits.kind == StageKind::sink) {
      const auto* batches = dynamic_cast<const BatchSource*>(n.stage.get());
      if (batches == nullptr || batches->rows() == nullptr)
        throw RunError(fmt::format(
            "{}: for one recording at a time a pipeline ends in a node of the stage batches, and "
            "this one ends in {}",
            name, n.info->name));
      info_ = batches->rows();
      type_ = batches->type();
      fingerprint_ = feature_fingerprint(n.stage->feature_settings());
    } else if (is_behind) {
      add(std::move(n), name);
    } else {
      is_behind = n.stage->traits().out == port_type<Waveform>();
    }
  }
  if (steps_.empty()) throw RunError(name + ": makes no features of decoded samples");
}

void StageChain::add(PlanNode&& node, const std::string& name) {
  if (node.info->name == "keep_audio") return;  // hands on what it gets
  if (node.info->name.starts_with("cuda_"))
    throw RunError(fmt::format(
        "{}: {} computes on a GPU, which is for batches of many recordings; use backend: cpu", name,
        node.name));
  std::string step = node.name;
  if (node.info->traits.kind == StageKind::combine) {
    steps_.push_back({std::move(step), nullptr});
    return;
  }
  steps_.push_back({std::move(step), std::make_unique<StageRunner>(std::move(node))});
  StageRunner& runner = *steps_.back().stage;
  runner.stage().start(runner.run());
}

std::vector<std::size_t> StageChain::row_shape() const {
  std::vector<std::size_t> shape;
  if (info_->frames > 0) shape.push_back(static_cast<std::size_t>(info_->frames));
  if (!info_->is_samples()) shape.push_back(static_cast<std::size_t>(info_->columns));
  return shape;
}

StageChain::Rows StageChain::rows(std::shared_ptr<const void> in) const {
  Rows made;
  made.entry.outcome = Outcome::ok;
  std::vector<std::shared_ptr<const void>> blocks{std::move(in)}, next;
  for (const Step& step : steps_) {
    next.clear();
    if (step.stage == nullptr) {
      for (auto& block : blocks) {
        auto batch = std::make_shared<Batch>();
        batch->parts.push_back(std::static_pointer_cast<const Windows>(std::move(block)));
        next.push_back(std::move(batch));
      }
    } else {
      const Ledger::Entry entry = step.stage->pass(blocks, next);
      if (!entry.reason.empty()) made.entry = {entry.outcome, step.name, entry.reason};
      if (entry.outcome != Outcome::ok) return made;
    }
    blocks.swap(next);
  }
  RecordingRows all(info_, type_);
  for (const auto& block : blocks) {
    const auto batch = std::static_pointer_cast<const MelBatch>(block);
    const MelPart* part = batch->parts.empty() ? nullptr : batch->parts.front().get();
    if (part == nullptr) throw RunError("a recording has lost a block of its rows");
    if (auto error = unstorable_in(*part)) {
      made.entry = {Outcome::failed, "batches", std::move(error->reason)};
      return made;
    }
    if (!all.add(*part, part->last ? part->first_row + part->row_count : -1)) continue;
    made.count = all.count();
    made.values = all.take();
  }
  return made;
}

std::optional<ItemError> StageChain::unstorable_in(const MelPart& part) const {
  if (part.pending || part.type == type_) return std::nullopt;
  return unstorable(part.values(), part.first_row, part.row_count, *info_, type_);
}

StageChain::Rows StageChain::rows(const Samples& samples, int sample_rate) const {
  auto whole = std::make_shared<Waveform>();
  whole->samples = samples;
  whole->sample_rate = sample_rate;
  whole->file = {sample_rate, samples.count, samples.count};
  Rows made = rows(std::move(whole));
  if (made.entry.outcome != Outcome::ok)
    throw RunError(fmt::format("{}: {}", made.entry.stage, made.entry.reason));
  return made;
}

}  // namespace melflow
