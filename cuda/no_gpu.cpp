// no_gpu.cpp - the implementation for builds without CUDA: there are no devices.

#include "cuda/error.h"
#include "cuda/machine_gpus.h"

namespace melflow::cuda {
namespace {

class NoGpus final : public Gpus {
 public:
  [[nodiscard]] bool may_have_some() const override { return false; }
  [[nodiscard]] std::map<int, std::string> unusable() const override { return {}; }
  [[nodiscard]] std::vector<GpuInfo> list() const override { return {}; }
  [[nodiscard]] std::string why_none() const override {
    return "this program was built without CUDA; build it where nvcc is found (cmake --preset "
           "cuda)";
  }
  [[nodiscard]] std::string why_no_cufft() const override { return why_none(); }
  [[nodiscard]] std::unique_ptr<Gpu> open(int) override { throw CudaError(why_none()); }
};

}  // namespace

std::unique_ptr<Gpus> look_for_gpus() { return std::make_unique<NoGpus>(); }

}  // namespace melflow::cuda
