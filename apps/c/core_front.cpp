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

// Samples that are resampled at once, which bounds the work space of a long piece.
constexpr std::int64_t kResampledAtOnce = 4096;

class CoreFront final : public Front {
 public:
  CoreFront(Source source, std::string text, FrontSettings settings, int rate)
      : source_(source),
        text_(std::move(text)),
        window_(settings.window),
        quality_(settings.resampling),
        rate_(settings.mel.sample_rate) {
    made_ = make_front(std::move(settings));
    columns = made_.rows->columns();
    sample_rate = rate;
    row_seconds = made_.row_seconds;
    fingerprint = made_.fingerprint;
    if (sample_rate != rate_) rate_change(sample_rate, rate_, quality_);  // where there is none
    if (made_.whole_option.empty() && window_ == 0) delay = most_delay();
  }

  [[nodiscard]] std::unique_ptr<Recording> start(std::int64_t most, bool finish_only,
                                                 RowVector& rows) const override {
    if (window_ > 0)
      throw Failure{MELFLOW_UNSUPPORTED,
                    "segment.length fills recordings up, which a stream does not; leave it out"};
    if (!made_.whole_option.empty() && !finish_only)
      throw Failure{MELFLOW_NEEDS_WHOLE, made_.whole_option + " needs the whole recording; write " +
                                             made_.whole + ", or use MELFLOW_FINISH_ONLY"};
    auto out = std::make_unique<CoreRecording>(*this);
    rows.reserve(static_cast<std::size_t>(out->reserve(most) * columns));
    return out;
  }

  [[nodiscard]] RowVector rows(const Given& samples) const override {
    RowVector out;
    CoreRecording recording(*this);
    if (window_ == 0) {
      recording.push(samples, true, out);
      return out;
    }
    // Zeros, of the rate after resampling.
    const std::int64_t in_window = in_rate(window_);
    if (samples.count > in_window)
      throw Failure{MELFLOW_BAD_AUDIO, "the recording has " + std::to_string(samples.count) +
                                           " samples, more than segment.length"};
    recording.push_padded(samples, window_, out);
    return out;
  }

  [[nodiscard]] RowVector rows_of_file(std::span<const std::byte> file,
                                       double most_seconds) const override {
    std::call_once(has_files_, [this] { files_ = pipeline_front(source_, text_, 0); });
    return files_->rows_of_file(file, most_seconds);
  }

  [[nodiscard]] std::int64_t count(std::int64_t samples) const override {
    if (window_ > 0)
      samples = window_;
    else if (sample_rate != rate_)
      samples =
          static_cast<std::int64_t>(std::ceil(static_cast<double>(samples) * rate_ / sample_rate)) +
          1;
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
      if (change_ == nullptr) {
        put(samples, is_last, rows);
      } else {
        Given rest = samples;
        do {
          const Given some = front_part(rest);
          change_->put(some, is_last && rest.count == 0, resampled_);
          put({resampled_.data(), std::ssize(resampled_), false}, is_last && rest.count == 0, rows);
        } while (rest.count > 0);
      }
      check_finite(rows, before, front_.columns);
    }
    void push_padded(const Given& samples, std::int64_t window, RowVector& rows) {
      std::int64_t come = 0;
      if (change_ == nullptr) {
        put(samples, false, rows);
        come = samples.count;
      } else {
        Given rest = samples;
        do {
          const Given some = front_part(rest);
          change_->put(some, rest.count == 0, resampled_);
          const std::int64_t n = std::min(std::ssize(resampled_), window - come);
          put({resampled_.data(), n, false}, false, rows);
          come += n;
        } while (rest.count > 0);
      }
      const std::vector<float> zeros(static_cast<std::size_t>(window - come));
      put({zeros.data(), std::ssize(zeros), false}, true, rows);
      check_finite(rows, 0, front_.columns);
    }
    void reset() override {
      rows_.reset();
      start_rate_change();
    }
    // Returns the most rows of a push.
    std::int64_t reserve(std::int64_t most) {
      if (change_ != nullptr)
        most = std::min(most, kResampledAtOnce) * front_.rate_ / front_.sample_rate + 1;
      return rows_.reserve(most, scratch_);
    }

   private:
    void start_rate_change() {
      if (front_.sample_rate != front_.rate_)
        change_ = rate_change(front_.sample_rate, front_.rate_, front_.quality_);
    }
    static Given front_part(Given& rest) {
      Given some = rest;
      some.count = std::min(rest.count, kResampledAtOnce);
      rest.count -= some.count;
      rest.data = static_cast<const std::byte*>(rest.data) +
                  some.count * static_cast<std::int64_t>(rest.is_int16 ? 2 : 4);
      return some;
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
    return in_rate(samples) + rate_change_lag(sample_rate, rate_, quality_);
  }

  const Source source_;
  const std::string text_;
  const std::int64_t window_;
  const std::string quality_;
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
