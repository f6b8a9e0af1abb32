#include "stages/features/mel/own_fft.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "stages/features/mel/aligned_array.h"
#include "stages/features/mel/lane_tables.h"

namespace melflow {
namespace {

using Root = std::pair<double, double>;

// Returns exp(-2 pi i k / n), right to the last bit but for ties: the angle is folded into the
// first eighth of a turn with integers, and long double leaves digits to round.
Root root(std::int64_t k, std::int64_t n) {
  std::int64_t at = 4 * (k % n);  // of 4 n
  const bool is_lower = at > 2 * n;
  if (is_lower) at = 4 * n - at;
  const bool is_left = at > n;
  if (is_left) at = 2 * n - at;
  const bool is_steep = 2 * at > n;
  if (is_steep) at = n - at;
  const long double angle = std::numbers::pi_v<long double> / 2 * at / n;
  auto x = static_cast<double>(std::cos(angle)), y = static_cast<double>(std::sin(angle));
  if (is_steep) std::swap(x, y);
  return {is_left ? -x : x, is_lower ? y : -y};
}

}  // namespace

OwnFft::OwnFft(int n, const lanes::Loops& loops) : loops_(&loops) {
  tables_.n = n;
  tables_.points = n % 2 == 0 ? n / 2 : n;
  tables_.outputs = n % 2 == 0 ? tables_.points : n / 2 + 1;
  if (n % 2 == 0) {
    const int count = tables_.points / 2 + 1 + lanes::FftTables::padding;
    double* turn = keep(2 * static_cast<std::size_t>(count));
    tables_.turn = {turn, turn + count};
    for (int k = 0; k <= tables_.points / 2; ++k) {
      const auto [x, y] = root(k, n);
      turn[k] = y;
      turn[count + k] = -x;
    }
  }
  if (tables_.points == 1 || !radices_of(tables_.points).empty())
    make_steps(tables_.points);
  else
    make_convolution();
}

void OwnFft::make_steps(int size) {
  tables_.size = size;
  tables_.length = (size + 2 * lanes::FftTables::padding - 1) / lanes::FftTables::padding *
                   lanes::FftTables::padding;
  std::vector<int> radices = radices_of(size);
  // Runs are then whole vectors from the second step on.
  std::stable_partition(radices.begin(), radices.end(), [](int radix) { return radix == 8; });
  int run = 1;
  for (const int radix : radices) {
    const int of = size / run, parts = of / radix;
    const auto count = static_cast<std::size_t>(parts) * static_cast<std::size_t>(radix - 1);
    double* twiddle = keep(2 * count + lanes::FftTables::padding);
    tables_.passes[tables_.n_passes++] = {radix, parts, run, twiddle};
    for (std::int64_t p = 0; p < parts; ++p) {
      for (std::int64_t k = 1; k < radix; ++k) {
        const auto [x, y] = root(p * k, of);
        double* at =
            run == 1 ? twiddle + 2 * (k - 1) * parts + p : twiddle + 2 * (p * (radix - 1) + k - 1);
        at[0] = x;
        at[run == 1 ? parts : 1] = y;
      }
    }
    run *= radix;
  }
}

// Bin k is chirp_k times the sum over j of (x_j chirp_j) conj(chirp_{k-j}), as j k is (j^2 + k^2 -
// (k - j)^2) / 2: a cyclic convolution, long enough that no k - j meets another.
void OwnFft::make_convolution() {
  const int points = tables_.points, outputs = tables_.outputs;
  int size = (points + outputs - 1 + 7) / 8 * 8;
  while (radices_of(size).empty()) size += 8;
  make_steps(size);
  const auto length = static_cast<std::size_t>(tables_.length);
  double *chirp = keep(2 * length), *filter = keep(2 * length);
  tables_.chirp = {chirp, chirp + length};
  tables_.filter = {filter, filter + length};
  AlignedArray<double> re(length), im(length);
  for (std::int64_t j = 0; j < points; ++j) {
    const auto [x, y] = root(j * j, 2 * std::int64_t{points});
    chirp[j] = x;
    chirp[tables_.length + j] = y;
    const auto put = [&, x = x, y = y](std::int64_t at) {
      re.data()[at] = x / size;
      im.data()[at] = -y / size;
    };
    if (j < outputs) put(j);
    if (j > 0) put(size - j);
  }
  const OwnFft real(size, *loops_);
  AlignedArray<double> work(real.work_size()), re_bins(length + 2), im_bins(length + 2);
  real.execute(re.data(), re_bins.data(), work.data());
  real.execute(im.data(), im_bins.data(), work.data());
  for (int k = 0; k < size; ++k) {
    const int bin = std::min(k, size - k), sign = bin == k ? 1 : -1;  // the rest is conjugate
    const double *a = re_bins.data() + 2 * bin, *b = im_bins.data() + 2 * bin;
    filter[k] = a[0] - sign * b[1];
    filter[tables_.length + k] = sign * a[1] + b[0];
  }
  tables_.is_convolution = true;
}

}  // namespace melflow
