#include "apps/picture/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "apps/picture/canvas.h"
#include "apps/report/format.h"
#include "pipeline/base/problem.h"

namespace melflow {
namespace {

constexpr double kShownDecibels = 80;
constexpr int kMostColumns = 1600;  // with more frames, several share a column
constexpr int kWantedWidth = 900, kWantedHeight = 400, kLeastWidth = 480;
constexpr std::size_t kMostBands = 8192;
constexpr int kTextScale = 2;
constexpr int kGap = 8, kTick = 6, kBarWidth = 18;
constexpr Rgb kPaper{255, 255, 255}, kInk{40, 40, 40};

int text_width(const std::string& text) { return Canvas::text_width(text, kTextScale); }

// Formats with as many decimals as the distance between ticks needs.
std::string tick_text(double value, double step) {
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fmt::format("{:.{}f}", value == 0 ? 0.0 : value, decimals);
}

std::size_t columns_for(std::size_t frames, std::size_t in_each) {
  return (frames + in_each - 1) / in_each;
}

struct Range {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
};

class Drawing {
 public:
  /// `longest`: the number of frames of the longest plot on the same time axis.
  Drawing(const Spectrogram& s, std::size_t longest)
      : s_(s),
        joined_(columns_for(longest, kMostColumns)),
        columns_(static_cast<int>(columns_for(s.frames, joined_))),
        bands_(static_cast<int>(s.bands)),
        cell_width_(
            std::clamp(kWantedWidth / static_cast<int>(columns_for(longest, joined_)), 1, 24)),
        cell_height_(std::clamp(kWantedHeight / bands_, 1, 16)),
        width_(columns_ * cell_width_),
        height_(bands_ * cell_height_) {
    join();
    for (const double level : levels_) {
      if (!std::isfinite(level)) continue;
      range_.low = std::min(range_.low, level);
      range_.high = std::max(range_.high, level);
    }
    for (int b = 0; b < bands_; b += band_step()) left_ = std::max(left_, text_width(band_text(b)));
    left_ += 2 * kGap + kTick;
  }

  [[nodiscard]] const Range& range() const { return range_; }  ///< of this plot's levels
  /// Sets the levels of the darkest and the brightest colour.
  void set_range(const Range& range) {
    range_ = range;
    for (const double level : level_ticks())
      right_ = std::max(right_, text_width(level_text(level)));
    right_ = std::max(right_, text_width(s_.unit)) + 5 * kGap + kBarWidth + kTick;
  }
  [[nodiscard]] int left() const { return left_; }  ///< margin [pixels]
  void set_left(int left) { left_ = left; }

  Canvas draw() const {
    const int text = Canvas::text_height(kTextScale);
    Canvas c(left_ + std::max(width_ + right_, kLeastWidth),
             top() + height_ + kTick + 3 * kGap + 2 * text, kPaper);
    title(c);
    cells(c);
    band_axis(c);
    time_axis(c);
    scale_bar(c);
    return c;
  }

 private:
  [[nodiscard]] static int top() { return 4 * kGap + 2 * Canvas::text_height(kTextScale); }

  // Averages groups of frames into [columns, bands].
  void join() {
    levels_.assign(static_cast<std::size_t>(columns_) * s_.bands, 0);
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns_); ++c) {
      const std::size_t begin = c * joined_, end = std::min(begin + joined_, s_.frames);
      for (std::size_t b = 0; b < s_.bands; ++b) {
        double sum = 0;
        for (std::size_t f = begin; f < end; ++f) sum += s_.values[f * s_.bands + b];
        levels_[c * s_.bands + b] = sum / static_cast<double>(end - begin);
      }
    }
  }

  void title(Canvas& c) const {
    std::string text = s_.title;
    while (text.size() > 4 && text_width(text) > c.width() - 2 * kGap)
      text = "..." + text.substr(4);
    c.text(kGap, kGap, text, kTextScale, kInk);
  }

