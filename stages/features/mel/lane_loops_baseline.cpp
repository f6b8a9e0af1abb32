// Four frames at once, with instructions that every processor of the architecture has (SSE2, Neon);
// and the list of loops that this processor can run.
#include "stages/features/mel/lane_loops_body.h"
#include "stages/features/mel/own_fft_body.h"

namespace melflow::lanes {

namespace {
#if defined(__aarch64__)
constexpr const char* set = "neon";
#else
constexpr const char* set = "baseline";
#endif
constexpr Loops loops{set,       width, load_int16,     load_float,
                      transform, rows,  own_fft<float>, own_fft<double>};
}  // namespace

#if defined(__x86_64__)
extern const Loops avx2_loops;
extern const Loops avx512_loops;

const Available& available() {
  static const Available found = [] {
    Available a{};
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      a.loops[a.count++] = &avx512_loops;
    if (avx2) a.loops[a.count++] = &avx2_loops;
    a.loops[a.count++] = &loops;
    return a;
  }();
  return found;
}
#else
const Available& available() {
  static const Available found{{&loops}, 1};
  return found;
}
#endif

}  // namespace melflow::lanes
