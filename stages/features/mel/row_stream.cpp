#include "stages/features/mel/row_stream.h"

#include <algorithm>
#include <optional>

namespace melflow {
namespace {

// A longer piece is taken in parts, so that what a stream holds does not depend on it.
constexpr std::int64_t kPart = 4096;  // [samples]

// The most rows that a step gives for a piece that is not the last; it never is ahead of what came.
std::int64_t most_given(const OrderedStep& step, std::int64_t rows) {
  const std::int64_t there = rows + step.most_held();
  return rows > 0 ? std::min(there, step.rows_out(there)) : 0;
}

}  // namespace

bool RowFront::add(std::shared_ptr<const FinishStep> step) {
  auto ordered = std::dynamic_pointer_cast<const OrderedStep>(step);
  const bool needs_all = ordered == nullptr;
  steps_.push_back(needs_all ? at_the_end(std::move(step)) : std::move(ordered));
  return needs_all;
}

int RowFront::columns() const {
  int columns = kernel_->plan().columns();
  for (const auto& step : steps_) columns = step->values_out(columns);
  return columns;
}

std::int64_t RowFront::rows_ready(std::int64_t samples) const {
  std::int64_t rows = kernel_->plan().frames_ready(samples);
  for (const auto& step : steps_) rows = step->rows_ready(rows);
  return rows;
}

std::int64_t RowFront::most_delay(std::int64_t hop) const {
  // The samples after which row t is out.
  const auto needed = [this](std::int64_t t) -> std::optional<std::int64_t> {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    std::int64_t low = 0, high = 1;
    while (rows_ready(high) <= t) {
      if (high > kMost) return std::nullopt;  // there is no such row
      high *= 2;
    }
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (rows_ready(middle) <= t ? low : high) = middle;
    }
    return high;
  };
  // The first rows wait longer than others; where rows come in groups, all of a group are tried.
  constexpr std::int64_t kRows = 256, kFar = 100'000;
  std::int64_t most = 0;
  for (const std::int64_t from : {std::int64_t{0}, kFar})
    for (std::int64_t t = from; t < from + kRows; ++t)
      if (const auto samples = needed(t)) most = std::max(most, *samples - t * hop);
  return most;
}

RowStream::RowStream(std::shared_ptr<const RowFront> front, std::uint64_t noise_key)
    : front_(std::move(front)), noise_key_(noise_key) {
  reset();
}

void RowStream::reset() {
  samples_.clear();
  begin_ = seen_ = frames_ = 0;
  links_.clear();
  int columns = front_->kernel().plan().columns();
  std::int64_t rows = reserved_frames_;
  for (const auto& step : front_->steps()) {
    links_.push_back({step->start(columns)});
    if (rows > 0) links_.back().pass->reserve(rows);
    rows = most_given(*step, rows);
    columns = step->values_out(columns);
  }
}

std::int64_t RowStream::reserve(std::int64_t most, Scratch& scratch) {
  const MelPlan& plan = front_->kernel().plan();
  const std::int64_t part = std::min(most, kPart);
  samples_.reserve(static_cast<std::size_t>(2 * plan.context() + part));
  reserved_frames_ = (part + plan.context()) / plan.hop() + 2;
  reset();
  int columns = plan.columns();
  std::int64_t rows = reserved_frames_, all = (most + plan.context()) / plan.hop() + 2;
  scratch.rows_.reserve(static_cast<std::size_t>(rows * columns));
  scratch.ready_.reserve(1);
  for (std::size_t i = 0; i < front_->steps().size(); ++i) {
    const OrderedStep& step = *front_->steps()[i];
    rows = most_given(step, rows);
    all = most_given(step, all);
    columns = step.values_out(columns);
    scratch.between_[i % 2].reserve(static_cast<std::size_t>(rows * columns));
  }
  return all;
}

