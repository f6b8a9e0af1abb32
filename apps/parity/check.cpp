#include "apps/parity/check.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "apps/parity/signals.h"
#include "stages/output/rows/row_statistics.h"

namespace melflow {
namespace {

constexpr std::array kPrecisions{MelOptions::Precision::float32, MelOptions::Precision::float64};

MelOptions in(MelOptions::Precision precision, MelOptions options) {
  options.precision = precision;
  return options;
}

std::string shapes(const ParityRows& ours, std::int64_t frames, int columns,
                   const std::string& library) {
  return fmt::format("{} x {} values (frames x columns) here, {} x {} by {}", ours.frames,
                     ours.columns, frames, columns, library);
}

}  // namespace

ParityResult check_case(const ParityCase& one, const ParityTolerance& tolerance) {
  ParityResult out;
  out.name = one.name;
  out.preset = one.preset;
  out.libraries = {one.source.text()};
  if (!one.left_out.empty()) {
    out.left_out = 1;
    out.reason = one.left_out;
    return out;
  }
  const std::vector<std::int16_t> samples = parity_signal(one.signal, one.options.sample_rate);
  if (static_cast<std::int64_t>(samples.size()) != one.samples) {
    out.fail(
        fmt::format("its signal has {} samples here, must have {}", samples.size(), one.samples));
    return out;
  }
  for (const auto precision : kPrecisions) {
    const MelOptions options = in(precision, one.options);
    const ParityRows ours = parity_rows(options, one.cepstrum, samples);
    if (ours.frames != one.frames || ours.columns != one.columns) {
      out.fail(shapes(ours, one.frames, one.columns, one.source.text()));
      return out;
    }
    const ParityJudge judge(options, one.cepstrum.has_value(), ours, tolerance,
                            {transforms_in_double(one.preset), true, false});
    for (const ParityRow& row : one.rows) out.take(judge.worst(row));
  }
  out.frames = static_cast<std::int64_t>(one.rows.size());
  return out;
}

ParityResult check_delta(const ParityDelta& one, const ParityTolerance& tolerance) {
  ParityResult out;
  out.name = one.name;
  out.preset = kDeltas;
  out.libraries = {one.source.text()};
  out.take(worst_delta(one, tolerance));
  out.frames = static_cast<std::int64_t>(one.output.size());
  return out;
}

// Our statistics, and how far they may be from the library's: a mean by the mean of what its rows
// may, a standard deviation by the root of the mean square of that (Minkowski's inequality).
struct RecordingCheck::Sums {
  explicit Sums(int columns)
      : rows(columns), limits(static_cast<std::size_t>(columns), 0.0), squares(limits) {}

  void take(const ParityRows& ours) {
    RunSums runs(ours.columns);
    runs.add(ours.values.data(), ours.frames);
    rows.add(runs);
  }
  void take_limits(const std::vector<double>& of_row) {
    for (std::size_t c = 0; c < of_row.size(); ++c) {
      limits[c] += of_row[c];
      squares[c] += of_row[c] * of_row[c];
    }
  }

  ColumnSums rows;
  std::vector<double> limits, squares;
};

RecordingCheck::RecordingCheck(std::string preset, const MelOptions& options,
                               const ReferenceAnswer& answer, const ParityTolerance& tolerance)
    : preset_(std::move(preset)), options_(options), answer_(answer), tolerance_(tolerance) {
  for (auto& sums : sums_) sums = std::make_shared<Sums>(columns(options));
}

ParityResult RecordingCheck::check(const ParityRecording& recording, const ReferenceRows& theirs) {
  ParityResult out;
  out.name = recording.path;
  out.preset = preset_;
  out.libraries = {answer_.source.text()};
  if (!recording.problem.empty()) {
    out.fail(recording.problem);
    return out;
  }
  // Some libraries refuse what is shorter than their padding, or has one frame only.
  if (!theirs.refused.empty()) {
    out.left_out = 1;
    out.reason = theirs.refused;
    return out;
  }
  bool is_finite = true;  // then there are statistics
  for (std::size_t p = 0; p < kPrecisions.size(); ++p) {
    const MelOptions options = in(kPrecisions[p], options_);
    const ParityRows ours =
        parity_rows(options, std::nullopt, std::span<const float>(recording.samples));
    if (ours.frames != theirs.frames || (ours.columns != theirs.columns && ours.frames > 0)) {
      out.fail(shapes(ours, theirs.frames, theirs.columns, answer_.source.text()));
      return out;
    }
    const ParityJudge judge(
        options, false, ours, tolerance_,
        {.is_double = transforms_in_double(preset_), .is_measured = !theirs.own_errors.empty()});
    for (std::int64_t t = 0; t < theirs.frames; ++t) {
      const auto row_at = [&](const std::vector<float>& all) {
        const float* values = all.data() + t * theirs.columns;
        return all.empty() ? std::vector<double>{}
                           : std::vector<double>(values, values + theirs.columns);
      };
      const ParityRow row{t, row_at(theirs.values), row_at(theirs.own_errors)};
      out.take(judge.worst(row));
      std::vector<double> limits = judge.limits(row.values);
      for (std::size_t c = 0; c < row.own_error.size(); ++c) limits[c] += row.own_error[c];
      sums_[p]->take_limits(limits);
    }
    is_finite = is_finite && std::all_of(ours.values.begin(), ours.values.end(),
                                         [](float value) { return std::isfinite(value); });
    if (ours.frames > 0 && is_finite) sums_[p]->take(ours);
  }
  out.frames = theirs.frames;
  if (is_finite) frames_ += theirs.frames;
  return out;
}

std::array<ParityResult, 2> RecordingCheck::statistics() const {
  std::array<ParityResult, 2> out;
  const ReferenceStatistics& theirs = answer_.statistics;
  for (std::size_t s = 0; s < out.size(); ++s) {
    ParityResult& result = out[s];
    const bool is_mean = s == 0;
    result.name = is_mean ? "mean of all rows" : "deviation of all rows";
    result.preset = preset_;
    result.libraries = {answer_.source.text()};
    result.is_of_rows = false;
    if (frames_ == 0 || frames_ != theirs.frames) {
      result.left_out = 1;
      result.reason = frames_ == 0 ? "no rows" : "not all of the library's rows could be compared";
      continue;
    }
    result.frames = frames_;
    const auto n = static_cast<double>(frames_);
    for (std::size_t p = 0; p < kPrecisions.size(); ++p) {
      const Sums& sums = *sums_[p];
      const ColumnStatistics ours = sums.rows.statistics();
      for (std::size_t c = 0; c < theirs.mean.size(); ++c) {
        const double limit = is_mean ? sums.limits[c] / n : std::sqrt(sums.squares[c] / n);
        result.take({0, c, is_mean ? ours.mean[c] : ours.std[c],
                     is_mean ? theirs.mean[c] : theirs.std[c], 0.0, limit, kPrecisions[p]});
      }
    }
  }
  return out;
}

}  // namespace melflow
