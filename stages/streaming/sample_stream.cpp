#include "stages/streaming/sample_stream.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "stages/features/mel/mel_option_table.h"
#include "stages/features/mel_front.h"
#include "stages/features/row_stage.h"
#include "stages/passes_streams.h"

namespace melflow {
namespace {

// Samples that are resampled at once, which bounds the work space of a long piece.
constexpr std::int64_t kResampledAtOnce = 4096;

constexpr const char* kFinishOnly = "finish_only gives all rows at the end of the recording";

}  // namespace

struct StreamFront::Scratch {
  explicit Scratch(const RowFront& front) : rows(front) {}
  RowStream::Scratch rows;
  std::vector<RowStream::Feed> feeds;
  std::vector<float> resampling;              // work space
  std::vector<std::vector<float>> resampled;  // by stream
};

StreamFront::~StreamFront() = default;

StreamFront::StreamFront(const Plan& plan, int sample_rate, bool finish_only)
    : sample_rate_(sample_rate) {
  std::vector<std::string> problems;
  bool is_behind = false;  // the decoder
  for (const PlanNode& node : plan.nodes) {
    const StageKind kind = node.info->traits.kind;
    if (kind == StageKind::source || kind == StageKind::sink || kind == StageKind::combine)
      continue;
    const auto is_row_node = [&plan](int to) {
      return plan.nodes[static_cast<std::size_t>(to)].info->traits.kind != StageKind::sink;
    };
    if (node.inputs.size() > 1 || std::count_if(node.to.begin(), node.to.end(), is_row_node) > 1)
      problems.push_back(fmt::format(
          "{}: has several inputs or outputs, and samples of a stream take one way", node.name));
    else if (const auto* passes = dynamic_cast<const PassesStreams*>(node.stage.get());
             passes != nullptr && !passes->why_no_stream().empty())
      problems.push_back(fmt::format("{}.{}", node.name, passes->why_no_stream()));
    else if (is_behind && !node.info->traits.cuts && !node.is_inserted)
      add(node, finish_only, problems);
    is_behind = is_behind || node.stage->traits().out == port_type<Waveform>();
  }
  if (problems.empty() && rows_ == nullptr)
    problems.push_back("there is no mel stage, and a stream gives rows of one");
  if (!problems.empty())
    throw RunError(fmt::format("rows cannot come while samples do: {}", fmt::join(problems, "\n")));
}

void StreamFront::add(const PlanNode& node, bool finish_only, std::vector<std::string>& problems) {
  if (dynamic_cast<const PassesStreams*>(node.stage.get()) == nullptr) {
    const bool is_device = node.info->name.starts_with("cuda_");
    problems.push_back(fmt::format("{}: the stage {} is for whole recordings{}", node.name,
                                   node.stage_name,
                                   is_device ? " on a GPU; use backend: cpu" : ""));
  } else if (const auto* resamples = dynamic_cast<const Resamples*>(node.stage.get())) {
    if (rows_ == nullptr && resamples->resampling().rate != sample_rate_)
      resampling_ = resamples->resampling();
  } else if (const auto* mel = dynamic_cast<const HasMelFront*>(node.stage.get())) {
    add_mel(node, mel->front(), finish_only, problems);
  } else if (const auto* stage = dynamic_cast<const RowStage*>(node.stage.get()); stage && rows_) {
    info_ = stage->info();
    const bool needs_all = rows_->add(stage->step());
    if (needs_all && !finish_only)
      problems.push_back(fmt::format("{}: the stage {} needs all rows of a recording; {}",
                                     node.name, node.stage_name, kFinishOnly));
    is_at_end_ = is_at_end_ || needs_all;
  }
}

void StreamFront::add_mel(const PlanNode& node, const MelFront& front, bool finish_only,
                          std::vector<std::string>& problems) {
  Windows samples;
  samples.sample_rate = resampling_ ? int{resampling_->rate} : sample_rate_;
  if (const auto refused = front.refusal(samples))
    problems.push_back(fmt::format("{}: the stream {}", node.name, refused->reason));
  if (const MelOptionRow* row = needs_whole(front.options()); row != nullptr && !finish_only)
    problems.push_back(fmt::format("{}.{} needs the whole recording; write {}, or {}", node.name,
                                   row->name, row->whole.instead, kFinishOnly));
  rows_ = std::make_shared<RowFront>(front.shared_kernel());
  info_ = front.info();
  noise_key_ = front.noise_key("");
  for (const auto& step : front.finish()->steps()) is_at_end_ = rows_->add(step) || is_at_end_;
}

std::int64_t StreamFront::most_lag() const {
  if (!resampling_) return 0;
  std::call_once(has_lag_, [this] {
    const auto lag = Resampler::most_lag(*resampling_, sample_rate_);
    if (!lag) throw RunError(lag.error().reason);
    lag_ = *lag;
  });
  return lag_;
}

std::optional<StreamFront::Delay> StreamFront::delay() const {
  if (is_at_end_) return std::nullopt;
  const std::int64_t most = rows_->most_delay(info_->hop);
  const double ratio = resampling_ ? static_cast<double>(sample_rate_) / resampling_->rate : 1.0;
  Delay out;
  out.samples =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(most) * ratio)) + most_lag();
  out.seconds = static_cast<double>(out.samples) / sample_rate_;
  return out;
}

