// Pieces of pages: text that is safe in HTML, and drawings as SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// The text with <, >, &, " and ' written as HTML has them, and what is not UTF-8 or steers a
/// terminal replaced.
std::string html_text(std::string_view text);

/// A colour between white (0) and the given one (1): "rgb(255,214,170)".
std::string shade(double share, int red, int green, int blue);

/// Lines over one axis of time.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<double> values;  ///< as many as there are seconds; NaN: a gap
  };
  std::string title, unit;
  std::vector<Line> lines;
  double limit = 0;  ///< drawn as a dashed line; 0: none
};
/// `seconds`: of the points; `end`: of the axis [s].
std::string svg(const LineChart& chart, const std::vector<double>& seconds, double end);

/// A row for each of some threads: what share of the time it was in what, in bands upon each other.
struct RowsChart {
  std::string title;
  std::vector<std::string> names;  ///< of the bands, for the key
  double from = 0,
         step = 0;  ///< of the values: the beginning of the first, and from each to the next [s]
  struct Row {
    std::string name;
    std::vector<std::vector<double>> shares;  ///< [band, step], 0 .. 1
  };
  std::vector<Row> rows;
};
/// `end`: of the axis [s].
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
  std::vector<Edge> edges;  ///< from a lower number to a higher one
};
std::string svg(const FlowChart& chart);

/// A bar of parts that add up to one.
struct PartsBar {
  std::string name;
  std::vector<double> parts;
};
std::string svg(const std::vector<PartsBar>& bars, const std::vector<std::string>& colours);

}  // namespace melflow
