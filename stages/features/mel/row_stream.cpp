#include "stages/features/mel/row_stream.h"

#include <algorithm>

namespace melflow {
namespace {

// A longer piece is taken in parts, so that what a stream holds does not depend on it.
constexpr std::int64_t kPart = 4096;  // [samples]

}  // namespace

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

RowStream::RowStream(std::shared_ptr<const RowFront> front, std::uint64_t noise_key)
    : front_(std::move(front)), noise_key_(noise_key) {
  reset();
}

void RowStream::reset() {
  samples_.clear();
  begin_ = seen_ = frames_ = 0;
  links_.clear();
  int columns = front_->kernel().plan().columns();
  for (const auto& step : front_->steps()) {
    links_.push_back({step->start(columns)});
    columns = step->values_out(columns);
  }
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
