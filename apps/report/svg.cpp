#include "apps/report/svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr const char* kLineColours[] = {"#1f77b4", "#d9730d", "#2a9d5c", "#b5355e",
                                        "#6b5bb5", "#7f6a3f", "#0f8b8d", "#555555"};

// Rounds up to 1, 2 or 5 times a power of ten.
double nice(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0})
    if (value <= step * power * (1 + 1e-9)) return step * power;
  return 10 * power;
}

std::string number(double value) {
  if (value >= 1e9) return fmt::format("{:.3g}G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// Space to the right of the time axis for half of its last label.
constexpr double kRight = 32;

// Draws four to eight labels at round times, each centred at x().
template <class X>
std::string time_axis(double end, const X& x, double y) {
  std::string out;
  const double step = nice(end / 8);
  for (int i = 0; i * step <= end * (1 + 1e-9); ++i)
    out += fmt::format(R"(<text x="{:.1f}" y="{}" class="x">{} s</text>)", x(i * step), y,
                       number(i * step));
  return out;
}

// Returns each node's column: the length of the longest path to it.
std::vector<std::size_t> columns_of(const FlowChart& chart) {
  std::vector<std::size_t> column(chart.nodes.size(), 0);
  for (std::size_t to = 0; to < chart.nodes.size(); ++to)
    for (const FlowChart::Edge& e : chart.edges)
      if (e.to == to) column[to] = std::max(column[to], column[e.from] + 1);
  return column;
}

// The width of the UTF-8 character of `bytes` bytes at `at`, in Latin letters: 2 for those that are
// wide (CJK, emoji), by blocks of Unicode that have such (UAX #11, East Asian Width).
std::size_t width_at(std::string_view text, std::size_t at, std::size_t bytes) {
  static constexpr std::pair<char32_t, char32_t> kWide[] = {
      {0x1100, 0x115F},   {0x231A, 0x23FF},   {0x25FD, 0x27BF},   {0x2B1B, 0x2B55},
      {0x2E80, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
      {0xFE10, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18DFF},
      {0x1AFF0, 0x1B2FF}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFD},
  };
  auto code = static_cast<char32_t>(static_cast<unsigned char>(text[at]) & (0xFF >> (bytes + 1)));
  for (std::size_t i = 1; i < bytes; ++i)
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  return std::any_of(std::begin(kWide), std::end(kWide),
                     [code](const auto& w) { return code >= w.first && code <= w.second; })
             ? 2
             : 1;
}

// Returns the text where it is at most `most` wide, else its beginning and "…". `wide` gets its
// width, or `most`.
std::string fitted(const std::string& given, std::size_t most, std::size_t& wide) {
  const std::string text = printable(given);
  std::size_t end = 0;  // of what fits beside the "…"
  wide = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = std::max<std::size_t>(utf8_length(text, at), 1);
    wide += width_at(text, at, bytes);
    if (wide > most) {
      wide = most;
      return text.substr(0, end) + "\u2026";
    }
    at += bytes;
    if (wide < most) end = at;
  }
  return text;
}

// Where the boxes of a flow chart are, all of one size, which fits most texts [px].
struct FlowLayout {
  static constexpr double kGapX = 56, kGapY = 22, kEdge = 8, kPadding = 6, kWidest = 220;

  explicit FlowLayout(const FlowChart& chart) : column(columns_of(chart)), row(chart.nodes.size()) {
    for (std::size_t i = 0; i < chart.nodes.size(); ++i) {
      if (used.size() <= column[i]) used.resize(column[i] + 1, 0);
      row[i] = used[column[i]]++;
      const std::vector<std::string>& lines = chart.nodes[i].lines;
      high = std::max(high, 10 + 16 * static_cast<double>(lines.size()));
      for (std::size_t l = 0; l < lines.size(); ++l) {
        std::size_t letters = 0;
        fitted(lines[l], letters_in(kWidest, l), letters);
        wide = std::max(wide, 2 * kPadding + advance(l) * static_cast<double>(letters));
      }
    }
    if (!used.empty()) rows = static_cast<double>(*std::max_element(used.begin(), used.end()));
  }

  // The mean width of a character in line number `l`; wide ones take more.
  static double advance(std::size_t l) { return l == 0 ? 7.6 : 6.2; }
  static std::size_t letters_in(double wide, std::size_t l) {
    return static_cast<std::size_t>((wide - 2 * kPadding) / advance(l) + 1e-9);
  }
  [[nodiscard]] std::string fitting(const std::string& text, std::size_t l) const {
    std::size_t letters = 0;
    return fitted(text, letters_in(wide, l), letters);
  }
  [[nodiscard]] double x(std::size_t i) const {
    return kEdge + static_cast<double>(column[i]) * (wide + kGapX);
  }
  // Centres each column's nodes vertically.
  [[nodiscard]] double y(std::size_t i) const {
    return kEdge +
           (static_cast<double>(row[i]) + (rows - static_cast<double>(used[column[i]])) / 2) *
               (high + kGapY);
  }
  [[nodiscard]] double width() const {
    return 2 * kEdge + static_cast<double>(used.size()) * (wide + kGapX) - kGapX;
  }
  [[nodiscard]] double height() const { return 2 * kEdge + rows * (high + kGapY) - kGapY; }

  std::vector<std::size_t> column, row, used;  // used: boxes in each column
  double rows = 0, wide = 138, high = 74;
};

// Draws names in their colours, ending at `right`.
std::string key_of(const std::vector<std::string>& names, double right) {
  std::string out;
  for (std::size_t i = names.size(); i-- > 0;) {
    out += fmt::format(R"(<text x="{:.0f}" y="14" style="fill:{}" class="n">{}</text>)", right,
                       kLineColours[i % std::size(kLineColours)], html_text(names[i]));
    right -= 7.5 * static_cast<double>(names[i].size()) + 14;
  }
  return out;
}

}  // namespace

