// Macros for the cores of kernels: device code under nvcc, plain functions under g++, where tests run them with real
// threads instead of a block's.
#pragma once

#if defined(__CUDACC__)
#define KITH_DEVICE __device__
#define KITH_DEVICE_INLINE __device__ __forceinline__  // for code on register arrays, which a call would put in memory
#define KITH_UNROLL _Pragma("unroll")
#else
#define KITH_DEVICE
#define KITH_DEVICE_INLINE inline
#define KITH_UNROLL
#endif
