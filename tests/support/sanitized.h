// Whether a sanitizer is active, with which everything takes five to forty times as long.
#pragma once

namespace melflow::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How many of `count` random cases a test draws: all, or with a sanitizer a fifth, since the run
/// without one draws them all.
constexpr unsigned drawn(unsigned count) { return kSanitized ? (count + 4) / 5 : count; }

}  // namespace melflow::test