void RowStream::push(std::span<Feed> feeds, Scratch& scratch) {
  if (feeds.empty()) return;
  const MelKernel& kernel = feeds.front().stream->front().kernel();
  const MelPlan& plan = kernel.plan();
  const auto columns = static_cast<std::size_t>(plan.columns());
  while (!feeds.empty()) {
    std::int64_t all = 0;
    scratch.ready_.clear();
    for (Feed& feed : feeds) {
      RowStream& s = *feed.stream;
      s.append(feed);
      const bool is_end = feed.is_last && feed.count == 0;
      const std::int64_t to = is_end ? plan.frames(s.seen_) : plan.frames_ready(s.seen_);
      scratch.ready_.push_back(to - s.frames_);
      all += scratch.ready_.back();
    }
    scratch.rows_.resize(static_cast<std::size_t>(all) * columns);
    float* to = scratch.rows_.data();
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const Feed& feed = feeds[i];
      feed.stream->add_frames(scratch.ready_[i], feed.is_last && feed.count == 0, to, scratch);
      to += static_cast<std::size_t>(scratch.ready_[i]) * columns;
    }
    kernel.flush(scratch.kernel_);
    const float* from = scratch.rows_.data();
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const Feed& feed = feeds[i];
      const std::int64_t count = scratch.ready_[i];
      feed.stream->frames_ += count;
      feed.stream->drop_samples();
      feed.stream->pass_on(from, count, feed.is_last && feed.count == 0, *feed.rows, scratch);
      from += static_cast<std::size_t>(count) * columns;
    }
    const auto is_done = [](const Feed& feed) { return feed.count == 0; };
    feeds = feeds.first(static_cast<std::size_t>(
        std::remove_if(feeds.begin(), feeds.end(), is_done) - feeds.begin()));
  }
}

void RowStream::append(Feed& feed) {
  const std::int64_t n = std::min(feed.count, kPart);
  const std::size_t old = samples_.size();
  samples_.resize(old + static_cast<std::size_t>(n));
  if (feed.is_int16) {
    const auto* from = static_cast<const std::int16_t*>(feed.samples);
    for (std::int64_t i = 0; i < n; ++i)
      samples_[old + static_cast<std::size_t>(i)] = static_cast<float>(from[i]) * kInt16Scale;
    feed.samples = from + n;
  } else {
    const auto* from = static_cast<const float*>(feed.samples);
    std::copy_n(from, n, samples_.data() + old);
    feed.samples = from + n;
  }
  feed.count -= n;
  seen_ += n;
}

void RowStream::add_frames(std::int64_t count, bool is_last, float* out, Scratch& scratch) const {
  if (count == 0) return;
  const SignalView<float> view{samples_.data(), begin_, seen_, is_last ? seen_ : -1, noise_key_, 0};
  front_->kernel().add(view, frames_, count, out, scratch.kernel_);
}

void RowStream::drop_samples() {
  const auto needed =
      static_cast<std::size_t>(std::min(front_->kernel().plan().context(), seen_ - begin_));
  if (samples_.size() < 2 * needed) return;  // so that each sample is moved about once
  const auto dropped = static_cast<std::ptrdiff_t>(samples_.size() - needed);
  samples_.erase(samples_.begin(), samples_.begin() + dropped);
  begin_ += dropped;
}

void RowStream::pass_on(const float* rows, std::int64_t count, bool is_last, RowVector& out,
                        Scratch& scratch) {
  const auto steps = front_->steps();
  int columns = front_->kernel().plan().columns();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (count == 0 && !is_last) return;
    Link& link = links_[i];
    link.seen += count;
    const std::int64_t ready = link.seen == 0 ? 0
                               : is_last      ? steps[i]->rows_out(link.seen)
                                              : steps[i]->rows_ready(link.seen);
    const int columns_out = steps[i]->values_out(columns);
    std::vector<float>& to = scratch.between_[i % 2];
    to.resize(static_cast<std::size_t>(ready - link.made) * static_cast<std::size_t>(columns_out));
    link.pass->take(rows, count,
                    {link.made, ready - link.made, to.data(), is_last ? link.seen : -1});
    rows = to.data();
    count = ready - link.made;
    link.made = ready;
    columns = columns_out;
  }
  out.insert(out.end(), rows, rows + count * columns);
}

}  // namespace melflow
