// host_device.h - marks for code that compiles for the host and, with nvcc, for the device.
//
// The phases of the kernels (fused_phases.h, any_size_phases.h) are such code, so that tests on a
// processor run the same code as a device.

#pragma once

#if defined(__CUDACC__)
#define MELFLOW_HD __host__ __device__ __forceinline__
#else
#define MELFLOW_HD inline
#endif

// Register arrays need unrolled loops; loops of few rounds are short without that.
#if defined(__CUDA_ARCH__)
#define MELFLOW_UNROLL _Pragma("unroll")
#define MELFLOW_KEEP_LOOP _Pragma("unroll 1")
#else
#define MELFLOW_UNROLL
#define MELFLOW_KEEP_LOOP
#endif
