// For the cores of kernels: device code under nvcc, plain functions under g++, where the tests run them with real
// threads in the place of a block's.
#pragma once

#if defined(__CUDACC__)
#define KITH_DEVICE __device__
#define KITH_UNROLL _Pragma("unroll")
#else
#define KITH_DEVICE
#define KITH_UNROLL
#endif
