#include "stages/output/rows/row_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stages/features/mel/utterance_steps.h"

namespace melflow {
namespace {

constexpr std::size_t kMostRuns = 16;  // runs of a file that are kept before they are added up

// Sums columns [at, at + Width) of a run; the sums stay in registers.
template <std::size_t Width>
void sum_columns(const float* values, std::int64_t frames, std::size_t columns, double* origins,
                 double* differences, double* squares) {
  double origin[Width], sum[Width] = {}, square[Width] = {};
  for (std::size_t c = 0; c < Width; ++c) origin[c] = values[c];
  for (std::int64_t f = 1; f < frames; ++f) {
    values += columns;
    for (std::size_t c = 0; c < Width; ++c) {
      const double d = values[c] - origin[c];
      sum[c] += d;
      square[c] += d * d;
    }
  }
  std::copy_n(origin, Width, origins);
  std::copy_n(sum, Width, differences);
  std::copy_n(square, Width, squares);
}

}  // namespace

std::int64_t GroupStatistics::find(std::string_view name) const {
  const auto it = std::lower_bound(names.begin(), names.end(), name);
  return it != names.end() && *it == name ? it - names.begin() : -1;
}

std::shared_ptr<const FinishStep> scaling_step(const ColumnStatistics& statistics,
                                               std::int64_t group) {
  std::vector<double> mean = statistics.mean, std = statistics.std;
  if (group >= 0) {
    const auto columns = static_cast<std::int64_t>(mean.size());
    std::copy_n(statistics.groups->mean.begin() + group * columns, columns, mean.begin());
    std::copy_n(statistics.groups->std.begin() + group * columns, columns, std.begin());
  }
  std::replace(std.begin(), std.end(), 0.0, 1.0);
  return fixed_step(std::move(mean), std::move(std));
}

void RunSums::add(const float* values, std::int64_t frames) {
  constexpr std::size_t kWidth = 8;
  for (std::int64_t done = 0; done < frames; done += kMostFrames) {
    const std::int64_t n = std::min(kMostFrames, frames - done);
    const float* run = values + static_cast<std::size_t>(done) * columns_;
    frames_.push_back(n);
    sums_.resize(sums_.size() + 3 * columns_);
    double* const first = &sums_[sums_.size() - 3 * columns_];
    double* const differences = first + columns_;
    double* const squares = differences + columns_;
    std::size_t c = 0;
    for (; c + kWidth <= columns_; c += kWidth)
      sum_columns<kWidth>(run + c, n, columns_, first + c, differences + c, squares + c);
    for (; c < columns_; ++c)
      sum_columns<1>(run + c, n, columns_, first + c, differences + c, squares + c);
  }
}

void RunSums::add(const RunSums& other) {
  frames_.insert(frames_.end(), other.frames_.begin(), other.frames_.end());
  sums_.insert(sums_.end(), other.sums_.begin(), other.sums_.end());
}

void RunSums::clear() {
  frames_.clear();
  sums_.clear();
}

// With x = first + d: sum x = n first + sum d, sum x^2 = n first^2 + 2 first sum d + sum d^2. Every
// product here is exact: `first` is a float, and sum d is cut into halves of 26 and 27 bits.
void ColumnSums::add(const RunSums& runs) {
  constexpr std::uint64_t kUpper = ~((std::uint64_t{1} << 27) - 1);
  for (std::size_t run = 0; run < runs.count(); ++run) {
    const std::int64_t n = runs.frames(run);
    frames_ += n;
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      const double first = runs.first(run)[c], d = runs.differences(run)[c];
      const auto upper = std::bit_cast<double>(std::bit_cast<std::uint64_t>(d) & kUpper);
      sums_[c].add(first, n);
      sums_[c].add(d);
      squares_[c].add(first * first, n);
      squares_[c].add(first * upper, 2);
      squares_[c].add(first * (d - upper), 2);
      squares_[c].add(runs.squares(run)[c]);
    }
  }
}

void ColumnSums::add(const ColumnSums& other) {
  frames_ += other.frames_;
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    sums_[c].add(other.sums_[c]);
    squares_[c].add(other.squares_[c]);
  }
}

