// nvtx_timeline.cpp - implements timeline.h by NVTX, a header that looks for an attached tool at
// its first call (https://nvidia.github.io/NVTX).

#include <nvtx3/nvToolsExt.h>

#include <cmath>
#include <cstddef>

#include "cuda/timeline.h"

namespace melflow::cuda {
namespace {

// 0xAARRGGBB. Hues a golden angle apart: neighbours differ, and no hue repeats.
std::uint32_t color_of(std::size_t kind) {
  constexpr double golden_angle = 137.50776405;  // [degrees]
  constexpr double saturation = 0.65, value = 0.9;
  const double hue = std::fmod(static_cast<double>(kind) * golden_angle, 360.0);
  std::uint32_t color = 0xFF;
  for (const double n : {5.0, 3.0, 1.0}) {  // red, green, blue
    const double k = std::fmod(n + hue / 60, 6.0);
    const double ramp = std::fmax(0.0, std::fmin(1.0, std::fmin(k, 4 - k)));
    color =
        color << 8 | static_cast<std::uint32_t>(std::lround(255 * value * (1 - saturation * ramp)));
  }
  return color;
}

class NvtxTimeline final : public Timeline {
 public:
  NvtxTimeline(nvtxDomainHandle_t domain, const std::vector<std::string>& kinds) : domain_(domain) {
    for (const std::string& kind : kinds) {
      nvtxEventAttributes_t event{};
      event.version = NVTX_VERSION;
      event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
      event.colorType = NVTX_COLOR_ARGB;
      event.color = color_of(events_.size());
      event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
      event.message.registered = nvtxDomainRegisterStringA(domain_, kind.c_str());
      events_.push_back(event);
    }
  }
  NvtxTimeline(const NvtxTimeline&) = delete;
  NvtxTimeline& operator=(const NvtxTimeline&) = delete;
  ~NvtxTimeline() override { nvtxDomainDestroy(domain_); }

  void push(int kind) noexcept override { nvtxDomainRangePushEx(domain_, &event(kind)); }
  void pop() noexcept override { nvtxDomainRangePop(domain_); }
  std::uint64_t start(int kind) noexcept override {
    return nvtxDomainRangeStartEx(domain_, &event(kind));
  }
  void end(std::uint64_t range) noexcept override { nvtxDomainRangeEnd(domain_, range); }

 private:
  [[nodiscard]] const nvtxEventAttributes_t& event(int kind) const {
    return events_[static_cast<std::size_t>(kind)];
  }

  nvtxDomainHandle_t domain_;
  std::vector<nvtxEventAttributes_t> events_;
};

}  // namespace

std::unique_ptr<Timeline> make_timeline(const std::vector<std::string>& kinds) {
  // NVTX returns no domain if no profiler is attached.
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("melflow");
  if (domain == nullptr) return nullptr;
  return std::make_unique<NvtxTimeline>(domain, kinds);
}

}  // namespace melflow::cuda
