#include "apps/python/stage_chain.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "apps/python/utterance_cut.h"
#include "pipeline/base/problem.h"
#include "stages/containers/container.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/row_type.h"
#include "stages/training/recording_rows.h"

namespace melflow {
namespace {

StageChain::Rows or_refused(StageChain::Rows made) {
  if (made.entry.outcome != Outcome::ok)
    throw RunError(fmt::format("{}: {}", made.entry.stage, made.entry.reason));
  return made;
}

}  // namespace

StageChain::StageChain(Plan plan, const std::string& name, Input input) {
  for (const Problem& w : plan.warnings) warnings_.push_back(w.str());
  bool is_behind = input == Input::files;
  for (PlanNode& n : plan.nodes) {
    if (n.to.size() > 1 || n.inputs.size() > 1 || !n.outputs.empty())
      throw RunError(
          fmt::format("{}: {} has several outputs or inputs; for one recording at a time a "
                      "pipeline has one way from its source to its output",
                      name, n.name));
    if (n.info->traits.kind == StageKind::source) {
      source_ = std::make_unique<StageRunner>(std::move(n));
    } else if (n.info->traits.kind == StageKind::sink) {
      const auto* batches = dynamic_cast<const BatchSource*>(n.stage.get());
      if (batches == nullptr || batches->inputs().empty())
        throw RunError(fmt::format(
            "{}: for one recording at a time a pipeline ends in a node of the stage batches, and "
            "this one ends in {}",
            name, n.info->name));
      info_ = batches->inputs().front().rows;
      row_name_ = batches->inputs().front().name;
      type_ = batches->type();
      settings_ = to_json(n.stage->feature_settings());
      fingerprint_ = feature_fingerprint(n.stage->feature_settings());
    } else if (is_behind) {
      if (input == Input::files || !n.info->traits.cuts) add(std::move(n), name);
    } else {
      is_behind = n.stage->traits().out == port_type<Waveform>();
    }
  }
  if (steps_.empty()) throw RunError(name + ": makes no features of decoded samples");
  find_lengths();
}

void StageChain::start_source() {
  source_->stage().start(source_->run());
  if (keep_) keep_->stage().start(source_->run());
}

// Finds out whether row counts follow from headers. The first stage reads files, the second one
// decodes. Utterances end where their recording ends, so headers do not tell their lengths.
void StageChain::find_lengths() {
  if (cutter_ || steps_.size() < 2 || !steps_[1].stage) return;
  const auto* header = dynamic_cast<const ReadsLength*>(&steps_[1].stage->stage());
  for (std::size_t i = 2; i < steps_.size(); ++i) {
    if (!steps_[i].stage) continue;
    lengths_.push_back(dynamic_cast<const TellsLength*>(&steps_[i].stage->stage()));
    if (lengths_.back() == nullptr) return;
  }
  header_ = header;
}

std::optional<std::int64_t> StageChain::count_by_header(const FileRef& file) const {
  std::optional<RecordingLength> length = header_->length_in_header(file);
  for (const TellsLength* stage : lengths_)
    if (length) length = stage->length_of(*length);
  if (!length || length->rows <= 0) return std::nullopt;
  return length->rows;
}

void StageChain::add(PlanNode&& node, const std::string& name) {
  if (node.info->name == "keep_audio") {  // passes its input on unchanged
    keep_ = std::make_unique<StageRunner>(std::move(node));
    return;
  }
  if (node.info->traits.cuts) {
    std::string cutter = node.name;
    cutter_.emplace(Step{std::move(cutter), std::make_unique<StageRunner>(std::move(node))});
    before_ = std::move(steps_);
    steps_.clear();
    return;
  }
  if (node.info->traits.divides)
    throw RunError(
        fmt::format("{}: {} makes several results of a recording, and here each has one; use "
                    "melflow.run or melflow.Loader",
                    name, node.written));
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

// Passes each block through all steps before the next block. `take` gets the results of the last
// step and returns false when it wants no more.
Ledger::Entry StageChain::pass(const std::vector<Step>& steps, const Blocks& in, const Take& take) {
  std::vector<std::unique_ptr<StageRunner::Pass>> passes;
  for (const Step& step : steps)
    passes.push_back(step.stage ? std::make_unique<StageRunner::Pass>(*step.stage) : nullptr);
  const std::function<bool(std::size_t, std::shared_ptr<const void>, bool)> put =
      [&](std::size_t at, std::shared_ptr<const void> block, bool is_last) {
        if (at == steps.size()) return take(std::move(block));
        if (passes[at] == nullptr) {
          auto batch = std::make_shared<Batch>();
          batch->parts.push_back(std::static_pointer_cast<const Windows>(std::move(block)));
          return put(at + 1, std::move(batch), is_last);
        }
        return passes[at]->put(std::move(block), is_last,
                               [&, at](std::shared_ptr<const void> out, bool is_end) {
                                 return put(at + 1, std::move(out), is_end);
                               });
      };
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!put(0, in[i], i + 1 == in.size())) break;
  // The entry of the last failure; without one, the warnings.
  Ledger::Entry failed;
  Ledger::Warnings warnings;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (passes[i] == nullptr) continue;
    const Ledger::Entry entry = passes[i]->end();
    if (entry.outcome != Outcome::ok) failed = {entry.outcome, steps[i].name, entry.reason};
    if (!entry.reason.empty()) warnings.emplace_back(steps[i].name, entry.reason);
  }
  return failed.outcome == Outcome::open ? Ledger::warned(warnings) : failed;
}

