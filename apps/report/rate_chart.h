// Files per second for the values of one option, as bars, or of two options, as a heat map; the
// fastest is marked.
#pragma once

#include <string>
#include <vector>

namespace melflow {

struct RateChart {
  struct Cell {
    double median = 0, least = 0, greatest = 0;  ///< of the runs [files/s]
  };
  std::string title;
  std::string down, across;                ///< the options; `across` is "" if there is only one
  std::vector<std::string> rows, columns;  ///< their values; one column if there is one option
  std::vector<std::vector<Cell>> cells;    ///< [rows, columns]
};

/// Returns a standalone SVG document without scripts.
std::string svg_document(const RateChart& chart);
/// Returns a page with the drawing and, below it, `table` as it is printed.
std::string html_page(const RateChart& chart, const std::string& table);

}  // namespace melflow
