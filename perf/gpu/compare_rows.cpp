// melflow_compare_rows measures how much the rows of two outputs differ.
//
// In:  two files that `melflow run` wrote from the same recordings, linear or in decibels.
// Out: one line of key=value pairs: rows, and the largest difference of a value
//        linear   relative to the largest value of its frame
//        db       in decibels, of levels at most 60 dB below the largest of their frame
//      Exit status 1 with a sentence on stderr where the outputs have different shapes or files, or
//      differ by more than --most, or at all with --same.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stages/output/formats/feature_file.h"

namespace melflow {
namespace {

constexpr double kDepth = 60;                 // [dB]
constexpr std::uint64_t kRowsAtATime = 4096;  // per frame of a row

enum class Scale { linear, db };

struct Options {
  std::string a, b;
  Scale scale = Scale::linear;
  double most = std::numeric_limits<double>::infinity();
  bool same = false;
};

struct Found {
  double largest = 0;
  std::uint64_t row = 0;
  std::uint64_t other_bits = 0;  // values that are not bit-identical
};

// NaN counts as the largest possible difference, unless both values are bit-identical.
double difference(float a, float b) {
  if (std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) return 0;
  const double d = std::abs(static_cast<double>(a) - static_cast<double>(b));
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

void compare_frame(const float* a, const float* b, std::size_t bands, Scale scale,
                   std::uint64_t row, Found& found) {
  double peak = -std::numeric_limits<double>::infinity();
  for (std::size_t m = 0; m < bands; ++m)
    peak = std::max(peak, scale == Scale::linear ? std::abs(static_cast<double>(a[m])) : a[m]);
  for (std::size_t m = 0; m < bands; ++m) {
    double d = difference(a[m], b[m]);
    if (d == 0) continue;
    ++found.other_bits;
    if (scale == Scale::linear)
      d = peak > 0 ? d / peak : std::numeric_limits<double>::infinity();
    else if (std::max(a[m], b[m]) < peak - kDepth)
      continue;
    if (d > found.largest) {
      found.largest = d;
      found.row = row;
    }
  }
}

Found compare(const FeatureFile& a, const FeatureFile& b, Scale scale) {
  if (a.shape() != b.shape())
    throw std::runtime_error(fmt::format("{} has {} rows of {} values, {} has {} of {}", a.path(),
                                         a.rows(), a.frames_per_row() * a.bands(), b.path(),
                                         b.rows(), b.frames_per_row() * b.bands()));
  for (std::size_t i = 0; i < a.files().size(); ++i)
    if (i >= b.files().size() || a.files()[i].path != b.files()[i].path ||
        a.files()[i].offset != b.files()[i].offset || a.files()[i].count != b.files()[i].count)
      throw std::runtime_error("they are not of the same files");
  Found found;
  const std::size_t bands = a.bands(), frames = a.frames_per_row();
  const std::uint64_t step = std::max<std::uint64_t>(1, kRowsAtATime / frames);
  for (std::uint64_t row = 0; row < a.rows(); row += step) {
    const std::uint64_t n = std::min(step, a.rows() - row);
    const std::vector<float> x = a.read_rows(row, n), y = b.read_rows(row, n);
    for (std::size_t f = 0; f < n * frames; ++f)
      compare_frame(x.data() + f * bands, y.data() + f * bands, bands, scale, row + f / frames,
                    found);
  }
  return found;
}

int run(const Options& options) {
  const FeatureFile a(options.a), b(options.b);
  const Found found = compare(a, b, options.scale);
  fmt::print("rows={} largest={:.3g} row={} other_bits={}\n", a.rows(), found.largest, found.row,
             found.other_bits);
  if (a.rows() == 0) throw std::runtime_error(options.a + " has no rows");
  if (options.same && found.other_bits > 0)
    throw std::runtime_error(fmt::format("{} values are not the same", found.other_bits));
  if (!(found.largest <= options.most))
    throw std::runtime_error(fmt::format("row {} differs by {:.3g}, allowed is {:.3g}", found.row,
                                         found.largest, options.most));
  return 0;
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) try {
  melflow::Options options;
  CLI::App app{"Says how far apart the rows of two outputs are."};
  app.add_option("A", options.a, "a file that `melflow run` wrote")->required();
  app.add_option("B", options.b, "another one, of the same recordings")->required();
  bool is_db = false;
  app.add_flag("--db", is_db, "values are decibels; else they are linear");
  app.add_option("--most", options.most, "allowed difference: of the frame's peak, or in dB");
  app.add_flag("--same", options.same, "every value must be the same to the last bit");
  CLI11_PARSE(app, argc, argv);
  options.scale = is_db ? melflow::Scale::db : melflow::Scale::linear;
  return melflow::run(options);
} catch (const std::exception& e) {
  std::fprintf(stderr, "melflow_compare_rows: %s\n", e.what());
  return 1;
}
