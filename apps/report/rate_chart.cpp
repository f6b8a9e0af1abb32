#include "apps/report/rate_chart.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "apps/report/svg.h"

namespace melflow {
namespace {

constexpr double kMargin = 16, kCellHigh = 44, kLeastCell = 96, kBarHigh = 30, kBarWide = 480;
constexpr double kLetter = 8;  // maximum width of a character

double width_of(const std::vector<std::string>& texts) {
  std::size_t most = 0;
  for (const std::string& t : texts) most = std::max(most, t.size());
  return kLetter * static_cast<double>(most);
}

std::string words(double x, double y, const char* anchor, bool is_bold, const std::string& text) {
  return svg_text(x, y, anchor, text, is_bold ? "font-weight=\"bold\"" : "");
}

// Between white and orange.
std::string shade(double share) {
  const auto mixed = [share](int colour) { return static_cast<int>(255 - share * (255 - colour)); };
  return fmt::format("rgb({},{},{})", mixed(240), mixed(130), mixed(30));
}

std::string tip(const RateChart::Cell& cell) {
  return fmt::format("<title>{} to {} files/s</title>", rate_text(cell.least),
                     rate_text(cell.greatest));
}

class Drawing {
 public:
  explicit Drawing(const RateChart& chart) : chart_(chart) {
    least_ = most_ = chart.cells.at(0).at(0).median;
    for (const auto& row : chart.cells)
      for (const RateChart::Cell& c : row) {
        least_ = std::min(least_, c.median);
        most_ = std::max(most_, c.median);
        farthest_ = std::max(farthest_, c.greatest);
      }
    left_ = kMargin + std::max(width_of(chart.rows), width_of({chart.down})) + 10;
  }

  std::string document() {
    body_ = words(kMargin, kMargin + 8, "start", true, chart_.title);
    chart_.across.empty() ? bars() : cells();
    width_ = std::max(width_, width_of({chart_.title}) + 2 * kMargin);
    return svg_document(width_, height_, body_ + mark_);
  }

 private:
  // Whether to mark this cell as the fastest; among equals, the first.
  bool is_fastest(const RateChart::Cell& cell) const {
    return cell.median == most_ && mark_.empty();
  }

  void mark(double x, double y, double wide, double high) {
    mark_ = fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="none" stroke="#222" stroke-width="2.5" class="fastest"/>)",
        x, y, wide, high);
  }

  void rect(double x, double y, double wide, double high, double heat,
            const RateChart::Cell& cell) {
    body_ +=
        fmt::format(
            R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}" stroke="white">{}</rect>)",
            x, y, wide, high, shade(heat), tip(cell)) +
        "\n";
  }

  // Draws cells coloured from the slowest, nearly white, to the fastest.
  void cells() {
    const double cell = std::max(kLeastCell, width_of(chart_.columns) + 12);
    const double top = kMargin + 64;
    const double wide = cell * static_cast<double>(chart_.columns.size());
    body_ += words(left_ + wide / 2, kMargin + 36, "middle", false, chart_.across);
    body_ += words(left_ - 10, top - 10, "end", false, chart_.down);
    for (std::size_t c = 0; c < chart_.columns.size(); ++c)
      body_ += words(left_ + cell * (static_cast<double>(c) + 0.5), top - 10, "middle", true,
                     chart_.columns[c]);
    for (std::size_t r = 0; r < chart_.rows.size(); ++r) {
      const double y = top + kCellHigh * static_cast<double>(r);
      body_ += words(left_ - 10, y + kCellHigh / 2 + 5, "end", true, chart_.rows[r]);
      for (std::size_t c = 0; c < chart_.columns.size(); ++c) {
        const RateChart::Cell& one = chart_.cells[r][c];
        const double x = left_ + cell * static_cast<double>(c);
        const double heat = most_ > least_ ? (one.median - least_) / (most_ - least_) : 1;
        const bool is_marked = is_fastest(one);
        rect(x, y, cell, kCellHigh, 0.08 + 0.8 * heat, one);
        body_ +=
            words(x + cell / 2, y + kCellHigh / 2 + 5, "middle", is_marked, rate_text(one.median));
        if (is_marked) mark(x, y, cell, kCellHigh);
      }
    }
    width_ = left_ + wide + kMargin;
    height_ = top + kCellHigh * static_cast<double>(chart_.rows.size()) + kMargin;
  }

  // Draws bars as long as the medians, with lines from the slowest to the fastest run.
  void bars() {
    const double top = kMargin + 44;
    const double scale = farthest_ > 0 ? kBarWide / farthest_ : 0;
    body_ += words(left_ - 10, top - 8, "end", false, chart_.down);
    for (std::size_t r = 0; r < chart_.rows.size(); ++r) {
      const RateChart::Cell& one = chart_.cells[r].at(0);
      const double y = top + (kBarHigh + 8) * static_cast<double>(r), middle = y + kBarHigh / 2;
      const bool is_marked = is_fastest(one);
      body_ += words(left_ - 10, middle + 5, "end", true, chart_.rows[r]);
      rect(left_, y, scale * one.median, kBarHigh, 0.6, one);
      body_ +=
          fmt::format(
              R"(<line x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}" stroke="#333" stroke-width="1.5"/>)",
              left_ + scale * one.least, left_ + scale * one.greatest, middle) +
          "\n";
      body_ += words(left_ + kBarWide + 10, middle + 5, "start", is_marked, rate_text(one.median));
      if (is_marked) mark(left_, y, scale * one.median, kBarHigh);
    }
    width_ = left_ + kBarWide + 10 + 100 + kMargin;
    height_ = top + (kBarHigh + 8) * static_cast<double>(chart_.rows.size()) + kMargin;
  }

  const RateChart& chart_;
  double least_ = 0, most_ = 0, farthest_ = 0, left_ = 0, width_ = 0, height_ = 0;
  std::string body_, mark_;
};

}  // namespace

std::string svg_document(const RateChart& chart) { return Drawing(chart).document(); }

std::string html_page(const RateChart& chart, const std::string& table) {
  std::string style =
      "body{font:14px/1.45 "
      "system-ui,sans-serif;color:#222;margin:24px}svg{max-width:100%;height:auto}"
      "pre{background:#f6f6f6;padding:10px;overflow-x:auto;font-size:12px}";
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>melflow "
             "sweep: {}"
             "</title><style>{}</style></head><body>\n{}<pre>",
             html_text(chart.title), style, svg_document(chart)) +
         html_text(table) + "</pre>\n</body></html>\n";
}

}  // namespace melflow
