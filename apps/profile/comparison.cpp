#include "apps/profile/comparison.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace melflow {
namespace {

constexpr double kAtRest = 0.05;
constexpr double kErrors = 3;
// Quantiles of a normal distribution, in standard deviations above the mean.
constexpr double kSigmasOf90 = 1.2816, kSigmasOf99 = 2.3263;

// Returns the standard error of the mean call, divided by the median call.
double error_of(const RunSpeed::Stage& s) {
  if (s.calls < 1 || s.p50 <= 0) return 0;
  const double sigma = std::max((s.p90 - s.p50) / kSigmasOf90, (s.p99 - s.p50) / kSigmasOf99);
  return sigma / std::sqrt(s.calls) / s.p50;
}

const RunSpeed::Stage* find(const RunSpeed& run, const std::string& name) {
  const auto at = std::find_if(run.stages.begin(), run.stages.end(),
                               [&](const RunSpeed::Stage& s) { return s.name == name; });
  return at == run.stages.end() ? nullptr : &*at;
}

}  // namespace

bool Change::is_real() const { return before > 0 && std::abs(share()) > noise; }

Comparison compare_runs(const RunSpeed& before, const RunSpeed& after) {
  Comparison out;
  const double taken = std::max(before.taken_by_others, after.taken_by_others);
  const double least = std::max(kAtRest, taken);
  out.whole = {"", before.files_per_second, after.files_per_second, 0, 0, least};
  for (const RunSpeed::Stage& b : before.stages) {
    const RunSpeed::Stage* a = find(after, b.name);
    if (a == nullptr) {
      out.only_before.push_back(b.name);
      continue;
    }
    // Equals std::hypot(), of which glibc 2.35 and later have a different symbol version.
    const double error = std::abs(std::complex(error_of(b), error_of(*a)));
    const double noise = std::max(least, kErrors * error);
    out.stages.push_back({b.name, b.busy, a->busy, b.cpu, a->cpu, noise});
  }
  for (const RunSpeed::Stage& a : after.stages)
    if (find(before, a.name) == nullptr) out.only_after.push_back(a.name);
  std::stable_sort(out.stages.begin(), out.stages.end(), [](const Change& a, const Change& b) {
    return a.after - a.before > b.after - b.before;
  });
  return out;
}

}  // namespace melflow
