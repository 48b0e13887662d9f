// PTX of Hopper GPUs (compute capability 9.0, architecture 90a): bulk copies that complete on barriers in shared
// memory, and matrix products of a warpgroup, four consecutive warps. Kernels call these and hold no assembly
// themselves.
#pragma once

#include "cuda/ptx.hpp"

#include <cstdint>

namespace kith::ptx {

// --- barriers in shared memory: a phase ends when `count` threads have arrived and all announced bytes have come

__device__ inline void barrier_init(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}
// Makes initialised barriers visible to the copy engine.
__device__ inline void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ inline void barrier_arrive_and_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Waits until the phase of this parity has ended.
__device__ inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
  }
}

// One contiguous piece, a multiple of 16 bytes, to shared memory; the barrier is told of its bytes.
__device__ inline void copy_bulk(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

// --- numbered barriers of a block: `threads` is how many arrive and wait together

__device__ inline void turn_wait(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void turn_give(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- registers of a warpgroup's threads, which all of its warps give up or take on together

template <int kCount>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// --- products of a warpgroup

// Rows of 128 bytes in shared memory, 16-byte units swizzled by the row's number modulo 8; 1,024-byte aligned.
__device__ inline uint64_t operand_descriptor(const void* shared) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;  // from one group of eight rows to the next
  constexpr uint64_t kLeading = uint64_t{1} << 16;            // not used with this swizzle
  return kSwizzle128 | kEightRows | kLeading | ((shared_address(shared) & 0x3FFFF) >> 4);
}
// The same rows, `bytes` further on.
__device__ inline uint64_t descriptor_after(uint64_t descriptor, int bytes) {
  return descriptor + static_cast<uint64_t>(bytes >> 4);
}

__device__ inline void warpgroup_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ inline void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// What threads wrote to shared memory is seen by matrix products of warpgroups that they start after this and a barrier.
__device__ inline void shared_writes_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Keeps reads of sums behind the wait before it, which does not name them.
template <int kCount>
__device__ inline void keep_sums(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i]));
}

// Sums as operands of an instruction: their names in its text, and what is behind them. Each list goes on where a shorter
// one ends.
// clang-format off
#define KITH_NAMES_4 "%0,%1,%2,%3"
#define KITH_NAMES_8 KITH_NAMES_4 ",%4,%5,%6,%7"
#define KITH_NAMES_12 KITH_NAMES_8 ",%8,%9,%10,%11"
#define KITH_NAMES_16 KITH_NAMES_12 ",%12,%13,%14,%15"
#define KITH_NAMES_24 KITH_NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define KITH_NAMES_32 KITH_NAMES_24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define KITH_NAMES_64 KITH_NAMES_32 \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define KITH_FOUR(kind, i) kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3])
#define KITH_EIGHT(kind, i) KITH_FOUR(kind, i), KITH_FOUR(kind, i + 4)
#define KITH_SUMS_4(kind) KITH_FOUR(kind, 0)
#define KITH_SUMS_8(kind) KITH_EIGHT(kind, 0)
#define KITH_SUMS_12(kind) KITH_EIGHT(kind, 0), KITH_FOUR(kind, 8)
#define KITH_SUMS_16(kind) KITH_EIGHT(kind, 0), KITH_EIGHT(kind, 8)
#define KITH_SUMS_24(kind) KITH_SUMS_16(kind), KITH_EIGHT(kind, 16)
#define KITH_SUMS_32(kind) KITH_SUMS_24(kind), KITH_EIGHT(kind, 24)
#define KITH_SUMS_64(kind) KITH_SUMS_32(kind), \
  KITH_EIGHT(kind, 32), KITH_EIGHT(kind, 40), KITH_EIGHT(kind, 48), KITH_EIGHT(kind, 56)

// d (64 x 128) = a (64 x 32 bytes) b (128 x 32 bytes, transposed), added to d where `accumulate`. Element 4 j + i of a
// thread is at row lane / 4 + 8 (i / 2) of its warp's 16 and at column 8 j + 2 (lane % 4) + i % 2.
#define KITH_MULTIPLY_WARPGROUP(Sum, kind, name, flags)                                                  \
  __device__ inline void multiply_warpgroup(Sum (&d)[64], uint64_t a, uint64_t b, bool accumulate) {     \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128" name   \
                 " {" KITH_NAMES_64 "}, %64, %65, p" flags ";\n}\n"                                      \
                 : KITH_SUMS_64(kind)                                                                    \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                   \
  }
KITH_MULTIPLY_WARPGROUP(float, "+f", "k16.f32.f16.f16", ", 1, 1, 0, 0")
KITH_MULTIPLY_WARPGROUP(int32_t, "+r", "k32.s32.s8.s8", "")

// d (64 x N) += a (64 x 16 halves, in registers) b (N x 16 halves, transposed, in shared memory). Of a a thread has what
// it has in multiply_add: of its warp's 16 rows, lane / 4 and the one 8 further on, in turn, at columns 2 (lane % 4) and
// those 8 further on. Of d it has what multiply_warpgroup says.
#define KITH_MULTIPLY_ROWS(columns, sums, operands)                                                             \
  __device__ inline void multiply_rows(float (&d)[sums], const uint32_t (&a)[4], uint64_t b) {                  \
    asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #columns           \
                 "k16.f32.f16.f16 {" KITH_NAMES_##sums "}, " operands ", p, 1, 1, 0;\n}\n"                      \
                 : KITH_SUMS_##sums("+f")                                                                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                         \
  }
KITH_MULTIPLY_ROWS(8, 4, "{%4,%5,%6,%7}, %8")
KITH_MULTIPLY_ROWS(16, 8, "{%8,%9,%10,%11}, %12")
KITH_MULTIPLY_ROWS(24, 12, "{%12,%13,%14,%15}, %16")
KITH_MULTIPLY_ROWS(32, 16, "{%16,%17,%18,%19}, %20")
KITH_MULTIPLY_ROWS(48, 24, "{%24,%25,%26,%27}, %28")
KITH_MULTIPLY_ROWS(64, 32, "{%32,%33,%34,%35}, %36")
KITH_MULTIPLY_ROWS(128, 64, "{%64,%65,%66,%67}, %68")
// clang-format on

}  // namespace kith::ptx
