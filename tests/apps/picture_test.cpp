// Pictures: colours, ticks, and positions in a spectrogram.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/picture/canvas.h"
#include "apps/picture/spectrogram.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/problem.h"
#include "tests/apps/process.h"

namespace melflow::picture_test {
namespace {

double luminance(Rgb c) {
  const auto linear = [](std::uint8_t v) {
    const double s = v / 255.0;
    return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

// Lightness as CIELAB defines it, 0 to 100.
double lightness(double level) {
  const double y = luminance(colour_of(level));
  return y > 0.008856 ? 116 * std::cbrt(y) - 16 : 903.3 * y;
}

Spectrogram ramp(std::size_t frames, std::size_t bands) {
  Spectrogram s;
  s.frames = frames;
  s.bands = bands;
  s.unit = "dB";
  s.frame_seconds = 0.01;
  s.title = "a/b.wav";
  for (std::size_t b = 0; b < bands; ++b) s.band_hz.push_back(100.0 * static_cast<double>(b + 1));
  for (std::size_t f = 0; f < frames; ++f)
    for (std::size_t b = 0; b < bands; ++b) s.values.push_back(static_cast<float>(b) - 60);
  return s;
}

}  // namespace

TEST_CASE("picture: colours rise evenly from dark to bright") {
  CHECK(lightness(0) < 8);
  CHECK(lightness(1) > 92);
  for (double level = 0; level < 0.95; level += 0.05) {
    INFO(level);
    const double step = lightness(level + 0.05) - lightness(level);
    CHECK(step > 1.5);
    CHECK(step < 7);
  }
  CHECK(colour_of(-1) == colour_of(0));
  CHECK(colour_of(2) == colour_of(1));
  CHECK(colour_of(std::nan("")) == colour_of(0));
}

TEST_CASE("picture: ticks are round numbers inside the range") {
  const auto close = [](const std::vector<double>& got, const std::vector<double>& expected) {
    if (got.size() != expected.size()) return false;
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::abs(got[i] - expected[i]) > 1e-9) return false;
    return true;
  };
  CHECK(close(ticks(0, 10, 5), {0, 2, 4, 6, 8, 10}));
  CHECK(close(ticks(-73, 7, 8), {-70, -60, -50, -40, -30, -20, -10, 0}));
  CHECK(close(ticks(0.2, 0.6, 4), {0.2, 0.3, 0.4, 0.5, 0.6}));
  CHECK(close(ticks(3, 3, 4), {3}));
}

TEST_CASE("picture: what is no logarithm becomes decibels, logarithms stay what they are") {
  struct Row {
    const char* unit;
    float value;
    const char* drawn_unit;
    double drawn, shown;
  };
  // 80 dB are a factor of 10^8 in power and of 10^4 in amplitude; ln 10 is 2.302585.
  const Row rows[] = {{"dB", -12, "dB", -12, 80},
                      {"power", 100, "dB", 20, 80},
                      {"power", 0, "dB", -300, 80},
                      {"amplitude", 100, "dB", 40, 80},
                      {"amplitude^4", 100, "dB", 10, 80},
                      {"ln power", 1, "ln power", 1, 18.42068},
                      {"ln amplitude", -3, "ln amplitude", -3, 9.21034},
                      {"log10 power", -2, "log10 power", -2, 8},
                      {"log10 amplitude", 1, "log10 amplitude", 1, 4},
                      {"phon", 3, "phon", 3, 0}};
  for (const Row& row : rows) {
    INFO(row.unit);
    std::vector<float> values{row.value};
    const Levels levels = to_levels(values, row.unit);
    CHECK(levels.unit == row.drawn_unit);
    CHECK(levels.shown == doctest::Approx(row.shown));
    CHECK(values[0] == doctest::Approx(row.drawn));
  }
}

TEST_CASE("picture: levels far below the highest one are as dark as they get") {
  Spectrogram s = ramp(90, 40);  // levels from -60 to -21
  s.unit = "ln power";
  s.shown = 10;
  const Canvas c = draw(s);
  int dark = 0;
  for (int y = 0; y < c.height(); ++y) dark += c.at(c.width() / 2, y) == colour_of(0) ? 1 : 0;
  CHECK(dark == 30 * 10);  // bands 0 to 29, 10 pixels each
}

TEST_CASE("picture: one below the other, plots begin in the same column") {
  Spectrogram wide = ramp(90, 40), narrow = ramp(90, 40);
  for (double& hz : wide.band_hz) hz *= 1000;
  const Canvas both = draw({narrow, wide});
  const int height = draw(narrow).height();
  REQUIRE(both.height() > 3 * height / 2);
  // Returns the first dark or coloured column in a row of pixels between two ticks.
  const auto edge = [&](int y) {
    for (int x = 0; x < both.width(); ++x)
      if (both.at(x, y) == both.at(x, y + 1) && both.at(x, y) == both.at(x, y + 9) &&
          !(both.at(x, y) == Rgb{255, 255, 255}))
        return x;
    return -1;
  };
  const int at = height / 2;
  CHECK(draw(wide).width() > draw(narrow).width());
  CHECK(edge(at) > 0);
  CHECK(edge(at) == edge(at + both.height() - height));
}

TEST_CASE("picture: several share their colours where the unit is one, and their time scale") {
  const auto level = [](std::size_t frames, float value, const char* unit) {
    Spectrogram s = ramp(frames, 40);
    std::fill(s.values.begin(), s.values.end(), value);
    s.values.front() = value - 10;  // so that the range is not empty
    s.unit = unit;
    return s;
  };
  const auto count_of = [](const Canvas& c, double colour) {
    int out = 0;
    for (int y = 0; y < c.height(); ++y)
      for (int x = 0; x < c.width() / 2; ++x) out += c.at(x, y) == colour_of(colour) ? 1 : 0;
    return out;
  };
  // -10 and -40 dB in a range from -50 to -10: the quiet one is a quarter of the way up.
  const Canvas shared = draw({level(90, -10, "dB"), level(90, -40, "dB")});
  CHECK(count_of(shared, 0.25) > 40 * 90);
  const Canvas apart = draw({level(90, -10, "dB"), level(90, -40, "ln power")});
  CHECK(count_of(apart, 0.25) == 0);
  // Half as long is half as wide, also with averaged frames: alone, the short one would be wide.
  for (const std::size_t frames : {std::size_t{60}, std::size_t{2000}}) {
    const Canvas both = draw({ramp(2 * frames, 40), ramp(frames, 40)});
    const auto width_at = [&both](int y) {  // at the highest band
      int longest = 0;
      for (int x = 0, run = 0; x < both.width(); ++x) {
        run = both.at(x, y) == colour_of(1) ? run + 1 : 0;
        longest = std::max(longest, run);
      }
      return longest;
    };
    std::vector<int> widths;
    for (int y = 0; y < both.height(); ++y)
      if (const int width = width_at(y); width > 100 && (widths.empty() || width != widths.back()))
        widths.push_back(width);
    REQUIRE(widths.size() == 2);
    CHECK(widths[0] == 2 * widths[1]);
  }
}

TEST_CASE("picture: low bands are at the bottom, and cells are whole pixels") {
  const Canvas c = draw(ramp(90, 40));
  // In the middle column of the plot, the lowest pixel is dark, the highest bright.
  const int x = c.width() / 2;
  std::vector<Rgb> column;
  for (int y = 0; y < c.height(); ++y) column.push_back(c.at(x, y));
  const auto place = [&](Rgb colour) {
    int first = -1, count = 0;
    for (std::size_t y = 0; y < column.size(); ++y)
      if (column[y] == colour) {
        if (first < 0) first = static_cast<int>(y);
        ++count;
      }
    return std::pair(first, count);
  };
  const auto [bright_at, bright_height] = place(colour_of(1));
  const auto [dark_at, dark_height] = place(colour_of(0));
  CHECK(bright_at >= 0);
  CHECK(bright_height == 10);
  CHECK(dark_height == 10);
  CHECK(dark_at - bright_at == 39 * 10);
}

TEST_CASE("picture: any number of frames and bands can be drawn") {
  for (const std::size_t frames : {1U, 2U, 1600U, 1601U, 100'000U})
    for (const std::size_t bands : {1U, 32U, 1000U}) {
      if (frames * bands > 10'000'000) continue;
      INFO(frames << " x " << bands);
      const Canvas c = draw(ramp(frames, bands));
      CHECK(c.width() >= 480);
      CHECK(c.width() < 2000);
      CHECK(c.height() < 1200);
    }
  Spectrogram flat = ramp(10, 3);
  std::fill(flat.values.begin(), flat.values.end(), -100.0F);
  CHECK(draw(flat).width() > 0);
  CHECK_THROWS_AS(draw(ramp(0, 3)), RunError);
}

TEST_CASE("picture: every printable character has a shape of its own") {
  std::vector<std::vector<bool>> seen;
  for (char c = ' '; c <= '~'; ++c) {
    std::vector<bool> shape;
    for (int y = 0; y < kGlyphHeight; ++y)
      for (int x = 0; x < kGlyphWidth; ++x) shape.push_back(font_pixel(c, x, y));
    INFO(c);
    CHECK(std::count(seen.begin(), seen.end(), shape) == 0);
    seen.push_back(shape);
  }
  CHECK(font_pixel('\xC3', 0, 0));
  CHECK_FALSE(font_pixel('A', 5, 0));
}

TEST_CASE("picture: a PNG is written, and where it cannot be there is an error") {
  const test::TempFolder folder;
  Canvas c(20, 10, {1, 2, 3});
  c.text(-3, -3, "clipped", 2, {255, 0, 0});
  WrittenFile(folder / "a.png").write(c.png());
  CHECK(test::read_text(folder / "a.png").starts_with("\x89PNG\r\n"));
  CHECK_THROWS_WITH_AS(
      WrittenFile(folder / "no/a.png"),
      fmt::format("{}: cannot be written: there is no folder {}; make it, or write elsewhere",
                  folder / "no/a.png", folder / "no")
          .c_str(),
      RunError);
}

}  // namespace melflow::picture_test
