#include "apps/python/feature_chain.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/training/batch_source.h"

namespace melflow {

FeatureChain::FeatureChain(const std::string& name, const std::string& text,
                           const LoadOptions& options) {
  Plan plan = text.empty() ? load_plan(name, options) : load_plan_text(text, name, options);
  bool has_decoder = false;
  for (PlanNode& n : plan.nodes) {
    if (n.to.size() > 1 || n.inputs.size() > 1)
      throw RunError(
          fmt::format("{}: {} has several outputs or inputs; for samples in memory a "
                      "pipeline has one way from its decoder to its output",
                      name, n.name));
    if (n.info->traits.kind == StageKind::sink) {
      const auto* batches = dynamic_cast<const BatchSource*>(n.stage.get());
      if (batches == nullptr || batches->rows() == nullptr)
        throw RunError(
            fmt::format("{}: for samples in memory a pipeline ends in a node of the stage batches, "
                        "and this one "
                        "ends in {}",
                        name, n.info->name));
      info_ = batches->rows();
      fingerprint_ = feature_fingerprint(n.stage->feature_settings());
      continue;
    }
    const PortType out = n.stage->traits().out;
    if (!has_decoder) {
      has_decoder = out == port_type<Waveform>();
      continue;
    }
    if (n.info->traits.kind == StageKind::combine) {
      steps_.push_back({n.name, nullptr});
    } else {
      std::string step = n.name;
      steps_.push_back({std::move(step), std::make_unique<StageRunner>(std::move(n))});
      steps_.back().stage->stage().start(steps_.back().stage->run());
    }
  }
  if (!has_decoder || steps_.empty())
    throw RunError(name + ": makes no features of decoded samples");
}

std::shared_ptr<const MelPart> FeatureChain::rows(const Samples& samples, int sample_rate) const {
  auto whole = std::make_shared<Waveform>();
  whole->samples = samples;
  whole->sample_rate = sample_rate;
  whole->file = {sample_rate, samples.count, samples.count};
  std::shared_ptr<const void> payload = std::move(whole);
  for (const Step& step : steps_) {
    if (step.stage == nullptr) {
      auto batch = std::make_shared<Batch>();
      batch->parts.push_back(std::static_pointer_cast<const Windows>(payload));
      payload = std::move(batch);
      continue;
    }
    std::vector<std::shared_ptr<const void>> out;
    const Ledger::Entry entry = step.stage->pass({payload}, out);
    if (entry.outcome != Outcome::ok || out.size() != 1)
      throw RunError(
          fmt::format("{}: {}", step.name, entry.reason.empty() ? "gave no rows" : entry.reason));
    payload = std::move(out.front());
  }
  const auto batch = std::static_pointer_cast<const MelBatch>(payload);
  if (batch->parts.size() != 1 || !batch->parts.front() || batch->parts.front()->pending)
    throw RunError("the stages gave no rows");
  return batch->parts.front();
}

}  // namespace melflow
