#include "apps/parity/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "stages/features/mel/mel_kernel.h"

namespace melflow {
namespace {

using Normalize = MelOptions::Normalize;

// Finds the statistics by which of_mel() normalises, so that it can be undone.
void find_normalisation(MelOptions o, ParityRows& rows) {
  const auto columns = static_cast<std::size_t>(rows.columns);
  rows.mean.assign(columns, 0.0);
  rows.divisor.assign(columns, 1.0);
  const auto frames = static_cast<double>(rows.frames);
  if (o.normalize == Normalize::fixed) {
    for (std::size_t c = 0; c < columns; ++c) {
      rows.mean[c] = o.norm_mean[o.norm_mean.size() == 1 ? 0 : c];
      if (o.norm_variance && !o.norm_std.empty())
        rows.divisor[c] = o.norm_std[o.norm_std.size() == 1 ? 0 : c];
    }
  } else if (o.normalize != Normalize::none && rows.frames > 0) {
    const bool each = o.normalize == Normalize::per_feature;
    o.normalize = Normalize::none;
    std::vector<float> levels = rows.values;
    UtteranceSteps::of_mel(o).apply(levels.data(), rows.frames, rows.columns);
    std::vector<double> sums(columns, 0.0), squares(columns, 0.0);
    const auto pass = [&](std::vector<double>& totals, const auto& term) {
      for (std::size_t i = 0; i < levels.size(); ++i)
        totals[each ? i % columns : 0] += term(levels[i], i % columns);
      if (!each) std::fill(totals.begin() + 1, totals.end(), totals.front());
    };
    const double n = each ? frames : frames * static_cast<double>(columns);
    pass(sums, [](double x, std::size_t) { return x; });
    for (std::size_t c = 0; c < columns; ++c) rows.mean[c] = sums[c] / n;
    pass(squares, [&](double x, std::size_t c) { return std::pow(x - rows.mean[c], 2); });
    const bool is_in_root = o.norm_eps_to == MelOptions::NormEpsTo::variance;
    for (std::size_t c = 0; c < columns && o.norm_variance; ++c) {
      const double variance = n > o.norm_ddof ? squares[c] / (n - o.norm_ddof) : 0.0;
      rows.divisor[c] =
          is_in_root ? std::sqrt(variance + o.norm_eps) : std::sqrt(variance) + o.norm_eps;
    }
  }
}

template <class Sample>
ParityRows compute(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                   std::span<const Sample> samples) {
  const MelKernel kernel(std::make_shared<const MelPlan>(options));
  const MelPlan& plan = kernel.plan();
  const auto length = static_cast<std::int64_t>(samples.size());
  ParityRows out;
  out.frames = plan.frames(length);
  out.columns = plan.columns();
  out.values.resize(static_cast<std::size_t>(out.frames) * static_cast<std::size_t>(out.columns));
  MelKernel::Scratch scratch = kernel.make_scratch();
  kernel.frames(SignalView<Sample>{samples.data(), 0, length, length}, 0, out.frames,
                out.values.data(), scratch);
  find_normalisation(plan.options(), out);
  UtteranceSteps::of_mel(plan.options()).apply(out.values.data(), out.frames, out.columns);
  if (!cepstrum) return out;
  const MemoryRows mel(out.values.data(), out.frames, out.columns);
  std::vector<float> coefficients(static_cast<std::size_t>(out.frames) *
                                  static_cast<std::size_t>(cepstrum->n_mfcc));
  MemoryRows result(coefficients.data(), out.frames, cepstrum->n_mfcc);
  cepstrum_step(*cepstrum, out.columns, plan.energy_column())->run(mel, result);
  out.values = std::move(coefficients);
  out.columns = cepstrum->n_mfcc;
  return out;
}

}  // namespace

double ParityValue::error() const {
  const double difference = std::abs(ours - theirs);
  return difference <= own_error ? 0.0 : difference - own_error;
}

double ParityValue::share() const {
  if (frame < 0 || error() == 0.0) return 0.0;
  const double out = error() / limit;
  return std::isnan(out) ? std::numeric_limits<double>::infinity() : out;
}

ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const std::int16_t> samples) {
  return compute(options, cepstrum, samples);
}

ParityRows parity_rows(const MelOptions& options, const std::optional<CepstrumOptions>& cepstrum,
                       std::span<const float> samples) {
  return compute(options, cepstrum, samples);
}

ParityJudge::ParityJudge(const MelOptions& options, bool is_cepstrum, const ParityRows& ours,
                         const ParityTolerance& tolerance, TheirPrecision theirs)
    : ours_(ours), tolerance_(tolerance), precision_(options.precision), is_cepstrum_(is_cepstrum) {
  const MelPlan plan(options);
  is_level_ = options.log != MelOptions::Log::none && !is_cepstrum;
  const bool is_single = options.precision == MelOptions::Precision::float32 ||
                         !(theirs.is_double || theirs.is_noted || theirs.is_measured);
  share_ = is_single ? kFloatShare : kDoubleShare;
  unnoted_ = !theirs.is_measured && (is_level_ || !theirs.is_double) ? kUnnoted : 0.0;
  log_factor_ = plan.log_factor();
  power_ = options.power;
  is_banded_ = !is_cepstrum && options.output == MelOptions::Output::mel;
  const int energy = is_cepstrum ? -1 : plan.energy_column();
  energy_column_ = static_cast<std::size_t>(energy < 0 ? ours.columns : energy);
}

