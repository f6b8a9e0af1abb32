#include "apps/calls/stage_chain.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "apps/calls/utterance_cut.h"
#include "pipeline/base/problem.h"
#include "stages/containers/container.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/row_type.h"
#include "stages/training/recording_rows.h"

namespace melflow {
namespace {

std::string several_results(const std::string& name, const std::string& node) {
  return fmt::format(
      "{}: {} makes several results of a recording, and here each has one; use melflow.run or "
      "melflow.Loader",
      name, node);
}

// Returns why a recording with so much audio fails, or "".
std::string too_long(const FileAudio& audio, const RowCall& call) {
  const double seconds = static_cast<double>(audio.frames) / audio.sample_rate;
  if (seconds > call.most_seconds)
    return fmt::format("is longer than max_seconds: {:.6g} s, and there are {:.3f} s or more",
                       call.most_seconds, seconds);
  if (audio.frames > call.most_samples)
    return fmt::format("is longer than max_samples: {}, and there are {} or more",
                       call.most_samples, audio.frames);
  return {};
}

}  // namespace

void RowCall::set_deadline(double seconds) {
  constexpr double kFar = 1e9;  // [s], so that the time point does not overflow
  if (seconds > kFar) return;
  deadline_seconds = seconds;
  deadline = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

StageChain::StageChain(Plan plan, const std::string& name, Input input) {
  for (const Problem& w : plan.warnings) warnings_.push_back(w.str());
  for (PlanNode& n : plan.nodes) {
    if (n.to.size() > 1 || n.inputs.size() > 1 || !n.outputs.empty())
      throw RunError(
          fmt::format("{}: {} has several outputs or inputs; for one recording at a time a "
                      "pipeline has one way from its source to its output",
                      name, n.name));
    if (n.info->traits.kind == StageKind::source) {
      if (n.stage->traits().out != port_type<FileRef>())
        no_files_ = fmt::format("{}: its source, {}, gives no files; give samples", name, n.name);
      if (n.stage->traits().out == port_type<Waveform>()) samples_step_ = 0;
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
      type_ = batches->inputs().front().type;
      settings_ = to_json(n.stage->feature_settings());
      fingerprint_ = feature_fingerprint(n.stage->feature_settings());
    } else if (input == Input::listed) {
      add(std::move(n), name);
    } else {
      add_given(std::move(n), name);
    }
  }
  if (steps_.size() == samples_step_.value_or(0))
    throw RunError(name + ": makes no features of decoded samples");
  if (input == Input::listed) find_lengths();
}

void StageChain::add_given(PlanNode&& node, const std::string& name) {
  if (node.info->traits.cuts) return;
  const StageTraits traits = node.stage->traits();
  if (traits.in == port_type<FileRef>()) bytes_step_ = steps_.size() + 1;
  const bool is_before = !samples_step_.has_value();
  if (is_before && node.info->traits.divides)
    no_files_ = several_results(name, node.written);
  else
    add(std::move(node), name);
  if (is_before && traits.out == port_type<Waveform>()) samples_step_ = steps_.size();
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
  if (node.info->traits.divides) throw RunError(several_results(name, node.written));
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
Ledger::Entry StageChain::pass(std::span<const Step> steps, const Blocks& in, const Take& take,
                               const Look& look) {
  std::vector<std::unique_ptr<StageRunner::Pass>> passes;
  for (const Step& step : steps)
    passes.push_back(step.stage ? std::make_unique<StageRunner::Pass>(*step.stage) : nullptr);
  Ledger::Entry refused;
  const std::function<bool(std::size_t, std::shared_ptr<const void>, bool)> put =
      [&](std::size_t at, std::shared_ptr<const void> block, bool is_last) {
        if (std::string why = look ? look(at, block.get()) : std::string(); !why.empty()) {
          refused = {Outcome::failed, at > 0 ? steps[at - 1].name : std::string(), std::move(why)};
          return false;
        }
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
  if (refused.outcome == Outcome::failed) return refused;
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
    Rows made = rows(steps_, u.blocks, {});
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
  return rows(steps_, {std::move(file)}, {expected, begin, end});
}

StageChain::Rows StageChain::rows(std::span<const Step> steps, const Blocks& blocks,
                                  const Wanted& wanted, const Look& look) const {
  Rows made;
  RecordingRows all(info_, type_);
  all.clear(wanted.begin);
  if (wanted.expected > 0) all.reserve(std::min(wanted.expected, wanted.end) - wanted.begin);
  Ledger::Entry refused;
  Ledger::Entry entry = pass(
      steps, blocks,
      [&](const std::shared_ptr<const void>& block) {
        const auto batch = std::static_pointer_cast<const MelBatch>(block);
        const std::shared_ptr<const MelPart> part =
            batch->parts.empty() ? nullptr : batch->parts.front();
        if (part == nullptr) throw RunError("a recording has lost a block of its rows");
        if (std::optional<ItemError> error = unstorable_in(*part))
          refused = {Outcome::failed, "batches", std::move(error->reason)};
        const std::int64_t there = part->first_row + part->row_count;
        if (there > wanted.most) refused = {Outcome::failed, "segment", "is longer than pad_to"};
        if (refused.outcome == Outcome::failed) return false;
        made.file_rate = part->file.sample_rate;
        if (all.add(part, part->last ? there : -1)) {
          made.first = all.first();
          made.count = all.count();
          if (wanted.out.data == nullptr)
            made.values = all.take();
          else if (made.count <= wanted.out.rows)
            std::copy_n(all.data(), static_cast<std::size_t>(made.count) * all.row_bytes(),
                        wanted.out.data);
          else
            throw std::invalid_argument(
                fmt::format("out has room for {} rows, and the recording gives {}", wanted.out.rows,
                            made.count));
          made.is_whole = made.first == 0;
        } else if (!part->pending && there >= wanted.end) {
          made.first = wanted.begin;
          made.count = there - wanted.begin;
          made.values = all.take_begun();
          made.is_whole = false;
          return false;
        }
        return true;
      },
      look);
  made.entry = refused.outcome == Outcome::failed ? std::move(refused) : std::move(entry);
  if (made.entry.outcome != Outcome::ok) made = {std::move(made.entry), {}, 0};
  return made;
}

std::optional<ItemError> StageChain::unstorable_in(const MelPart& part) const {
  if (part.pending || part.type == type_) return std::nullopt;
  return unstorable(part.values(), part.first_row, part.row_count, *info_, type_);
}

StageChain::Rows StageChain::given(std::size_t first_step, std::shared_ptr<const void> recording,
                                   const RowCall& call, const RowSpace& out) const {
  if (first_step < *samples_step_ && !no_files_.empty()) throw RunError(no_files_);
  const auto look = [&](std::size_t at, const void* block) -> std::string {
    if (call.is_ended) throw CallEnded("the call was given up");
    if (call.deadline && RowCall::Clock::now() >= *call.deadline)
      throw CallEnded(fmt::format("not ended by its deadline, {:.6g} s", call.deadline_seconds));
    if (first_step + at != *samples_step_) return {};
    return too_long(static_cast<const Waveform*>(block)->file, call);
  };
  Rows made = rows(std::span(steps_).subspan(first_step), {std::move(recording)},
                   {.most = call.most_rows, .out = out}, look);
  if (made.entry.outcome == Outcome::ok) return made;
  throw RunError(made.entry.stage.empty()
                     ? made.entry.reason
                     : fmt::format("{}: {}", made.entry.stage, made.entry.reason));
}

StageChain::Rows StageChain::rows(const std::string& path, const RowCall& call,
                                  const RowSpace& out) const {
  return given(0, std::make_shared<FileRef>(located(path)), call, out);
}

StageChain::Rows StageChain::rows(std::span<const std::byte> file, const RowCall& call,
                                  const RowSpace& out) const {
  if (bytes_step_ > 0 && file.empty())
    throw RunError(steps_[bytes_step_ - 1].name + ": empty file (0 bytes)");
  auto ref = std::make_shared<FileRef>();
  ref->size = file.size();
  auto raw = std::make_shared<RawBytes>();
  raw->file = std::move(ref);
  raw->data = Buffer::over(file);
  raw->size = file.size();
  return given(bytes_step_, std::move(raw), call, out);
}

StageChain::Rows StageChain::rows(const Samples& samples, int sample_rate, const RowCall& call,
                                  const RowSpace& out) const {
  auto whole = std::make_shared<Waveform>();
  whole->samples = samples;
  whole->sample_rate = sample_rate;
  whole->file = {sample_rate, samples.count, samples.count};
  return given(*samples_step_, std::move(whole), call, out);
}

}  // namespace melflow
