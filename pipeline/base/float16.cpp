#include "pipeline/base/float16.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace melflow {
namespace {

void convert_each(std::span<const float> values, std::uint16_t* out) {
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = to_float16(values[i]);
}

#if defined(__x86_64__)
// The instruction keeps bits of a NaN that convert_each() does not: groups with one go one by one.
__attribute__((target("avx,f16c"))) void convert_eights(std::span<const float> values,
                                                        std::uint16_t* out) {
  constexpr std::size_t kLanes = 8;
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const __m256 v = _mm256_loadu_ps(values.data() + i);
    if (_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)) != 0) {
      convert_each(values.subspan(i, kLanes), out + i);
      continue;
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  convert_each(values.subspan(i), out + i);
}

// Asks the processor itself: Clang 14's own check does not know the name of this feature.
bool cpu_has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

void to_float16(std::span<const float> values, std::uint16_t* out) {
#if defined(__x86_64__)
  static const bool has_f16c = __builtin_cpu_supports("avx") && cpu_has_f16c();
  if (has_f16c) return convert_eights(values, out);
#endif
  convert_each(values, out);
}

}  // namespace melflow
