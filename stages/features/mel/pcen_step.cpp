#include "stages/features/mel/pcen_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace melflow {
namespace {

class PcenStep final : public FinishStep {
 public:
  explicit PcenStep(const PcenOptions& options)
      : o_(options), b_(options.b.value()), log_eps_(std::log(options.eps)) {}
  [[nodiscard]] bool needs_utterance() const override { return true; }

  void run(const UtteranceRows& in, UtteranceRows& out) const override {
    const auto columns = static_cast<std::size_t>(in.values());
    std::vector<double> smooth(columns, 1.0);
    std::vector<float> room, room_out;
    for (std::int64_t first = 0; first < in.rows(); first += in.piece()) {
      const std::int64_t n = std::min(in.piece(), in.rows() - first);
      const float* from = in.get(first, n, room);
      float* const to = out.place(first, n, room_out);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n) * columns; ++i) {
        double& m = smooth[i % columns];
        m = (1.0 - b_) * m + b_ * from[i];
        to[i] = static_cast<float>(value(from[i], m));
      }
      out.put(first, n, to);
    }
  }

 private:
  // By logarithms of 1 + m / eps and 1 + x s / bias, as in librosa, to keep small values accurate.
  [[nodiscard]] double value(double x, double m) const {
    const double scaled = x * std::exp(-o_.gain * (log_eps_ + std::log1p(m / o_.eps)));
    if (o_.power == 0.0) return std::log1p(scaled);
    if (o_.bias == 0.0) return std::pow(scaled, o_.power);
    return std::pow(o_.bias, o_.power) * std::expm1(o_.power * std::log1p(scaled / o_.bias));
  }

  PcenOptions o_;
  double b_;
  double log_eps_;
};

}  // namespace

double pcen_coefficient(double time_constant, double frames_per_second) {
  const double frames = time_constant * frames_per_second;
  return (std::sqrt(1.0 + 4.0 * frames * frames) - 1.0) / (2.0 * frames * frames);
}

std::shared_ptr<const FinishStep> pcen_step(const PcenOptions& options) {
  return std::make_shared<PcenStep>(options);
}

}  // namespace melflow