// Returns the effect of kFloatShare and kFilterShare on each value. Peaks and neighbours come from
// the library's rows, so that an error in ours cannot widen its own limit.
std::vector<double> ParityJudge::float_limits(const std::vector<double>& theirs) const {
  const std::size_t columns = theirs.size();
  std::vector<double> out(columns, 0.0), linear(columns);
  const auto is_band = [&](std::size_t c) { return c < columns && c != energy_column_; };
  double peak = 0.0;
  for (std::size_t c = 0; c < columns; ++c) {
    linear[c] = is_level_ ? std::exp((theirs[c] * ours_.divisor[c] + ours_.mean[c]) / log_factor_)
                          : std::abs(theirs[c]);
    if (is_band(c)) peak = std::max(peak, linear[c]);
  }
  if (is_cepstrum_) {
    std::fill(out.begin(), out.end(), kFloatShare * peak);
    return out;
  }
  const double share = share_ * std::pow(peak, 1.0 / power_);
  for (std::size_t c = 0; c < columns; ++c) {
    if (!is_band(c)) continue;
    const double value = linear[c];
    const double amplitude = std::pow(value, 1.0 / power_);
    double limit = std::pow(amplitude + share, power_) - value;
    for (const std::size_t beside : {c - 1, c + 1})  // size_t: -1 is no band
      if (is_banded_ && is_band(beside)) limit = std::max(limit, kFilterShare * linear[beside]);
    out[c] = is_level_ ? std::log1p(limit / value) * log_factor_ / ours_.divisor[c] : limit;
  }
  return out;
}

std::vector<double> ParityJudge::limits(const std::vector<double>& theirs) const {
  std::vector<double> out = float_limits(theirs);
  for (std::size_t c = 0; c < theirs.size(); ++c) {
    const bool is_linear = !is_level_ && !is_cepstrum_ && c != energy_column_;
    const double given =
        (is_linear ? 0.0 : tolerance_.atol) + tolerance_.rtol * std::abs(theirs[c]);
    const double unnoted = is_level_ ? unnoted_ : is_linear ? unnoted_ * std::abs(theirs[c]) : 0.0;
    out[c] = std::max({given, out[c], unnoted});
  }
  return out;
}

ParityValue ParityJudge::worst(const ParityRow& theirs) const {
  const std::vector<double> most = limits(theirs.values);
  const float* ours = ours_.values.data() + theirs.frame * ours_.columns;
  ParityValue out;
  double largest = 0;
  for (std::size_t c = 0; c < theirs.values.size(); ++c) {
    const double own_error = theirs.own_error.empty() ? 0.0 : theirs.own_error[c];
    const ParityValue one{theirs.frame,     c,         ours[c],
                          theirs.values[c], own_error, most[c] + kNotedDigits * own_error,
                          precision_};
    largest = std::max(largest, std::abs(one.ours - one.theirs));
    if (out.frame < 0 || one.share() > out.share()) out = one;
  }
  out.largest = largest;
  return out;
}

ParityValue worst_delta(const ParityDelta& delta, const ParityTolerance& tolerance) {
  const auto frames = static_cast<std::int64_t>(delta.input.size());
  const std::size_t columns = delta.input.front().size();
  std::vector<float> input;
  for (const std::vector<double>& row : delta.input)
    for (const double x : row) input.push_back(static_cast<float>(x));
  const auto step = delta_step(delta.options);
  const int width = step->values_out(static_cast<int>(columns));
  std::vector<float> output(delta.input.size() * static_cast<std::size_t>(width));
  const MemoryRows in(input.data(), frames, static_cast<int>(columns));
  MemoryRows out(output.data(), frames, width);
  step->run(in, out);
  ParityValue worst;
  double largest = 0;
  const auto stride = static_cast<std::size_t>(width);
  for (std::size_t t = 0; t < delta.output.size(); ++t)
    for (std::size_t c = 0; c < columns; ++c) {
      const double theirs = delta.output[t][c];
      const ParityValue one{static_cast<std::int64_t>(t),
                            c,
                            output[t * stride + stride - columns + c],
                            theirs,
                            0.0,
                            tolerance.atol + tolerance.rtol * std::abs(theirs),
                            {}};
      largest = std::max(largest, std::abs(one.ours - one.theirs));
      if (worst.frame < 0 || one.share() > worst.share()) worst = one;
    }
  worst.largest = largest;
  return worst;
}

}  // namespace melflow
