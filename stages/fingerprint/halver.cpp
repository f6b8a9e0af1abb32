#include "stages/fingerprint/halver.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pipeline/base/wide_vectors.h"

namespace melflow::fingerprint {
namespace {

MELFLOW_FOR_WIDE_VECTORS void deinterleave(const float* pairs, std::size_t count, float* first,
                                           float* second) {
  for (std::size_t i = 0; i < count; ++i) {
    first[i] = pairs[2 * i];
    second[i] = pairs[2 * i + 1];
  }
}

MELFLOW_FOR_WIDE_VECTORS void halve_all(const float* x, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = 0.5F * x[i];
}

// Adds three taps of the samples at either side, the nearer ones first.
MELFLOW_FOR_WIDE_VECTORS void add_taps(const float* taps, const float* before, const float* after,
                                       std::size_t count, float* out) {
  const float a = taps[0], b = taps[1], c = taps[2];
  for (std::size_t i = 0; i < count; ++i)
    out[i] += a * (before[i] + after[i]) + b * (before[i - 1] + after[i + 1]) +
              c * (before[i - 2] + after[i + 2]);
}

}  // namespace

HalfBand::HalfBand(int length, double kaiser_beta) {
  const int middle = length / 2;
  std::vector<double> taps;
  double sum = 0;
  for (int at = 1; at <= middle; at += 2) {
    const double place = static_cast<double>(at) / middle;
    const double inside = kaiser_beta * std::sqrt(1 - place * place);
    taps.push_back(std::sin(std::numbers::pi / 2 * at) / at * std::cyl_bessel_i(0.0, inside));
    sum += taps.back();
  }
  for (const double tap : taps) odd_taps_.push_back(static_cast<float>(tap / (4 * sum)));
}

Halver::Halver(const HalfBand& filter)
    : taps_(&filter.odd_taps()), odd_(filter.odd_taps().size()) {}

void Halver::add(const float* samples, std::size_t count, bool is_last, std::vector<float>& out) {
  if (count > 0 && is_odd_next_) {
    odd_.push_back(*samples++);
    --count;
    is_odd_next_ = false;
  }
  const std::size_t pairs = count / 2, evens = even_.size(), odds = odd_.size();
  even_.resize(evens + pairs);
  odd_.resize(odds + pairs);
  deinterleave(samples, pairs, even_.data() + evens, odd_.data() + odds);
  if (count % 2 != 0) {
    even_.push_back(samples[count - 1]);
    is_odd_next_ = true;
  }
  // odd_[m + reach] follows even_[m].
  const std::size_t reach = taps_->size();
  if (is_last) odd_.resize(even_.size() + 2 * reach - 1);
  const std::size_t known = odd_.size() >= 2 * reach ? odd_.size() - 2 * reach + 1 : 0;
  const std::size_t ready = std::min(even_.size(), known), at = out.size();
  out.resize(at + ready);
  halve_all(even_.data(), ready, out.data() + at);
  for (std::size_t j = 0; j < reach; j += 3)
    add_taps(taps_->data() + j, odd_.data() + reach - 1 - j, odd_.data() + reach + j, ready,
             out.data() + at);
  even_.erase(even_.begin(), even_.begin() + static_cast<std::ptrdiff_t>(ready));
  odd_.erase(odd_.begin(), odd_.begin() + static_cast<std::ptrdiff_t>(ready));
}

}  // namespace melflow::fingerprint
