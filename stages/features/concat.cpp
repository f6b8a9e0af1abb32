// concat: joins the rows that several nodes make of the same recordings, side by side.
//
// In:  MelBatch, of several nodes.
// Out: MelBatch: each row is the row of the first input, then that of the second, and so on; if
//      rows have several frames, this applies to each frame. float32, or integers as the inputs.
//
// If the rows of an input are unfinished (MelPart::pending), so are those of the output: each
// pending step applies to the columns of its input.

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/stage/registry.h"
#include "pipeline/stage/side_by_side.h"
#include "stages/facts.h"
#include "stages/features/column_step.h"
#include "stages/items.h"
#include "stages/node_group.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

using Info = std::shared_ptr<const FeatureInfo>;

// Returns the common value, or `otherwise` if the values differ.
template <class T, class F>
T common(const std::vector<Info>& all, const F& value, T otherwise) {
  const T first = value(*all.front());
  const bool are_equal =
      std::all_of(all.begin(), all.end(), [&](const Info& i) { return value(*i) == first; });
  return are_equal ? first : otherwise;
}

// Joins the different texts, each once, in the order of the inputs, without empty ones.
template <class F>
std::string each_once(const std::vector<Info>& all, const F& text, const char* between) {
  std::vector<std::string> out;
  for (const Info& i : all)
    if (std::string t = text(*i); !t.empty() && std::find(out.begin(), out.end(), t) == out.end())
      out.push_back(std::move(t));
  return fmt::format("{}", fmt::join(out, between));
}