std::string html_text(std::string_view text) {
  constexpr std::string_view kSpecial = "<>&\"'";
  constexpr const char* kNames[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
  std::string out;
  for (const char c : printable(text)) {
    const std::size_t special = kSpecial.find(c);
    special == kSpecial.npos ? out += c : out += kNames[special];
  }
  return out;
}

std::string shade(double share, int red, int green, int blue) {
  const double s = std::clamp(share, 0.0, 1.0);
  const auto mixed = [s](int colour) { return static_cast<int>(255 - s * (255 - colour)); };
  return fmt::format("rgb({},{},{})", mixed(red), mixed(green), mixed(blue));
}

std::string svg(const LineChart& chart, const std::vector<double>& seconds, double end) {
  constexpr double kLeft = 64, kTop = 26, kWidth = 860, kHeight = 110;
  double most = chart.limit;
  for (const LineChart::Line& line : chart.lines)
    for (const double v : line.values)
      if (std::isfinite(v)) most = std::max(most, v);
  const double top = nice(most);
  const auto x = [&](double t) { return kLeft + kWidth * (end > 0 ? std::min(t / end, 1.0) : 0); };
  const auto y = [&](double v) { return kTop + kHeight * (1 - v / top); };
  std::string out =
      fmt::format(R"(<svg viewBox="0 0 {} {}" role="img"><text x="{}" y="14" class="t">{}</text>)",
                  kLeft + kWidth + kRight, kTop + kHeight + 22, kLeft, html_text(chart.title));
  for (int i = 0; i <= 2; ++i)
    out += fmt::format(
        R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" class="g"/><text x="{3}" y="{4:.1f}" class="y">{5}{6}</text>)",
        kLeft, kLeft + kWidth, y(top * i / 2), kLeft - 6, y(top * i / 2) + 4, number(top * i / 2),
        i == 2 ? html_text(" " + chart.unit) : "");
  out += time_axis(end, x, kTop + kHeight + 16);
  if (chart.limit > 0)
    out += fmt::format(R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" class="m"/>)", kLeft,
                       kLeft + kWidth, y(chart.limit));
  std::vector<std::string> names;
  for (std::size_t l = chart.lines.size(); l-- > 0;) {
    const LineChart::Line& line = chart.lines[l];
    const char* colour = kLineColours[l % std::size(kLineColours)];
    std::string path;
    bool is_joined = false;
    for (std::size_t i = 0; i < line.values.size() && i < seconds.size(); ++i) {
      if (std::isfinite(line.values[i]))
        path +=
            fmt::format("{}{:.1f},{:.1f}", is_joined ? "L" : "M", x(seconds[i]), y(line.values[i]));
      is_joined = std::isfinite(line.values[i]);
    }
    out += fmt::format(R"(<path d="{}" stroke="{}" class="l"/>)", path, colour);
    names.insert(names.begin(), line.name);
  }
  return out + (names.size() > 1 ? key_of(names, kLeft + kWidth) : "") + "</svg>\n";
}

std::string svg(const RowsChart& chart, double end) {
  constexpr double kLeft = 64, kTop = 26, kWidth = 860, kHigh = 22, kStep = 27;
  const double bottom = kTop + kStep * static_cast<double>(chart.rows.size());
  const auto x = [&](double t) {
    return kLeft + kWidth * (end > 0 ? std::clamp(t / end, 0.0, 1.0) : 0);
  };
  std::string out =
      fmt::format(R"(<svg viewBox="0 0 {} {}" role="img"><text x="{}" y="14" class="t">{}</text>)",
                  kLeft + kWidth + kRight, bottom + 18, kLeft, html_text(chart.title));
  for (std::size_t r = 0; r < chart.rows.size(); ++r) {
    const RowsChart::Row& row = chart.rows[r];
    const double top = kTop + kStep * static_cast<double>(r);
    out += fmt::format(
        R"(<rect x="{}" y="{:.1f}" width="{}" height="{}" fill="#f4f4f4"/><text x="{}" y="{:.1f}" class="y">{}</text>)",
        kLeft, top, kWidth, kHigh, kLeft - 6, top + 15, html_text(row.name));
    std::vector<double> below;  // upper edges of the bands drawn so far
    for (std::size_t b = 0; b < row.shares.size(); ++b) {
      std::string there;
      below.resize(std::max(below.size(), row.shares[b].size()), 0.0);
      for (std::size_t i = 0; i < row.shares[b].size(); ++i) {
        const double from = below[i], to = std::min(1.0, from + row.shares[b][i]);
        below[i] = to;
        if (to - from < 0.005) continue;
        const double at = chart.from + static_cast<double>(i) * chart.step;
        there += fmt::format("M{:.1f},{:.1f}H{:.1f}V{:.1f}H{:.1f}Z", x(at), top + kHigh * (1 - to),
                             x(at + chart.step), top + kHigh * (1 - from), x(at));
      }
      if (!there.empty())
        out += fmt::format(R"(<path d="{}" fill="{}"/>)", there,
                           kLineColours[b % std::size(kLineColours)]);
    }
  }
  out += time_axis(end, x, bottom + 12);
  return out + key_of(chart.names, kLeft + kWidth) + "</svg>\n";
}

std::string svg(const FlowChart& chart) {
  const FlowLayout at(chart);
  std::string out = fmt::format(
      R"(<svg viewBox="0 0 {0:.0f} {1:.0f}" style="min-width:{2:.0f}px;max-width:{0:.0f}px">)",
      at.width(), at.height(), std::min(at.width(), 1100.0));
  for (const FlowChart::Edge& e : chart.edges) {
    const double x1 = at.x(e.from) + at.wide, y1 = at.y(e.from) + at.high / 2;
    const double x2 = at.x(e.to), y2 = at.y(e.to) + at.high / 2, bend = (x2 - x1) / 2;
    out += fmt::format(
        R"x(<path d="M{:.1f},{:.1f}C{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f}" class="e" stroke="rgb({},{},{})" stroke-width="{:.1f}"><title>{}</title></path><text x="{:.1f}" y="{:.1f}" class="x">{}</text>)x",
        x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2, static_cast<int>(170 + 40 * e.heat),
        static_cast<int>(170 - 130 * e.heat), static_cast<int>(170 - 130 * e.heat), 2 + 4 * e.heat,
        html_text(e.tip), (x1 + x2) / 2, (y1 + y2) / 2 - 6, html_text(e.label));
  }
  for (std::size_t i = 0; i < chart.nodes.size(); ++i) {
    const FlowChart::Node& n = chart.nodes[i];
    out += fmt::format(
        R"(<g><title>{}</title><rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" rx="6" fill="{}" class="b"/>)",
        html_text(n.tip), at.x(i), at.y(i), at.wide, at.high, shade(n.heat, 240, 130, 30));
    for (std::size_t l = 0; l < n.lines.size(); ++l)
      out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>)",
                         at.x(i) + at.wide / 2, at.y(i) + 19 + 16 * static_cast<double>(l),
                         l == 0 ? "h" : "c", html_text(at.fitting(n.lines[l], l)));
    out += "</g>";
  }
  return out + "</svg>\n";
}

