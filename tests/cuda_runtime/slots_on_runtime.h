// SlotPool on the recording runtime, and batches with known rows.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/error.h"
#include "cuda/machine_gpus.h"
#include "cuda/slot_pool.h"
#include "tests/emulated/recording_runtime.h"

namespace melflow::test {

/// The devices of the recording runtime, with a clock that the test sets.
class ClockedGpus final : public cuda::Gpus {
 public:
  [[nodiscard]] bool may_have_some() const override { return true; }
  [[nodiscard]] std::map<int, std::string> unusable() const override { return gpus_->unusable(); }
  [[nodiscard]] std::vector<cuda::GpuInfo> list() const override { return gpus_->list(); }
  [[nodiscard]] std::string why_none() const override { return gpus_->why_none(); }
  [[nodiscard]] std::string why_no_cufft() const override { return ""; }
  [[nodiscard]] std::unique_ptr<cuda::Gpu> open(int index) override { return gpus_->open(index); }
  [[nodiscard]] double now() const override { return time; }
  double time = 0;  ///< [s]

 private:
  std::unique_ptr<cuda::Gpus> gpus_ = cuda::look_for_gpus();
};

constexpr std::uint32_t kFrames = 100;
constexpr std::size_t kColumns = 4;

/// Rows that a test can recognise: frames are one sample long, so that all bins equal its square,
/// and column c sums c + 1 of them. Uses two kernels, so that memory between them is needed.
inline std::shared_ptr<const cuda::FrontEnd> front_end_of_columns() {
  auto out = std::make_shared<cuda::FrontEnd>();
  cuda::Settings& s = out->settings;
  s.n_fft = 256;
  s.n_bins = 129;
  s.frame_length = 1;
  s.columns = s.n_levels = kColumns;
  out->window = {1};
  out->condition = cuda::ConditionSettings{};
  out->condition->frame_length = out->condition->end = 1;
  out->condition->stride = 2;
  for (int c = 0; c < s.columns; ++c) {
    out->bands.push_back({10 * c, 1, c});
    out->weights.push_back(static_cast<float>(c + 1));
  }
  return out;
}

/// Compares up to rounding.
inline bool is_row_of(const float* row, std::int16_t sample) {
  for (std::size_t c = 0; c < kColumns; ++c) {
    const float exact =
        static_cast<float>(sample) * static_cast<float>(sample) * static_cast<float>(c + 1);
    if (!(std::abs(row[c] - exact) <= 1e-6F * exact)) return false;
  }
  return true;
}

inline cuda::SlotSettings slot_settings(std::vector<int> devices, int slots) {
  cuda::SlotSettings out;
  out.devices = std::move(devices);
  out.slots = slots;
  out.memory = std::make_shared<cuda::DeviceBudget>(std::size_t{1} << 30, std::size_t{1} << 30);
  return out;
}

/// Fills a slot so that frame t begins with the sample `first` + t.
inline void fill(cuda::Slot& slot, std::int16_t first, std::uint32_t frames) {
  auto* samples = reinterpret_cast<std::int16_t*>(slot.samples());
  for (std::uint32_t t = 0; t < frames; ++t) {
    samples[8 * t] = static_cast<std::int16_t>(first + static_cast<int>(t));
    slot.offsets()[t] = 8 * t;
  }
}

inline void submit(cuda::Slot& slot, std::int16_t first, std::uint32_t frames = kFrames) {
  fill(slot, first, frames);
  slot.submit(cuda::SampleType::int16, frames * 8 * sizeof(std::int16_t), frames, 1);
}

inline bool has_rows_of(const cuda::Slot& slot, std::int16_t first,
                        std::uint32_t frames = kFrames) {
  const auto* rows = reinterpret_cast<const float*>(slot.rows());
  for (std::uint32_t t = 0; t < frames; ++t)
    if (!is_row_of(rows + t * kColumns, static_cast<std::int16_t>(first + static_cast<int>(t))))
      return false;
  return true;
}

constexpr std::size_t kSampleBytes = kFrames * 8 * sizeof(std::int16_t);

/// Returns the message of the CudaError that a call throws, "" for none.
template <class F>
std::string cuda_error_of(F&& f) {
  try {
    f();
  } catch (const cuda::CudaError& e) {
    return e.what();
  }
  return "";
}

}  // namespace melflow::test
