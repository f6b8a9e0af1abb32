// Pictures: colours, ticks, and positions in a spectrogram.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/picture/pixels.h"
#include "apps/picture/spectrogram.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
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

/// A picture in a drawing; of every spectrogram first the cells, then the scale of levels.
struct Image {
  int x = 0, y = 0, width = 0, height = 0;  // [pixels] of the drawing
  int columns = 0, rows = 0;
  std::vector<Rgb> pixels;  // [rows, columns]

  [[nodiscard]] Rgb at(int column, int row) const {
    return pixels[static_cast<std::size_t>(row * columns + column)];
  }
  [[nodiscard]] long count(double share) const {
    return std::count(pixels.begin(), pixels.end(), colour_of(share));
  }
};

std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6U | static_cast<std::uint32_t>(kDigits.find(c));
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 255U);
  }
  return out;
}

std::vector<Image> images_of(const std::string& svg) {
  std::vector<Image> out;
  for (std::size_t at = svg.find("<image "); at != svg.npos; at = svg.find("<image ", at + 1)) {
    Image one;
    REQUIRE(std::sscanf(svg.c_str() + at, R"(<image x="%d" y="%d" width="%d" height="%d")", &one.x,
                        &one.y, &one.width, &one.height) == 4);
    const std::size_t begin = svg.find("base64,", at) + 7;
    const std::string png =
        from_base64(std::string_view(svg).substr(begin, svg.find('"', begin) - begin));
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_memory(&image, png.data(), png.size()) != 0);
    image.format = PNG_FORMAT_RGB;
    one.columns = static_cast<int>(image.width);
    one.rows = static_cast<int>(image.height);
    one.pixels.resize(static_cast<std::size_t>(image.width) * image.height);
    REQUIRE(png_image_finish_read(&image, nullptr, one.pixels.data(), 0, nullptr) != 0);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Image> images_of(const std::vector<Spectrogram>& all) {
  return images_of(draw(all).svg);
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
  const std::vector<Image> images = images_of({s});
  CHECK(images.at(0).count(0) == 30 * 90);  // bands 0 to 29
}

TEST_CASE("picture: one below the other, plots begin in the same column") {
  Spectrogram wide = ramp(90, 40), narrow = ramp(90, 40);
  for (double& hz : wide.band_hz) hz *= 1000;
  const std::vector<Image> both = images_of({narrow, wide});
  REQUIRE(both.size() == 4);
  CHECK(images_of({wide}).at(0).x > images_of({narrow}).at(0).x);
  CHECK(both[0].x == both[2].x);
  CHECK(both[2].y - both[0].y == draw({narrow}).height);
}

TEST_CASE("picture: several share their colours where the unit is one, and their time scale") {
  const auto level = [](std::size_t frames, float value, const char* unit) {
    Spectrogram s = ramp(frames, 40);
    std::fill(s.values.begin(), s.values.end(), value);
    s.values.front() = value - 10;  // so that the range is not empty
    s.unit = unit;
    return s;
  };
  // -10 and -40 dB in a range from -50 to -10: the quiet one is a quarter of the way up.
  const std::vector<Image> shared = images_of({level(90, -10, "dB"), level(90, -40, "dB")});
  CHECK(shared.at(2).count(0.25) == 40 * 90 - 1);
  const std::vector<Image> apart = images_of({level(90, -10, "dB"), level(90, -40, "ln power")});
  CHECK(apart.at(2).count(0.25) == 0);
  // Half as long is half as wide, also with averaged frames: alone, the short one would be wide.
  for (const std::size_t frames : {std::size_t{60}, std::size_t{2000}}) {
    const std::vector<Image> both = images_of({ramp(2 * frames, 40), ramp(frames, 40)});
    CHECK(both.at(0).width == 2 * both.at(2).width);
    CHECK(both[0].x == both[2].x);
  }
}

TEST_CASE("picture: low bands are at the bottom, cells are whole pixels, beside the scale") {
  const std::vector<Image> images = images_of({ramp(90, 40)});
  REQUIRE(images.size() == 2);
  const auto& [cells, scale] = std::pair(images[0], images[1]);
  CHECK(cells.columns == 90);
  CHECK(cells.rows == 40);
  CHECK(cells.width == 90 * 10);
  CHECK(cells.height == 40 * 10);
  for (int x = 0; x < cells.columns; ++x)
    for (int y = 0; y < cells.rows; ++y) REQUIRE(cells.at(x, y) == colour_of((39 - y) / 39.0));
  CHECK(scale.y == cells.y);
  CHECK(scale.height == cells.height);
  CHECK(scale.x > cells.x + cells.width);
  CHECK(scale.at(0, 0) == colour_of(1));
  CHECK(scale.at(0, scale.rows - 1) == colour_of(0));
}

TEST_CASE("picture: any number of frames and bands can be drawn") {
  for (const std::size_t frames : {1U, 2U, 1600U, 1601U, 100'000U})
    for (const std::size_t bands : {1U, 32U, 1000U}) {
      if (frames * bands > 10'000'000) continue;
      INFO(frames << " x " << bands);
      const Drawn d = draw({ramp(frames, bands)});
      CHECK(d.width >= 480);
      CHECK(d.width < 2000);
      CHECK(d.height < 1200);
    }
  Spectrogram flat = ramp(10, 3);
  std::fill(flat.values.begin(), flat.values.end(), -100.0F);
  CHECK(draw({flat}).width > 0);
  CHECK_THROWS_AS((void)draw({ramp(0, 3)}), RunError);
}

TEST_CASE("picture: names of any language are text; of a long one the end is shown") {
  const auto titled = [](const std::string& title) {
    Spectrogram s = ramp(90, 40);
    s.title = title;
    return draw({s}).svg;
  };
  const auto shows = [](const std::string& svg, const std::string& name) {
    return test::has(svg, ">" + name + "</text>") && test::has(svg, "<title>" + name + "</title>");
  };
  for (const std::string name : {"ja/こんにちは世界.wav", "ar/مرحبا بالعالم.wav", "a  b/🎙.wav"})
    CHECK(shows(titled(name), name));
  CHECK(shows(titled("<b> & \"c\""), "&lt;b&gt; &amp; &quot;c&quot;"));
  CHECK(shows(titled("a\nb\xFF\x1B"), "a\\nb\\xff\\u001b"));
  for (const std::string piece : {"long/", "長い/", "é"}) {
    std::string name;
    for (int i = 0; i < 200; ++i) name += piece;
    name += "end.wav";
    const std::string svg = titled(name);
    CHECK(test::has(svg, "<title>" + name + "</title>"));
    const std::size_t begin = svg.find(">…"), end = svg.find("</text>", begin);
    REQUIRE(begin != svg.npos);
    const std::string shown = svg.substr(begin + 4, end - begin - 4);
    CHECK(shown.size() > 80);
    CHECK(shown.size() < 250);
    CHECK(name.ends_with(shown));
    CHECK(printable(shown) == shown);  // no half of a character
  }
}

TEST_CASE("picture: where a drawing cannot be written there is an error") {
  const test::TempFolder folder;
  CHECK_THROWS_WITH_AS(
      WrittenFile(folder / "no/a.svg", kAnyFile),
      fmt::format("{}: cannot be written: there is no folder {}; make it, or write elsewhere",
                  folder / "no/a.svg", folder / "no")
          .c_str(),
      RunError);
}

}  // namespace melflow::picture_test
