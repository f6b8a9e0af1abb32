#include "apps/python/batch_run.h"

#include <utility>

#include <fmt/format.h>

#include "apps/python/process.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/permutation.h"

namespace melflow {
namespace {

Plan load(const BatchRun::Settings& settings, const std::vector<Assignment>& sets) {
  LoadOptions options;
  options.vars = settings.vars;
  options.sets = sets;
  options.workers = settings.workers;
  return settings.text.empty() ? load_plan(settings.pipeline, options)
                               : load_plan_text(settings.text, settings.pipeline, options);
}

const PlanNode& node_of_batches(const Plan& plan) {
  const PlanNode* found = nullptr;
  int sinks = 0;
  for (const PlanNode& n : plan.nodes) {
    if (n.info->traits.kind != StageKind::sink) continue;
    ++sinks;
    if (dynamic_cast<const BatchSource*>(n.stage.get()) != nullptr) found = &n;
  }
  if (found == nullptr || sinks != 1)
    throw RunError(fmt::format(
        "{}: a pipeline to train from ends in one node of the stage batches, and this one has {}; "
        "put 'train: {{stage: batches, from: mel}}' in the place of what writes rows",
        plan.settings.file.empty() ? "the pipeline" : plan.settings.file,
        found == nullptr ? "none" : "other outputs beside it"));
  return *found;
}

// With the options of the node that gives batches, whatever it is called.
Plan load(const BatchRun::Settings& settings) {
  std::vector<Assignment> sets = settings.sets;
  const std::string name = node_of_batches(load(settings, sets)).name;
  for (const auto& [option, value] : settings.options) sets.push_back({name + "." + option, value});
  return load(settings, sets);
}

}  // namespace

BatchRun::Checked BatchRun::check(const Settings& settings) {
  const Plan plan = load(settings);
  Checked out;
  out.has_buckets = dynamic_cast<const BatchSource&>(*node_of_batches(plan).stage).has_buckets();
  for (const Problem& w : plan.warnings) out.warnings.push_back(w.str());
  return out;
}

BatchRun::BatchRun(const Settings& settings) {
  check_process();
  Plan plan = load(settings);
  const PlanNode& node = node_of_batches(plan);
  const auto& batches = dynamic_cast<const BatchSource&>(*node.stage);
  inputs_ = batches.inputs();
  fingerprint_ = feature_fingerprint(node.stage->feature_settings());
  queue_ = std::make_shared<BatchQueue>(batches.prefetch());
  const auto* source = dynamic_cast<const ManifestSource*>(plan.nodes.front().stage.get());
  if (source == nullptr)
    throw RunError("a pipeline to train from lists files (file_list), and this one does not");
  manifest_ = &source->manifest();
  plan.services.add(std::make_shared<BatchDelivery>(
      BatchDelivery{queue_, settings.pool, settings.epoch, settings.skip, settings.split,
                    settings.rank, settings.ranks}));
  if (settings.order)
    plan.services.add(std::make_shared<ListOrder>(
        ListOrder{Permutation::of_epoch(*settings.order, settings.epoch)}));
  runner_ = std::make_unique<Runner>(std::move(plan));
  thread_ = std::thread([this] { run(); });
}

BatchRun::~BatchRun() { stop(); }

void BatchRun::run() {
  try {
    report_ = runner_->run();
    if (report_.ending == Ending::failed) error_ = report_.error;
  } catch (const std::exception& e) {
    error_ = e.what();
  }
  queue_->end();
}

BatchQueue::State BatchRun::take(SampleBatch& out, double seconds) {
  check_process();
  const BatchQueue::State state = queue_->take(out, seconds);
  if (state != BatchQueue::State::ended) return state;
  join();
  if (!error_.empty()) throw RunError(error_);
  return state;
}

void BatchRun::stop() {
  if (is_forked_off()) {
    if (thread_.joinable()) thread_.detach();
    static_cast<void>(runner_.release());  // whose threads are not there
    return;
  }
  queue_->close();
  runner_->stop();
  join();
}

void BatchRun::join() {
  const std::lock_guard one(joining_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace melflow
