// Functions that are compiled for several instruction sets.
#pragma once

/// Before a function with loops over values: it is also compiled for AVX2, without fused
/// multiplication, so that the values are the same; the program loader chooses a version. Not with
/// sanitizers, which take part in loading themselves.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MELFLOW_FOR_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define MELFLOW_FOR_WIDE_VECTORS
#endif