StageChain::Recording StageChain::recording(std::shared_ptr<const FileRef> file,
                                            const Manifest& list, std::size_t first,
                                            std::size_t count) const {
  Recording out;
  if (!cutter_) {
    out.push_back(rows(std::move(file), -1));
    return out;
  }
  Blocks blocks;
  const Ledger::Entry recording = pass(before_, {std::move(file)}, [&](auto block) {
    blocks.push_back(std::move(block));
    return true;
  });
  for (CutUtterance& u :
       cut_utterances(*cutter_->stage, cutter_->name, blocks, recording, list, first, count)) {
    if (u.entry.outcome != Outcome::ok) {
      out.push_back({std::move(u.entry), {}, 0});
      continue;
    }
    Rows made = rows(u.blocks, -1, 0, kAll);
    if (made.entry.outcome == Outcome::ok && !u.entry.reason.empty())
      made.entry = made.entry.reason.empty()
                       ? std::move(u.entry)
                       : Ledger::warned({{u.entry.stage, std::move(u.entry.reason)},
                                         {made.entry.stage, std::move(made.entry.reason)}});
    out.push_back(std::move(made));
  }
  return out;
}

StageChain::Rows StageChain::rows(std::shared_ptr<const FileRef> file, std::int64_t expected,
                                  std::int64_t begin, std::int64_t end) const {
  return rows(Blocks{std::move(file)}, expected, begin, end);
}

StageChain::Rows StageChain::rows(const Blocks& blocks, std::int64_t expected, std::int64_t begin,
                                  std::int64_t end) const {
  Rows made;
  RecordingRows all(info_, type_);
  all.clear(begin);
  if (expected > 0) all.reserve(std::min(expected, end) - begin);
  std::optional<ItemError> error;
  const Ledger::Entry entry = pass(steps_, blocks, [&](const std::shared_ptr<const void>& block) {
    const auto batch = std::static_pointer_cast<const MelBatch>(block);
    const std::shared_ptr<const MelPart> part =
        batch->parts.empty() ? nullptr : batch->parts.front();
    if (part == nullptr) throw RunError("a recording has lost a block of its rows");
    error = unstorable_in(*part);
    if (error) return false;
    made.file_rate = part->file.sample_rate;
    const std::int64_t there = part->first_row + part->row_count;
    if (all.add(part, part->last ? there : -1)) {
      made.first = all.first();
      made.count = all.count();
      made.values = all.take();
      made.is_whole = made.first == 0;
    } else if (!part->pending && there >= end) {
      made.first = begin;
      made.count = there - begin;
      made.values = all.take_begun();
      made.is_whole = false;
      return false;
    }
    return true;
  });
  made.entry = error ? Ledger::Entry{Outcome::failed, "batches", std::move(error->reason)} : entry;
  if (made.entry.outcome != Outcome::ok) made = {std::move(made.entry), {}, 0};
  return made;
}

std::optional<ItemError> StageChain::unstorable_in(const MelPart& part) const {
  if (part.pending || part.type == type_) return std::nullopt;
  return unstorable(part.values(), part.first_row, part.row_count, *info_, type_);
}

StageChain::Rows StageChain::rows(const std::string& path) const {
  return or_refused(rows(std::make_shared<FileRef>(located(path)), -1));
}

StageChain::Rows StageChain::rows(const Samples& samples, int sample_rate) const {
  auto whole = std::make_shared<Waveform>();
  whole->samples = samples;
  whole->sample_rate = sample_rate;
  whole->file = {sample_rate, samples.count, samples.count};
  return or_refused(rows(Blocks{std::move(whole)}, -1, 0, kAll));
}

}  // namespace melflow
