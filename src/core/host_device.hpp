// For code that runs on the CPU and inside CUDA kernels alike.
#pragma once

#if defined(__CUDACC__)
#define KITH_HOST_DEVICE __host__ __device__
#else
#define KITH_HOST_DEVICE
#endif
