#include "apps/python/batch_run.h"

#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "pipeline/base/threads.h"
#include "pipeline/run/stage_runner.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/permutation.h"
#include "stages/run_task.h"

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
        "{}: training needs a pipeline that ends in one node of the stage batches, and this one "
        "has {}; put 'train: {{stage: batches, from: mel}}' in place of the node that writes rows",
        plan.settings.file.empty() ? "the pipeline" : plan.settings.file,
        found == nullptr ? "none" : "other outputs beside it"));
  return *found;
}

// Applies the options to the node of the stage `batches`, whatever its name.
Plan load(const BatchRun::Settings& settings) {
  std::vector<Assignment> sets = settings.sets;
  const std::string name = node_of_batches(load(settings, sets)).name;
  for (const auto& [argument, value] : settings.options)
    sets.push_back({name + "." + (argument == "batch_size" ? "size" : argument),
                    value,
                    {std::make_shared<const std::string>(argument), 0, 0}});
  return load(settings, sets);
}

const ManifestSource& lister(const Stage& source) {
  const auto* files = dynamic_cast<const ManifestSource*>(&source);
  if (files == nullptr)
    throw RunError("training needs a pipeline with a list of files (file_list), and this has none");
  return *files;
}

// The result does not depend on the order into which the recordings were shuffled.
Listing listing_of(const Manifest& list) {
  Listing out{list.label_names(), list.split_names(), list.target_names(), list.size(), 0};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string entry = list.name(i) + '\0' + list.split_name(list.split(i));
    out.hash += XXH3_64bits_withSeed(entry.data(), entry.size(), list.listed(i));
  }
  return out;
}

}  // namespace

Listing BatchRun::list(const Settings& settings) {
  check_process();
  Plan plan = load(settings);
  StageRunner source(std::move(plan.nodes.front()));
  source.stage().start(source.run());
  return listing_of(lister(source.stage()).manifest());
}

Listing BatchRun::listing() const { return listing_of(*manifest_); }

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
  for (const PlanNode& n : plan.nodes)
    if (n.info->traits.divides) dividers_.push_back(n.written);
  fingerprint_ = feature_fingerprint(node.stage->feature_settings());
  queue_ = std::make_shared<BatchQueue<SampleBatch>>(batches.prefetch());
  manifest_ = &lister(*plan.nodes.front().stage).manifest();
  const auto task = set_task(plan.services, {});
  task->delivery = std::make_shared<BatchDelivery>(BatchDelivery{
      queue_, [queue = queue_](std::string text) { queue->warn(std::move(text)); }, settings.pool,
      settings.epoch, settings.skip, settings.split, settings.rank, settings.ranks});
  if (settings.order) task->shuffle = Permutation::of_epoch(*settings.order, settings.epoch);
  runner_ = std::make_unique<Runner>(std::move(plan));
  thread_ = std::thread([this] {
    name_this_thread(thread_name("loader", 1));
    run();
  });
}

BatchRun::~BatchRun() {
  const WithoutLockIfHeld free;
  stop();
}

void BatchRun::run() {
  try {
    report_ = runner_->run();
    if (report_.ending == Ending::failed) error_ = report_.error;
  } catch (const std::exception& e) {
    error_ = e.what();
  }
  queue_->end();
}

TakeResult BatchRun::take(SampleBatch& out, double seconds) {
  check_process();
  const TakeResult state = queue_->take(out, seconds);
  if (state != TakeResult::ended) return state;
  join();
  if (!error_.empty()) throw RunError(error_);
  return state;
}

void BatchRun::stop() {
  if (is_forked_off()) {
    if (thread_.joinable()) thread_.detach();
    static_cast<void>(runner_.release());  // a forked process does not have its threads
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
