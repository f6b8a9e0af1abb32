#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "apps/c/front.h"
#include "apps/c/settings.h"

namespace melflow::c_interface {
namespace {

// Throws unless all values from `begin` on are finite.
void check_finite(const RowVector& rows, std::size_t begin, int columns) {
  const auto wrong = std::find_if_not(rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end(),
                                      [](float x) { return std::isfinite(x); });
  if (wrong == rows.end()) return;
  const auto at = static_cast<std::size_t>(wrong - rows.begin()) - begin;
  throw Failure{MELFLOW_BAD_AUDIO, "row " + std::to_string(at / static_cast<std::size_t>(columns)) +
                                       " of this call is not finite, as of samples that are not"};
}

// Samples that are resampled or filled up at once, which bounds the work space.
constexpr std::int64_t kAtOnce = 4096;

class CoreFront final : public Front {
 public:
  CoreFront(Source source, std::string text, FrontSettings settings, int rate)
      : source_(source),
        text_(std::move(text)),
        window_(settings.window),
        resampling_(settings.resampling),
        rate_(settings.mel.sample_rate) {
    made_ = make_front(std::move(settings));
    columns = made_.rows->columns();
    sample_rate = rate;
    row_seconds = made_.row_seconds;
    fingerprint = made_.fingerprint;
    if (sample_rate != rate_) rate_change(sample_rate, rate_, resampling_);  // where there is none
    if (made_.needs_whole.empty() && window_ == 0) delay = most_delay();
  }

  [[nodiscard]] std::unique_ptr<Recording> start(std::int64_t most, bool finish_only,
                                                 RowVector& rows) const override {
    if (window_ > 0)
      throw Failure{MELFLOW_UNSUPPORTED,
                    "segment.length fills recordings up, which a stream does not; leave it out"};
    if (!made_.needs_whole.empty() && !finish_only)
      throw Failure{MELFLOW_NEEDS_WHOLE, made_.needs_whole + ", or use MELFLOW_FINISH_ONLY"};
    auto out = std::make_unique<CoreRecording>(*this);
    rows.reserve(static_cast<std::size_t>(out->reserve(most) * columns));
    return out;
  }

  [[nodiscard]] RowVector rows(const Given& samples) const override {
    RowVector out;
    if (samples.count == 0) return out;
    CoreRecording recording(*this);
    if (window_ == 0) {
      recording.push(samples, true, out);
      return out;
    }
    if (samples.count > in_rate(window_))
      throw Failure{MELFLOW_BAD_AUDIO, "the recording has " + std::to_string(samples.count) +
                                           " samples, more than segment.length"};
    recording.push_padded(samples, window_, out);
    return out;
  }

  [[nodiscard]] RowVector rows_of_file(std::span<const std::byte> file,
                                       double most_seconds) const override {
    std::call_once(has_files_, [this] { files_ = pipeline_front(source_, text_, 0, rate_); });
    return files_->rows_of_file(file, most_seconds);
  }

  [[nodiscard]] std::int64_t count(std::int64_t samples) const override {
    if (samples == 0) return 0;
    if (window_ > 0)
      samples = window_;
    else if (sample_rate != rate_)
      samples =
          static_cast<std::int64_t>(std::ceil(static_cast<double>(samples) * rate_ / sample_rate)) +
          2;
    std::int64_t rows = made_.rows->kernel().plan().frames(samples);
    for (const auto& step : made_.rows->steps()) rows = rows > 0 ? step->rows_out(rows) : 0;
    return rows;
  }

