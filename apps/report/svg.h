// Building blocks of HTML pages: escaped text, and drawings as SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// Escapes <, >, &, " and ' for HTML, and replaces bytes that are not UTF-8 or control a terminal.
std::string html_text(std::string_view text);

/// Returns a colour between white (share 0) and the given one (1): "rgb(255,214,170)".
std::string shade(double share, int red, int green, int blue);

/// Lines over a common time axis.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<double> values;  ///< one per element of `seconds`; NaN: a gap
  };
  std::string title, unit;
  std::vector<Line> lines;
  double limit = 0;  ///< drawn as a dashed line; 0: none
};
/// `seconds`: times of the points; `end`: end of the axis [s].
std::string svg(const LineChart& chart, const std::vector<double>& seconds, double end);

/// One row per thread: stacked bands show which share of the time it spent in what.
struct RowsChart {
  std::string title;
  std::vector<std::string> names;  ///< of the bands, for the legend
  double from = 0,
         step = 0;  ///< start of the first value, and time between values [s]
  struct Row {
    std::string name;
    std::vector<std::vector<double>> shares;  ///< [band, step], 0 .. 1
  };
  std::vector<Row> rows;
};
/// `end`: end of the axis [s].
std::string svg(const RowsChart& chart, double end);

/// Nodes in columns from left to right, joined by edges.
struct FlowChart {
  struct Node {
    std::vector<std::string> lines;  ///< the first one is the name
    double heat = 0;                 ///< 0 .. 1
    std::string tip;
  };
  struct Edge {
    std::size_t from = 0, to = 0;
    double heat = 0;
    std::string label, tip;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;  ///< each from a lower node number to a higher one
};
/// Drawn no larger than its natural size. Texts that are too long for a box end with "…".
std::string svg(const FlowChart& chart);
/// The height of its natural size [px].
double height_of(const FlowChart& chart);

/// A bar whose parts add up to one.
struct PartsBar {
  std::string name;
  std::vector<double> parts;
};
std::string svg(const std::vector<PartsBar>& bars, const std::vector<std::string>& colours);

}  // namespace melflow