  void cells(Canvas& c) const {
    for (int x = 0; x < columns_; ++x)
      for (int b = 0; b < bands_; ++b) {
        const double level =
            levels_[static_cast<std::size_t>(x) * s_.bands + static_cast<std::size_t>(b)];
        c.fill(left_ + x * cell_width_, top() + (bands_ - 1 - b) * cell_height_, cell_width_,
               cell_height_, colour_of((level - range_.low) / (range_.high - range_.low)));
      }
    c.frame(left_ - 1, top() - 1, width_ + 2, height_ + 2, kInk);
  }

  [[nodiscard]] int band_step() const {
    int step = 1;
    for (const int next : {2, 5, 10, 20, 50, 100, 200, 500, 1000})
      if (step * cell_height_ < 30) step = next;
    return step;
  }
  [[nodiscard]] std::string band_text(int band) const {
    if (s_.band_hz.empty()) return std::to_string(band);
    const double hz = s_.band_hz[static_cast<std::size_t>(band)];
    return std::isnan(hz) ? "energy" : count_text(static_cast<std::size_t>(std::lround(hz)));
  }

  [[nodiscard]] const char* band_title() const {
    return s_.band_hz.empty() ? "column" : "band centre [Hz]";
  }

  void band_axis(Canvas& c) const {
    const int half = Canvas::text_height(kTextScale) / 2;
    c.text(kGap, top() - 2 * half - kGap, band_title(), kTextScale, kInk);
    for (int b = 0; b < bands_; b += band_step()) {
      const int y = top() + (bands_ - 1 - b) * cell_height_ + cell_height_ / 2;
      const std::string text = band_text(b);
      c.fill(left_ - 1 - kTick, y, kTick, 1, kInk);
      c.text(left_ - kTick - kGap - text_width(text), y - half, text, kTextScale, kInk);
    }
  }

  void time_axis(Canvas& c) const {
    const bool is_time = s_.frame_seconds > 0;
    const double unit = is_time ? s_.frame_seconds : 1;
    const double first = s_.first_frame * unit;
    const double last = first + static_cast<double>(s_.frames) * unit;
    const double pixels = cell_width_ / (static_cast<double>(joined_) * unit);
    std::vector<double> at = ticks(first, last, std::max(2, width_ / 100));
    // Rows are counted in whole numbers.
    if (!is_time) std::erase_if(at, [](double v) { return v != std::floor(v); });
    const double step = at.size() > 1 ? at[1] - at[0] : 1;
    const int y = top() + height_ + 1;
    int end = 0;  // right edge of the previous label
    for (const double t : at) {
      const int x = left_ + static_cast<int>(std::lround((t - first) * pixels));
      const std::string text = tick_text(t, step);
      c.fill(x, y, 1, kTick, kInk);
      const int begin = x - text_width(text) / 2;
      if (end > 0 && begin < end + kGap) continue;  // no room for this label
      c.text(begin, y + kTick + kGap / 2, text, kTextScale, kInk);
      end = begin + text_width(text);
    }
    const std::string name = is_time ? "time [s]" : s_.axis;
    c.text(std::max(kGap, left_ + (width_ - text_width(name)) / 2),
           y + kTick + kGap + Canvas::text_height(kTextScale) + kGap / 2, name, kTextScale, kInk);
  }

  [[nodiscard]] std::vector<double> level_ticks() const {
    return ticks(range_.low, range_.high, std::max(2, height_ / 50));
  }
  [[nodiscard]] std::string level_text(double level) const {
    const std::vector<double> all = level_ticks();
    return tick_text(level, all.size() > 1 ? all[1] - all[0] : 1);
  }

  void scale_bar(Canvas& c) const {
    const int half = Canvas::text_height(kTextScale) / 2;
    const int x = left_ + width_ + 3 * kGap;
    for (int y = 0; y < height_; ++y)
      c.fill(x, top() + y, kBarWidth, 1, colour_of(1 - (y + 0.5) / static_cast<double>(height_)));
    c.frame(x - 1, top() - 1, kBarWidth + 2, height_ + 2, kInk);
    c.text(std::max(x, 5 * kGap + text_width(band_title())), top() - 2 * half - kGap, s_.unit,
           kTextScale, kInk);
    int before = c.height();  // position of the previous label
    for (const double level : level_ticks()) {
      const int y =
          top() + static_cast<int>(std::lround((range_.high - level) / (range_.high - range_.low) *
                                               (height_ - 1)));
      c.fill(x + kBarWidth + 1, y, kTick, 1, kInk);
      if (before - y < 2 * half + kGap / 2) continue;
      before = y;
      c.text(x + kBarWidth + kTick + kGap, y - half, level_text(level), kTextScale, kInk);
    }
  }

