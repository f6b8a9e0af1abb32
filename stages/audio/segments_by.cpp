// segments_by: makes a result of each stretch that an earlier stage marked.
//
// In:  Waveform blocks with marked stretches.
// Out: Waveform blocks; the samples of each stretch are counted from 0. They share the memory of
//      the input block. A stretch that ends in a block where none follows ends with a block without
//      samples, since another one may follow, or the recording may end with it. Where a later stage
//      takes whole recordings, such a stretch is kept, and emitted whole with the next block.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/heard_stretch.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/node_group.h"

namespace melflow {
namespace {

struct MarkedState final : StageState {
  bool is_open = false;      // a stretch has begun, and its last piece was not emitted
  std::int64_t begin = 0;    // of that stretch
  std::int64_t end = 0;      // up to where it was emitted or kept
  KeptSamples kept;          // that stretch, if nothing of it was emitted
  std::int64_t longest = 0;  // longest block so far [samples]
};

using Part = Expand<Waveform, Waveform>::Block;

class SegmentsBy final : public Divide<Waveform, Waveform> {
 public:
  explicit SegmentsBy(NoOptions) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);  // the output's samples have other positions
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    most_whole_ = required.get_or(requirement::kWholeBlock, 0);
    if (!given.get_or(property::kIsMarked, false))
      check.error("from",
                  "nothing is marked in what comes; take from a node that marks stretches, such "
                  "as mark_sound, with nothing between that changes the samples");
    Properties out = given;
    out.erase(property::kIsMarked);
    out.erase(property::kSamplesOfFile);
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }
  // Twice the samples, as both copies exist while a stretch is joined.
  [[nodiscard]] std::size_t keeps_of_stream(std::size_t input) const override {
    return most_whole_ == 0 ? 0 : 2 * BufferPool::rounded(std::min(most_whole_, input));
  }

  Result<std::unique_ptr<Cursor>> open(std::shared_ptr<const Waveform> in,
                                       ItemContext& context) const override {
    if (std::string wrong = problem_of(*in); !wrong.empty())
      return ItemError::failed(std::move(wrong));
    std::unique_ptr<StageState>& state = context.state();
    if (!state) state = std::make_unique<MarkedState>();
    std::vector<Part> parts = parts_of(*in, static_cast<MarkedState&>(*state), context.run().pool);
    if (in->last) state.reset();
    if (in->last && parts.empty()) return ItemError::skipped("no stretch of it is marked");
    return std::unique_ptr<Cursor>(std::make_unique<Parts>(std::move(parts)));
  }

 private:
  class Parts final : public Cursor {
   public:
    explicit Parts(std::vector<Part> parts) : parts_(std::move(parts)) {}
    Result<Block> next(ItemContext&) override {
      if (parts_.empty()) return Block{};
      Block& out = parts_[next_++];
      out.more = next_ < parts_.size();
      return std::move(out);
    }

   private:
    std::vector<Part> parts_;
    std::size_t next_ = 0;
  };

  // Returns why a block's stretches cannot be right: by a stage that changed samples and not these.
  static std::string problem_of(const Waveform& in) {
    std::int64_t from = in.start;
    const std::int64_t end = in.start + in.samples.count;
    for (const Stretch& s : in.marked) {
      if (s.begin < from || s.end < s.begin || s.end > end)
        return fmt::format(
            "samples {} to {} are marked in a block of samples {} to {}; a stage before this one "
            "that cuts or moves samples must do the same with Waveform::marked, or clear it",
            s.begin, s.end, in.start, end);
      from = s.end;
    }
    return {};
  }

  std::size_t most_whole_ = 0;  // size of a stretch that may be kept [bytes]

  [[nodiscard]] std::vector<Part> parts_of(const Waveform& in, MarkedState& state,
                                           BufferPool& pool) const {
    state.longest = std::max(state.longest, in.samples.count);
    std::vector<Part> out;
    for (const Stretch& s : in.marked) {
      const bool goes_on = &s == in.marked.data() && s.begin == state.end;
      if (state.is_open && !goes_on) end(in, state, out, pool);
      if (!std::exchange(state.is_open, true)) state.begin = s.begin;
      state.end = s.end;
      if (state.kept.count > 0 && !may_be_kept(in, state))
        give(in, {in.start, in.start}, state, out, pool);
      give(in, s, state, out, pool);
    }
    if (!state.is_open) return out;
    if (in.last) {
      end(in, state, out, pool);
    } else if (!out.empty() && !out.back().ends && out.back().out->first &&
               may_be_kept(in, state)) {
      state.kept.keep({out.back().out->samples}, 0, pool);
      out.pop_back();
    }
    return out;
  }

  // Whether the current stretch, as far as it has come, may be kept until the next block.
  [[nodiscard]] bool may_be_kept(const Waveform& in, const MarkedState& state) const {
    const auto most = static_cast<std::int64_t>(most_whole_ / size_of(in.samples.type));
    return state.end - state.begin <= std::min(most, state.longest);
  }

  // Adds a piece: the samples of `s`, behind those that were kept, if any.
  static void give(const Waveform& in, const Stretch& s, MarkedState& state, std::vector<Part>& out,
                   BufferPool& pool) {
    auto part = std::make_shared<Waveform>(in);
    part->marked.clear();
    part->samples.data += static_cast<std::size_t>(s.begin - in.start) * size_of(in.samples.type);
    part->samples.count = s.end - s.begin;
    part->start = s.begin - state.begin;
    if (state.kept.count > 0) {
      const HeardStretch joined = state.kept.joined(*part, pool);
      state.kept.count = 0;
      part->samples = joined.samples;
      part->start = joined.begin;
    }
    part->first = part->start == 0;
    part->last = false;
    out.push_back({std::move(part), true, false});
  }

  // Ends the current stretch: with the last piece of this block, or one without samples.
  static void end(const Waveform& in, MarkedState& state, std::vector<Part>& out,
                  BufferPool& pool) {
    if (out.empty() || out.back().ends) give(in, {in.start, in.start}, state, out, pool);
    Part& last = out.back();
    auto part = std::make_shared<Waveform>(*last.out);
    if (part->samples.count == 0) part->start = state.end - state.begin;
    part->first = part->start == 0;
    part->last = true;
    last.out = std::move(part);
    last.ends = true;
    const double rate = in.sample_rate;
    last.span = {static_cast<double>(state.begin) / rate, static_cast<double>(state.end) / rate};
    state.is_open = false;
  }
};

const RegisterStage<SegmentsBy, NoOptions> register_segments_by{
    "segments_by",
    "Makes a result of each stretch of a recording that a stage before it has marked.", true};

}  // namespace
}  // namespace melflow