// Marks a stream as in use by one call.
class SampleStream::Use {
 public:
  explicit Use(SampleStream& stream) : stream_(&stream) {
    if (stream.is_used_.test_and_set(std::memory_order_acquire))
      throw RunError("a stream is in use: it occurs twice in this call, or another thread uses it");
  }
  Use(Use&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (stream_ != nullptr) stream_->is_used_.clear(std::memory_order_release);
  }

 private:
  SampleStream* stream_;
};

SampleStream::SampleStream(std::shared_ptr<const StreamFront> front)
    : front_(std::move(front)), rows_(front_->rows_, front_->noise_key_) {}
SampleStream::~SampleStream() = default;

void SampleStream::reset() {
  const Use use(*this);
  rows_.reset();
  resampler_.reset();
  ended_.clear();
}

// Takes `count` of the feed's samples; returns why it cannot, or "".
std::string SampleStream::resample(Feed& feed, std::int64_t count, std::vector<float>& work,
                                   std::vector<float>& out) {
  const bool is_last = feed.is_last && count == feed.samples.count;
  if (!resampler_) {
    auto made = Resampler::make(*front_->resampling_, front_->sample_rate_);
    if (!made) return made.error().reason;
    resampler_ = std::move(*made);
  }
  work.resize(std::max(work.size(), resampler_->room(count)));
  Samples some = feed.samples;
  some.count = count;
  const auto made = resampler_->put(some, is_last, work.data());
  if (!made) return made.error().reason;
  out.assign(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(*made));
  feed.samples.data += static_cast<std::size_t>(count) * size_of(feed.samples.type);
  feed.samples.count -= count;
  return {};
}

// Computes the rows of streams that may be used.
void SampleStream::compute(const StreamFront& front, std::span<Feed> feeds) {
  const auto lease = front.scratch_.lease(
      [&front] { return std::make_unique<StreamFront::Scratch>(*front.rows_); });
  StreamFront::Scratch& scratch = *lease;
  if (!front.resampling_) {
    scratch.feeds.clear();
    for (const Feed& feed : feeds)
      scratch.feeds.push_back({&feed.stream->rows_, feed.samples.data, feed.samples.count,
                               feed.samples.type == SampleType::int16, feed.is_last, feed.rows});
    RowStream::push(scratch.feeds, scratch.rows);
  } else {
    if (scratch.resampled.size() < feeds.size()) scratch.resampled.resize(feeds.size());
    for (bool is_first = true, is_more = true; is_more; is_first = false) {
      is_more = false;
      scratch.feeds.clear();
      for (std::size_t i = 0; i < feeds.size(); ++i) {
        Feed& feed = feeds[i];
        const std::int64_t count = std::min(feed.samples.count, kResampledAtOnce);
        if (!feed.error.empty() || (count == 0 && !(is_first && feed.is_last))) continue;
        feed.error = feed.stream->resample(feed, count, scratch.resampling, scratch.resampled[i]);
        if (!feed.error.empty()) continue;
        is_more = is_more || feed.samples.count > 0;
        scratch.feeds.push_back({&feed.stream->rows_, scratch.resampled[i].data(),
                                 std::ssize(scratch.resampled[i]), false,
                                 feed.is_last && feed.samples.count == 0, feed.rows});
      }
      RowStream::push(scratch.feeds, scratch.rows);
    }
  }
}

void SampleStream::push(std::span<Feed> feeds) {
  if (feeds.empty()) return;
  const StreamFront& front = *feeds.front().stream->front_;
  std::vector<Use> uses;
  uses.reserve(feeds.size());
  for (const Feed& feed : feeds) {
    uses.emplace_back(*feed.stream);
    if (feed.stream->front_.get() != &front)
      throw RunError(
          "streams that get samples in one call have one front end, and these have several");
    if (!feed.stream->ended_.empty()) throw RunError(feed.stream->ended_);
  }
  std::vector<std::size_t> before;
  before.reserve(feeds.size());
  for (const Feed& feed : feeds) before.push_back(feed.rows->size());
  try {
    compute(front, feeds);
  } catch (...) {
    for (const Feed& feed : feeds)
      feed.stream->ended_ =
          "the stream has failed in an earlier call; reset() begins another recording";
    throw;
  }
  const auto columns = static_cast<std::size_t>(front.columns());
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    Feed& feed = feeds[i];
    SampleStream& s = *feed.stream;
    const std::size_t count = feed.rows->size() - before[i];
    const std::int64_t at = first_not_finite(feed.rows->data() + before[i], count,
                                             NumberType::float32, NumberType::float32);
    if (feed.error.empty() && at >= 0)
      feed.error = fmt::format("row {} is not finite, as of samples that are not",
                               s.rows_.rows() - static_cast<std::int64_t>(count / columns) +
                                   at / static_cast<std::int64_t>(columns));
    if (!feed.error.empty())
      s.ended_ =
          fmt::format("the stream has failed ({}); reset() begins another recording", feed.error);
    else if (feed.is_last)
      s.ended_ = "the stream has ended; reset() begins another recording";
  }
}

}  // namespace melflow
