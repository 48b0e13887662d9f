// PTX that every GPU from compute capability 8.0 on has, or where it says so 9.0: asynchronous copies, matrix loads and
// matrix products of a warp. Kernels call these and hold no assembly themselves.
#pragma once

#include <cstdint>

// Code for older GPUs can be built, where nothing calls these.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define KITH_PTX_80(...) asm volatile(__VA_ARGS__)
#else
#define KITH_PTX_80(...) __trap()
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define KITH_PTX_90(...) asm volatile(__VA_ARGS__)
#else
#define KITH_PTX_90(...) __trap()
#endif

namespace kith::ptx {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory, past the first-level cache.
__device__ inline void copy_async_16(uint32_t shared, const void* global) {
  KITH_PTX_80("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
__device__ inline void copy_async_16(uint32_t shared, const void* global, bool there) {
  KITH_PTX_80("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(there ? 16 : 0)
              : "memory");
}
// The same of 16 or 8 bytes through the first-level cache; zeros where there is nothing to copy.
__device__ inline void copy_async_cached_16(uint32_t shared, const void* global, bool there) {
  KITH_PTX_80("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(there ? 16 : 0)
              : "memory");
}
__device__ inline void copy_async_8(uint32_t shared, const void* global, bool there) {
  KITH_PTX_80("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared), "l"(global), "r"(there ? 8 : 0) : "memory");
}
// Four bytes, from anywhere; zeros where there is nothing to copy.
__device__ inline void copy_async_4(uint32_t shared, const void* global, bool there) {
  KITH_PTX_80("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(there ? 4 : 0) : "memory");
}
__device__ inline void copy_async_commit() { KITH_PTX_80("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ inline void copy_async_wait() {
  KITH_PTX_80("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// For kernels that a chained launch starts (cuda/launch.hpp); all threads call it. Returns when the kernel
// before has ended and what it wrote is there; from then on the next one's blocks may start. GPUs before 9.0 do not
// start a kernel earlier.
__device__ inline void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The compiler does not compute such a value once more instead of keeping it.
__device__ inline void keep_in_registers(double& value) { asm volatile("" : "+d"(value)); }

// Asks for the 128 bytes around an address to be brought to the second-level cache.
__device__ inline void prefetch(const void* global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

// The compiler takes such a value as it is, and does not put together what it was made from in another way.
__device__ inline void keep_whole(uint32_t& value) { asm volatile("" : "+r"(value)); }

// Reads eight bytes of shared memory that no thread writes any more.
__device__ inline uint2 load_constant_8(uint32_t shared) {
  uint2 value;
  asm("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(shared));
  return value;
}
__device__ inline uint32_t load_constant_4(uint32_t shared) {
  uint32_t value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared));
  return value;
}

// 16 bytes to shared memory.
__device__ inline void store_16(uint32_t shared, uint2 low, uint2 high) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(low.x), "r"(low.y), "r"(high.x), "r"(high.y)
               : "memory");
}

// Four 8 x 16-byte matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ inline void load_matrices(uint32_t (&fragment)[4], uint32_t shared) {
  KITH_PTX_80("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
              : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
              : "r"(shared)
              : "memory");
}

// d (16 x 8) += a (16 x 32 bytes) b (8 x 32 bytes, transposed): halves with f32 sums, signed bytes with s32 sums.
__device__ inline void multiply_add(float* d, const uint32_t (&a)[4], const uint32_t* b) {
  KITH_PTX_80("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
              : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply_add(int32_t* d, const uint32_t (&a)[4], const uint32_t* b) {
  KITH_PTX_80("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
              : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// d (16 x 8) += a (16 x 8) b (8 x 8, transposed), doubles, from compute capability 9.0 on. Lane 4 g + t holds rows g
// and g + 8 of a, in turn, and row g of b, at columns t and t + 4; of d rows g and g + 8, columns 2 t and 2 t + 1. Any
// order of the columns will do that a and b share.
__device__ inline void multiply_add(double (&d)[4], const double (&a)[4], const double (&b)[2]) {
  KITH_PTX_90("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
              : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

// 1 / x to some 20 bits, for normal numbers whose inverse is normal too.
__device__ inline double rough_inverse(double x) {
  double inverse;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(x));
  return inverse;
}

}  // namespace kith::ptx
