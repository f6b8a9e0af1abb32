// gpus.cpp - the devices: those of the build, or replacements in a test.

#include "cuda/gpu.h"
#include "cuda/machine_gpus.h"

namespace melflow::cuda {
namespace {

Gpus* g_replacement = nullptr;

Gpus& machine_gpus() {
  // Never destroyed: a thread may hang in a driver when the program ends.
  static Gpus* const all = look_for_gpus().release();
  return *all;
}

}  // namespace

Gpus& gpus() { return g_replacement != nullptr ? *g_replacement : machine_gpus(); }

ScopedGpus::ScopedGpus(Gpus& replacement) : before_(g_replacement) { g_replacement = &replacement; }
ScopedGpus::~ScopedGpus() { g_replacement = before_; }

}  // namespace melflow::cuda