 private:
  class CoreRecording final : public Recording {
   public:
    explicit CoreRecording(const CoreFront& front)
        : front_(front),
          rows_(front.made_.rows, front.made_.noise_key),
          scratch_(*front.made_.rows) {
      start_rate_change();
    }
    void push(const Given& samples, bool is_last, RowVector& rows) override {
      const std::size_t before = rows.size();
      at_own_rate(samples, is_last, [&](const Given& own, bool is_end) { put(own, is_end, rows); });
      check_finite(rows, before, front_.columns);
    }
    // All of a recording, with zeros up to `window` samples at the front end's rate.
    void push_padded(const Given& samples, std::int64_t window, RowVector& rows) {
      std::int64_t rest = window;
      at_own_rate(samples, true, [&](Given own, bool) {
        own.count = std::min(own.count, rest);
        rest -= own.count;
        put(own, false, rows);
      });
      const std::vector<float> zeros(static_cast<std::size_t>(std::min(rest, kAtOnce)));
      do {
        const Given some{zeros.data(), std::min(rest, kAtOnce), false};
        rest -= some.count;
        put(some, rest == 0, rows);
      } while (rest > 0);
      check_finite(rows, 0, front_.columns);
    }
    void reset() override {
      rows_.reset();
      start_rate_change();
    }
    // Returns the most rows of a push, or of a part of it where samples are resampled.
    std::int64_t reserve(std::int64_t most) {
      if (change_ != nullptr)
        most = std::min(most, kAtOnce) * front_.rate_ / front_.sample_rate + 1;
      return rows_.reserve(most, scratch_);
    }

   private:
    void start_rate_change() {
      if (front_.sample_rate != front_.rate_)
        change_ = rate_change(front_.sample_rate, front_.rate_, front_.resampling_);
    }
    // Calls `take` with the samples at the front end's rate, part by part where they are resampled.
    template <class Take>
    void at_own_rate(const Given& samples, bool is_last, Take&& take) {
      if (change_ == nullptr) return take(samples, is_last);
      Given rest = samples;
      do {
        Given some = rest;
        some.count = std::min(rest.count, kAtOnce);
        rest.count -= some.count;
        rest.data = static_cast<const std::byte*>(rest.data) +
                    some.count * static_cast<std::int64_t>(rest.is_int16 ? 2 : 4);
        const bool is_end = is_last && rest.count == 0;
        change_->put(some, is_end, resampled_);
        take(Given{resampled_.data(), std::ssize(resampled_), false}, is_end);
      } while (rest.count > 0);
    }
    void put(const Given& samples, bool is_last, RowVector& rows) {
      RowStream::Feed feed{&rows_, samples.data, samples.count, samples.is_int16, is_last, &rows};
      RowStream::push({&feed, 1}, scratch_);
    }

    const CoreFront& front_;
    RowStream rows_;
    RowStream::Scratch scratch_;
    std::unique_ptr<RateChange> change_;
    std::vector<float> resampled_;
  };

  // The number of samples that come, of a number at the front end's own rate.
  [[nodiscard]] std::int64_t in_rate(std::int64_t samples) const {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(samples) * sample_rate / rate_));
  }

  [[nodiscard]] std::int64_t most_delay() const {
    const std::int64_t samples = made_.rows->most_delay(std::llround(row_seconds * rate_));
    if (sample_rate == rate_) return samples;
    return in_rate(samples) + rate_change_lag(sample_rate, rate_, resampling_);
  }

  const Source source_;
  const std::string text_;
  const std::int64_t window_;
  const RateOptions resampling_;
  const int rate_;  // of mel
  MadeFront made_;
  mutable std::once_flag has_files_;
  mutable std::shared_ptr<const Front> files_;
};

}  // namespace

std::shared_ptr<const Front> core_front(Source source, std::string_view text, int rate) {
  FrontSettings settings =
      source == Source::preset ? settings_of_preset(text) : settings_of_json(text);
  if (!settings.only_in_graph.empty()) return pipeline_front(source, text, rate);
  if (rate == 0) rate = settings.mel.sample_rate;
  if (!settings.has_fixed_times) settings.mel.sample_rate = rate;
  return std::make_shared<const CoreFront>(source, std::string(text), std::move(settings), rate);
}

}  // namespace melflow::c_interface
