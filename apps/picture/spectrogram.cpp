#include "apps/picture/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "apps/picture/pixels.h"
#include "apps/report/format.h"
#include "apps/report/svg.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr double kShownDecibels = 80;
constexpr int kMostColumns = 1600;  // with more frames, several share a column
constexpr int kWantedWidth = 900, kWantedHeight = 400, kLeastWidth = 480;
constexpr std::size_t kMostBands = 8192;
constexpr int kLetter = 8;  // maximum width of a digit or small letter
constexpr int kGap = 8, kTick = 6, kBarWidth = 18, kLine = 18;
constexpr int kTop = 2 * kGap + 2 * kLine, kBottom = kTick + kGap + 2 * kLine;
constexpr int kHalf = 5;  // from the middle of a line of text down to its base line
constexpr const char* kInk = "#282828";

int text_width(const std::string& text) { return kLetter * static_cast<int>(text.size()); }

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

  [[nodiscard]] int width() const { return left_ + std::max(width_ + right_, kLeastWidth); }
  [[nodiscard]] int height() const { return kTop + height_ + kBottom; }
  /// Returns what is drawn, `top` pixels below the upper edge.
  std::string draw(int top) {
    top_ = top + kTop;
    title();
    cells();
    band_axis();
    time_axis();
    scale_bar();
    return std::move(body_);
  }

 private:
  void line(double x, double y, int dx, int dy) {
    body_ += fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}\" stroke=\"{}\"/>\n", x, y, dx, dy, kInk);
  }
  void text(double x, double y, const char* anchor, const std::string& text) {
    body_ += svg_text(x, y, anchor, text);
  }
  // Draws pixels in a frame; each becomes a rectangle with sharp edges.
  void image(int x, int width, int columns, int rows, const std::vector<std::uint8_t>& levels) {
    const std::string place =
        fmt::format(R"(x="{}" y="{}" width="{}" height="{}")", x, top_, width, height_);
    body_ += fmt::format(
        R"(<image {} preserveAspectRatio="none" image-rendering="optimizeSpeed" style="image-rendering:pixelated" xlink:href="{}"/>)",
        place, png_url(columns, rows, levels));
    body_ += fmt::format("\n<rect {} fill=\"none\" stroke=\"{}\"/>\n", place, kInk);
  }

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

  // Shows the end of a name that is too long; a viewer shows all of it under the mouse.
  void title() {
    const std::string all = one_line(s_.title);
    std::size_t begin = all.size();
    // In many writings a character is twice as wide as a Latin one.
    for (int room = width() - 2 * kGap - kLetter; begin > 0; --begin) {
      const auto c = static_cast<unsigned char>(all[begin - 1]);
      if (c >= 0x80 && c < 0xC0) continue;  // not the first byte of a character
      room -= c < 0x80 ? kLetter : 2 * kLetter;
      if (room < 0) break;
    }
    while (begin < all.size() && (static_cast<unsigned char>(all[begin]) & 0xC0U) == 0x80) ++begin;
    body_ += "<g><title>" + html_text(all) + "</title>\n";
    text(kGap, top_ - kTop + kGap + kLine - kHalf, "start",
         (begin > 0 ? "…" : "") + all.substr(begin));
    body_ += "</g>\n";
  }

  void cells() {
    const auto columns = static_cast<std::size_t>(columns_);
    std::vector<std::uint8_t> levels(levels_.size());
    for (std::size_t x = 0; x < columns; ++x)
      for (std::size_t b = 0; b < s_.bands; ++b)
        levels[(s_.bands - 1 - b) * columns + x] =
            level_of((levels_[x * s_.bands + b] - range_.low) / (range_.high - range_.low));
    image(left_, width_, columns_, bands_, levels);
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

  void band_axis() {
    text(kGap, top_ - kGap, "start", band_title());
    for (int b = 0; b < bands_; b += band_step()) {
      const double y = top_ + (bands_ - 1 - b) * cell_height_ + cell_height_ / 2.0;
      line(left_ - kTick, y, kTick, 0);
      text(left_ - kTick - kGap / 2, y + kHalf, "end", band_text(b));
    }
  }

  void time_axis() {
    const bool is_time = s_.frame_seconds > 0;
    const double unit = is_time ? s_.frame_seconds : 1;
    const double first = s_.first_frame * unit;
    const double last = first + static_cast<double>(s_.frames) * unit;
    const double pixels = cell_width_ / (static_cast<double>(joined_) * unit);
    std::vector<double> at = ticks(first, last, std::max(2, width_ / 100));
    // Rows are counted in whole numbers.
    if (!is_time) std::erase_if(at, [](double v) { return v != std::floor(v); });
    const double step = at.size() > 1 ? at[1] - at[0] : 1;
    const int y = top_ + height_;
    double end = 0;  // right edge of the previous label
    for (const double t : at) {
      const double x = left_ + (t - first) * pixels;
      const std::string label = tick_text(t, step);
      line(x, y, 0, kTick);
      const double half = text_width(label) / 2.0;
      if (end > 0 && x - half < end + kGap) continue;  // no room for this label
      text(x, y + kTick + kLine - kHalf, "middle", label);
      end = x + half;
    }
    const std::string name = is_time ? "time [s]" : s_.axis;
    text(std::max<double>(kGap + text_width(name) / 2.0, left_ + width_ / 2.0),
         y + kTick + 2 * kLine - kHalf, "middle", name);
  }

  [[nodiscard]] std::vector<double> level_ticks() const {
    return ticks(range_.low, range_.high, std::max(2, height_ / 50));
  }
  [[nodiscard]] std::string level_text(double level) const {
    const std::vector<double> all = level_ticks();
    return tick_text(level, all.size() > 1 ? all[1] - all[0] : 1);
  }

  void scale_bar() {
    const int x = left_ + width_ + 3 * kGap;
    std::vector<std::uint8_t> levels(kLevels);
    std::iota(levels.rbegin(), levels.rend(), std::uint8_t{0});
    image(x, kBarWidth, 1, kLevels, levels);
    text(std::max(x, 5 * kGap + text_width(band_title())), top_ - kGap, "start", s_.unit);
    double before = top_ + height_ + kLine;  // position of the previous label
    for (const double level : level_ticks()) {
      const double y = top_ + (range_.high - level) / (range_.high - range_.low) * height_;
      line(x + kBarWidth, y, kTick, 0);
      if (before - y < kLine) continue;
      before = y;
      text(x + kBarWidth + kTick + kGap / 2, y + kHalf, "start", level_text(level));
    }
  }

  const Spectrogram& s_;
  const std::size_t joined_;  // frames in a column
  const int columns_, bands_, cell_width_, cell_height_, width_, height_;
  int left_ = 0, right_ = 0;  // margins [pixels]
  int top_ = 0;               // of the cells [pixels]
  std::string body_;
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

Drawn draw(const std::vector<Spectrogram>& all) {
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
  Drawn out;
  std::string body;
  for (Drawing& d : drawings) {
    d.set_left(left);
    body += d.draw(out.height);
    out.width = std::max(out.width, d.width());
    out.height += d.height();
  }
  out.svg = svg_document(out.width, out.height, body);
  return out;
}

}  // namespace melflow