class Concat final : public SideBySide {
 public:
  explicit Concat(NoOptions) : SideBySide(port_type<MelBatch>(), port_type<MelBatch>()) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    require_rows(above, NumberType::float32);
    return above;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    infos_.clear();
    for (const Input& i : inputs()) infos_.push_back(i.given.get_or(property::kFeatures, nullptr));
    const auto is_unknown = [](const Info& i) { return i == nullptr; };
    Properties out = given;
    // The node before reports an error of its own.
    if (std::any_of(infos_.begin(), infos_.end(), is_unknown)) return out;
    for (std::size_t k = 0; k < infos_.size(); ++k)
      if (const std::string why = refusal(k); !why.empty()) {
        check.error("from", why);
        return out;
      }
    describe();
    out.set(property::kFeatures, info_);
    return out;
  }

  void start(RunContext& run) override {
    pool_ = &run.pool;
    set_computed_by();
  }
  void finish(RunContext&, Ending) override { set_computed_by(); }

  // Its own rows, and the rows of each input that wait for later ones of the others: as many as
  // front ends look ahead in samples.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    std::size_t waiting = 0;
    for (const Info& i : infos_) {
      const std::size_t rows =
          i->frames > 0 ? 2 : 3 + static_cast<std::size_t>(i->n_fft / std::max(i->hop, 1));
      waiting += rows * i->values_per_row() * size_of(i->type);
    }
    return BufferPool::rounded(input + waiting);
  }

 protected:
  [[nodiscard]] Piece piece(const Item& item, std::size_t part, std::size_t) const override {
    const auto batch = payload_of<MelBatch>(item);
    const std::shared_ptr<const MelPart>& p = batch->parts[part];
    if (p == nullptr) return {};
    std::shared_ptr<MelPart> note;
    if (p->pending || p->last) {
      note = std::make_shared<MelPart>(*p);
      note->data.reset();
    }
    return {p, p->first_row, p->row_count, p->last, std::move(note)};
  }

  [[nodiscard]] std::shared_ptr<const void> copy(const Slice& rows, std::size_t k) const override {
    const auto& part = *static_cast<const MelPart*>(rows.data.get());
    const std::size_t bytes = width(part, k) * size_of(part.type);
    auto out = std::make_shared<MelPart>(part);
    auto buffer =
        std::make_shared<Buffer>(pool_->lease(static_cast<std::size_t>(rows.count) * bytes));
    std::memcpy(buffer->data(), part.data->data() + static_cast<std::size_t>(rows.skip) * bytes,
                static_cast<std::size_t>(rows.count) * bytes);
    out->data = std::move(buffer);
    out->first_row += rows.skip;
    out->row_count = rows.count;
    return out;
  }

  Emission give(std::vector<Ready> ready, Origins& origins, ItemContext& context) const override {
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    const auto& in = *payload_of<MelBatch>(context.item());
    for (Ready& r : ready) {
      const bool ends = r.origin.ends();  // the last block of a file knows most about it
      const auto* last = static_cast<const MelPart*>(r.notes.front().get());
      out->parts.push_back(beside(r, ends ? last->file : in.parts[r.part]->file));
      origins.push_back(std::move(r.origin));
    }
    return emission(std::shared_ptr<const MelBatch>(std::move(out)));
  }

 private:
  // Returns the number of values in a row of an input, finished or not.
  [[nodiscard]] std::size_t width(const MelPart& part, std::size_t k) const {
    return part.pending ? static_cast<std::size_t>(part.pending_columns)
                        : infos_[k]->values_per_row();
  }

  [[nodiscard]] std::shared_ptr<const MelPart> beside(const Ready& r, const FileAudio& file) const {
    // For each input a part that describes its rows: one joined now, else the one noted before.
    std::vector<const MelPart*> kinds;
    std::size_t values = 0;
    bool is_pending = false;
    for (std::size_t k = 0; k < infos_.size(); ++k) {
      const std::shared_ptr<const void>& by =
          r.inputs[k].empty() ? r.notes[k] : r.inputs[k].front().data;
      kinds.push_back(static_cast<const MelPart*>(by.get()));
      is_pending |= kinds.back() != nullptr && kinds.back()->pending != nullptr;
      values += kinds.back() != nullptr ? width(*kinds.back(), k) : infos_[k]->values_per_row();
    }
    auto out = std::make_shared<MelPart>();
    out->first_row = r.first;
    out->row_count = r.count;
    out->last = r.origin.ends();
    out->file = file;
    out->type = info_->type;
    if (is_pending) set_pending(kinds, *out);
    const std::size_t size = size_of(out->type);
    auto buffer =
        std::make_shared<Buffer>(pool_->lease(static_cast<std::size_t>(r.count) * values * size));
    // Unfinished rows are frames.
    const std::size_t frames =
        infos_.front()->frames > 0 ? static_cast<std::size_t>(infos_.front()->frames) : 1;
    std::byte* at = buffer->data();
    for (std::size_t k = 0; k < infos_.size(); ++k) {
      std::byte* to = at;
      std::size_t bytes = 0;  // of a frame
      for (const Slice& s : r.inputs[k]) {
        const auto& part = *static_cast<const MelPart*>(s.data.get());
        bytes = width(part, k) / frames * size;
        const std::byte* from =
            part.data->data() + static_cast<std::size_t>(s.skip) * bytes * frames;
        const std::size_t count = static_cast<std::size_t>(s.count) * frames;
        for (std::size_t f = 0; f < count; ++f, from += bytes, to += values / frames * size)
          std::memcpy(to, from, bytes);
      }
      at += bytes;
    }
    out->data = std::move(buffer);
    return out;
  }

  // Combines the pending steps of all inputs, each for its columns.
  void set_pending(const std::vector<const MelPart*>& kinds, MelPart& out) const {
    auto steps = std::make_shared<UtteranceSteps>();
    int first = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const MelPart* kind = kinds[k];
      if (kind == nullptr || kind->pending == nullptr) {
        out.pending_columns += infos_[k]->columns;
        first += infos_[k]->columns;
        continue;
      }
      int columns = kind->pending_columns;
      out.pending_columns += columns;
      for (const auto& step : kind->pending->steps()) {
        steps->add(column_step(step, first, columns));
        columns = step->values_out(columns);
      }
      first += columns;
    }
    out.pending = std::move(steps);
  }

  // Says why input number `k` cannot be joined to the first; "" if it can, as far as is known.
  [[nodiscard]] std::string refusal(std::size_t k) const {
    const FeatureInfo &a = *infos_.front(), &b = *infos_[k];
    const std::string &first = inputs().front().name, &name = inputs()[k].name;
    if (b.is_samples())
      return fmt::format(
          "concat takes rows of features, but {0} gives samples; leave {0} out of from, "
          "and give it an output of its own",
          name);
    if (a.type != b.type)
      return fmt::format(
          "{} gives rows of {}, {} of {}; give them the same dtype, or each an output of its own "
          "(batches takes both: from: [{}, {}])",
          first, to_text(a.type), name, to_text(b.type), first, name);
    // Steps that remain (MelPart::pending) are for some of the columns, and keep the rows.
    for (const Input* i : {&inputs().front(), &inputs()[k]})
      if (const auto by = i->given.get(property::kResizedBy); by && a.frames == 0)
        return fmt::format(
            "{} gives rows that {} made, which are not the frames of a recording; put concat "
            "before "
            "it, or use segment, where each window has rows of its own",
            i->name, *by);
    if ((a.frames > 0) != (b.frames > 0))
      return fmt::format(
          "{} gives a row for each {}, {} for each {}; put both after the same segment", first,
          a.frames > 0 ? "window" : "frame", name, b.frames > 0 ? "window" : "frame");
    if (a.frames != b.frames)
      return fmt::format(
          "a row of {} has {} frames, one of {} has {}; give them the same hop, and "
          "frames of the same kind (center, or n_fft and win_length)",
          first, a.frames, name, b.frames);
    if (static_cast<double>(a.hop) * b.sample_rate != static_cast<double>(b.hop) * a.sample_rate)
      return fmt::format(
          "frames of {} start every {:.6g} ms, those of {} every {:.6g} ms; give them the same hop",
          first, 1e3 * a.hop / std::max(1, a.sample_rate), name,
          1e3 * b.hop / std::max(1, b.sample_rate));
    const auto grid = inputs().front().given.get(property::kWindowGrid),
               other = inputs()[k].given.get(property::kWindowGrid);
    if (a.frames > 0 && a.sample_rate == b.sample_rate && grid && other && !(*grid == *other))
      return fmt::format("{} and {} have different windows; put both after the same segment", first,
                         name);
    if (a.frames > 0 || a.sample_rate != b.sample_rate || !a.frames_of || !b.frames_of) return {};
    // If the frame counts differ for any length, they differ for one of these.
    for (std::int64_t n = 16 * std::max(a.n_fft, b.n_fft), end = n + 2 * a.hop; n < end; ++n)
      if (a.frames_of(n) != b.frames_of(n))
        return fmt::format(
            "of {} samples {} makes {} frames, {} makes {}; give them frames of the "
            "same kind (center, or n_fft and win_length)",
            n, first, a.frames_of(n), name, b.frames_of(n));
    return {};
  }

  void describe() {
    auto info = std::make_shared<FeatureInfo>(*infos_.front());
    info->name = kConcatRows;
    info->axis = "column";
    info->columns = 0;
    info->column_hz.clear();
    info->energy_column = -1;
    info->is_log = false;
    info->is_full_scale = false;
    info->groups.clear();
    info->unit = each_once(
        infos_, [](const FeatureInfo& i) { return i.unit; }, ", ");
    info->preset = common(
        infos_, [](const FeatureInfo& i) { return i.preset; }, std::string());
    info->n_fft = common(
        infos_, [](const FeatureInfo& i) { return i.n_fft; }, 0);
    info->computed_by = std::make_shared<ComputedBy>();
    const bool has_hz = std::any_of(infos_.begin(), infos_.end(),
                                    [](const Info& i) { return !i->column_hz.empty(); });
    for (std::size_t k = 0; k < infos_.size(); ++k) {
      const FeatureInfo& i = *infos_[k];
      info->groups.push_back({inputs()[k].name, i.name, i.unit, i.columns});
      std::vector<double> hz = i.column_hz;
      if (has_hz)
        hz.resize(static_cast<std::size_t>(i.columns), std::numeric_limits<double>::quiet_NaN());
      info->column_hz.insert(info->column_hz.end(), hz.begin(), hz.end());
      info->columns += i.columns;
    }
    info_ = std::move(info);
    set_computed_by();
  }

  // Updates the backends: which device computes is known only once it is open.
  void set_computed_by() const {
    *info_->computed_by = {
        each_once(
            infos_, [](const FeatureInfo& i) { return i.computed_by->backend; }, " and "),
        each_once(
            infos_, [](const FeatureInfo& i) { return i.computed_by->instruction_set; }, " and "),
        std::all_of(infos_.begin(), infos_.end(),
                    [](const Info& i) { return i->computed_by->wide_sets_agree; }),
        each_once(
            infos_, [](const FeatureInfo& i) { return i.computed_by->transform; }, " and ")};
  }

  std::vector<Info> infos_;  // of the inputs
  Info info_;
  BufferPool* pool_ = nullptr;
};

const RegisterStage<Concat, NoOptions> register_concat{
    "concat",
    "Puts the rows that several nodes make of the same recordings side by side, in the order of "
    "from."};

}  // namespace
}  // namespace melflow