ColumnStatistics ColumnSums::statistics() const {
  ColumnStatistics out;
  out.frames = frames_;
  out.mean.resize(sums_.size(), 0);
  out.std.resize(sums_.size(), 0);
  const auto n = static_cast<double>(frames_);
  for (std::size_t c = 0; c < sums_.size() && frames_ > 0; ++c) {
    out.mean[c] = sums_[c].value() / n;
    out.std[c] = std::sqrt(ExactSum::squared_deviations(sums_[c], squares_[c], frames_) / n);
  }
  return out;
}

ColumnSums::Text ColumnSums::text() const {
  Text out{.frames = frames_, .sums = {}, .squares = {}};
  for (const ExactSum& sum : sums_) out.sums.push_back(sum.text());
  for (const ExactSum& square : squares_) out.squares.push_back(square.text());
  return out;
}

std::optional<ColumnSums> ColumnSums::of(const Text& text, int columns) {
  ColumnSums out(columns);
  out.frames_ = text.frames;
  const auto take = [](const std::vector<std::string>& from, std::vector<ExactSum>& to) {
    if (from.size() != to.size()) return false;
    for (std::size_t c = 0; c < to.size(); ++c) {
      const auto sum = ExactSum::of(from[c]);
      if (!sum) return false;
      to[c] = *sum;
    }
    return true;
  };
  if (text.frames < 0 || !take(text.sums, out.sums_) || !take(text.squares, out.squares_))
    return std::nullopt;
  return out;
}

RowStatistics::RowStatistics(int frames, int columns)
    : frames_(std::max(frames, 1)),
      columns_(columns),
      run_rows_(std::max<std::int64_t>(1, RunSums::kMostFrames / frames_)),
      all_(columns) {}

// Sums rows that begin where a run begins.
void RowStatistics::sum_rows(const float* values, std::int64_t rows, RunSums& to) const {
  for (std::int64_t row = 0; row < rows; row += run_rows_)
    to.add(values + row * frames_ * columns_, std::min(run_rows_, rows - row) * frames_);
}

void RowStatistics::take(std::size_t file, std::int64_t first_row, std::int64_t rows,
                         const float* values, bool is_last) {
  if (rows == 0) return;
  // Rows of runs that begin before these rows or end behind them wait for the rest of their runs.
  const std::int64_t into = first_row % run_rows_;
  const std::int64_t head = into == 0 ? 0 : std::min(rows, run_rows_ - into);
  const std::int64_t tail = is_last ? 0 : (rows - head) % run_rows_;
  RunSums whole(columns_);
  sum_rows(values + head * frames_ * columns_, rows - head - tail, whole);
  const std::lock_guard lock(mutex_);
  File& to = open_.try_emplace(file, columns_).first->second;
  to.runs.add(whole);
  put(to, first_row, head, values);
  put(to, first_row + rows - tail, tail, values + (rows - tail) * frames_ * columns_);
  if (to.runs.count() <= kMostRuns) return;
  if (!to.folded) to.folded.emplace(columns_);
  to.folded->add(to.runs);
  to.runs.clear();
}

// Keeps rows of a run until it is complete.
void RowStatistics::put(File& file, std::int64_t first_row, std::int64_t rows,
                        const float* values) const {
  if (rows == 0) return;
  const std::int64_t run = first_row / run_rows_, row_values = frames_ * columns_;
  Partial& partial = file.partial[run];
  partial.values.resize(static_cast<std::size_t>(run_rows_ * row_values));
  std::copy_n(values, rows * row_values,
              partial.values.data() + (first_row - run * run_rows_) * row_values);
  partial.rows += rows;
  if (partial.rows < run_rows_) return;
  sum_rows(partial.values.data(), run_rows_, file.runs);
  file.partial.erase(run);
}

void RowStatistics::close(std::size_t file) {
  const std::lock_guard lock(mutex_);
  const auto it = open_.find(file);
  if (it == open_.end()) return;
  File& closed = it->second;
  for (const auto& [run, partial] : closed.partial)  // the file's last run
    sum_rows(partial.values.data(), partial.rows, closed.runs);
  all_.add(closed.runs);
  if (closed.folded) all_.add(*closed.folded);
  open_.erase(it);
}

void RowStatistics::drop(std::size_t file) {
  const std::lock_guard lock(mutex_);
  open_.erase(file);
}

void RowStatistics::add(const ColumnSums& others) {
  const std::lock_guard lock(mutex_);
  all_.add(others);
}

ColumnSums RowStatistics::sums() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace melflow
