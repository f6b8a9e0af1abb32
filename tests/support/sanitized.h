// Whether a sanitizer watches: everything then takes five to forty times as long.
#pragma once

namespace melflow::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How many of `count` random cases a test draws: all, or a fifth where a sanitizer watches, since
/// the run without one has drawn them all.
constexpr unsigned drawn(unsigned count) { return kSanitized ? (count + 4) / 5 : count; }

}  // namespace melflow::test