  const Spectrogram& s_;
  const std::size_t joined_;  // frames in a column
  const int columns_, bands_, cell_width_, cell_height_, width_, height_;
  int left_ = 0, right_ = 0;    // margins [pixels]
  std::vector<double> levels_;  // [columns, bands]
  Range range_;
};

// Whether the frames of both last equally long.
bool has_axis_of(const Spectrogram& a, const Spectrogram& b) {
  return a.frame_seconds == b.frame_seconds && a.axis == b.axis;
}

Range hull(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// Limits the range to its upper part, of size `shown`.
Range shown_of(Range range, double shown) {
  if (range.high < range.low) range = {0, 0};  // all values are NaN
  if (shown > 0) range.low = std::max(range.low, range.high - shown);
  if (range.high - range.low < 1e-6) range.low = range.high - 1;
  return range;
}

void check(const Spectrogram& s) {
  if (s.frames == 0 || s.bands == 0) throw RunError("there is no frame to draw");
  if (s.bands > kMostBands)
    throw RunError(fmt::format("rows of {} values are too long for a picture, which has at most {}",
                               s.bands, kMostBands));
}

}  // namespace

std::vector<double> ticks(double lowest, double highest, int most) {
  const double raw = (highest - lowest) / std::max(1, most);
  if (!(raw > 0) || !std::isfinite(raw)) return {lowest};
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= raw * (1 - 1e-9)) step = factor * power;
  std::vector<double> out;
  for (double i = std::ceil(lowest / step - 1e-9); i * step <= highest + step * 1e-9; ++i)
    out.push_back(i * step);
  return out;
}

Levels to_levels(std::vector<float>& values, const std::string& unit) {
  if (unit == "dB") return {unit, kShownDecibels};
  const std::size_t space = unit.find(' ');
  const std::string scale = space == std::string::npos ? "" : unit.substr(0, space);
  const std::string quantity = space == std::string::npos ? unit : unit.substr(space + 1);
  double exponent = 0;
  if (quantity == "power") exponent = 2;
  if (quantity == "amplitude") exponent = 1;
  if (quantity.starts_with("amplitude^")) exponent = std::atof(quantity.c_str() + 10);
  if (exponent <= 0) return {unit};
  const double decibels = 20 / exponent;  // for a logarithm to base 10
  if (scale == "log10") return {unit, kShownDecibels / decibels};
  if (scale == "ln") return {unit, kShownDecibels / decibels * std::log(10.0)};
  if (!scale.empty()) return {unit};
  for (float& v : values) v = static_cast<float>(decibels * std::log10(std::max<double>(v, 1e-30)));
  return {"dB", kShownDecibels};
}

Canvas draw(const Spectrogram& s) { return draw(std::vector<Spectrogram>{s}); }

Canvas draw(const std::vector<Spectrogram>& all) {
  std::vector<Drawing> drawings;
  drawings.reserve(all.size());
  int left = 0;
  for (const Spectrogram& s : all) {
    check(s);
    std::size_t longest = s.frames;
    for (const Spectrogram& other : all)
      if (has_axis_of(other, s)) longest = std::max(longest, other.frames);
    left = std::max(left, drawings.emplace_back(s, longest).left());
  }
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Range shared;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (k == i || (!all[i].unit.empty() && all[k].unit == all[i].unit))
        shared = hull(shared, drawings[k].range());
    ranges.push_back(shown_of(shared, all[i].shown));
  }
  for (std::size_t i = 0; i < all.size(); ++i) drawings[i].set_range(ranges[i]);
  std::vector<Canvas> pictures;
  pictures.reserve(all.size());
  for (Drawing& d : drawings) {
    d.set_left(left);
    pictures.push_back(d.draw());
  }
  return one_below_the_other(pictures, kPaper);
}

}  // namespace melflow
