#include "stages/output/row_statistics.h"

#include <cmath>
#include <utility>

namespace melflow {

ColumnMoments ColumnMoments::of(const float* values, std::int64_t frames, int columns) {
  const auto width = static_cast<std::size_t>(columns);
  ColumnMoments out{frames, std::vector<double>(width, 0), std::vector<double>(width, 0)};
  if (frames == 0) return out;
  double* const mean = out.mean.data();
  double* const m2 = out.m2.data();
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::size_t c = 0; c < width; ++c)
      mean[c] += values[static_cast<std::size_t>(f) * width + c];
  for (std::size_t c = 0; c < width; ++c) mean[c] /= static_cast<double>(frames);
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::size_t c = 0; c < width; ++c) {
      const double d = values[static_cast<std::size_t>(f) * width + c] - mean[c];
      m2[c] += d * d;
    }
  return out;
}

void ColumnMoments::merge(const ColumnMoments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const auto n = static_cast<double>(count), m = static_cast<double>(other.count);
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double d = other.mean[c] - mean[c];
    mean[c] += d * (m / (n + m));
    m2[c] += other.m2[c] + d * d * (n * m / (n + m));
  }
  count += other.count;
}

void RowStatistics::take(std::size_t file, std::int64_t first_row, ColumnMoments moments) {
  if (moments.count == 0) return;  // and may begin where the next one does
  open_[file].emplace(first_row, std::move(moments));
}

void RowStatistics::close(std::size_t file) {
  const auto it = open_.find(file);
  if (it == open_.end()) return;
  ColumnMoments of_file;
  for (const auto& [row, moments] : it->second) of_file.merge(moments);
  all_.merge(of_file);
  open_.erase(it);
}

ColumnStatistics RowStatistics::result() const {
  const auto width = static_cast<std::size_t>(columns_);
  ColumnStatistics out;
  out.frames = all_.count;
  out.mean = all_.count > 0 ? all_.mean : std::vector<double>(width, 0);
  out.std.resize(width, 0);
  for (std::size_t c = 0; c < width && all_.count > 0; ++c)
    out.std[c] = std::sqrt(all_.m2[c] / static_cast<double>(all_.count));
  return out;
}

}  // namespace melflow