double height_of(const FlowChart& chart) { return FlowLayout(chart).height(); }

std::string svg(const std::vector<PartsBar>& bars, const std::vector<std::string>& colours) {
  constexpr double kLeft = 150, kWidth = 760, kHigh = 18, kStep = 24;
  std::string out = fmt::format(R"(<svg viewBox="0 0 {} {}">)", kLeft + kWidth + 10,
                                kStep * static_cast<double>(bars.size()) + 4);
  for (std::size_t b = 0; b < bars.size(); ++b) {
    const double y = 2 + kStep * static_cast<double>(b);
    out += fmt::format(R"(<text x="{}" y="{:.1f}" class="y">{}</text>)", kLeft - 8, y + 13,
                       html_text(bars[b].name));
    double x = kLeft;
    for (std::size_t p = 0; p < bars[b].parts.size(); ++p) {
      const double wide = kWidth * bars[b].parts[p];
      if (wide < 0.05) continue;
      out += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" fill="{}"/>)", x,
                         y, wide, kHigh, colours[p]);
      if (wide > 34)
        out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="c">{:.0f} %</text>)", x + wide / 2,
                           y + 13, 100 * bars[b].parts[p]);
      x += wide;
    }
  }
  return out + "</svg>\n";
}

}  // namespace melflow
