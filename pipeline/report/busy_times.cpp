#include "pipeline/report/busy_times.h"

#include <algorithm>

namespace melflow {

void BusyTimes::add(std::size_t node, double began, double ended) {
  if (!(ended > began)) return;
  while (ended >= static_cast<double>(kMost) * step_) join_pairs();
  if (nodes_.size() <= node) nodes_.resize(node + 1);
  std::vector<double>& steps = nodes_[node];
  const auto first = static_cast<std::size_t>(began / step_);
  const auto last = static_cast<std::size_t>(ended / step_);
  if (steps.size() <= last) steps.resize(last + 1, 0.0);
  for (std::size_t i = first; i <= last; ++i)
    steps[i] += std::max(0.0, std::min(ended, static_cast<double>(i + 1) * step_) -
                                  std::max(began, static_cast<double>(i) * step_));
}

void BusyTimes::widen(double step) {
  while (step_ < 0.75 * step) join_pairs();
}

void BusyTimes::join_pairs() {
  for (std::vector<double>& steps : nodes_) {
    const std::size_t joined = (steps.size() + 1) / 2;
    for (std::size_t i = 0; i < joined; ++i)
      steps[i] = steps[2 * i] + (2 * i + 1 < steps.size() ? steps[2 * i + 1] : 0);
    steps.resize(joined);
  }
  step_ *= 2;
}

}  // namespace melflow
