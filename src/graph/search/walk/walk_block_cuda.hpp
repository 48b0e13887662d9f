// The block that walks for one query (walk_cuda.cu): its threads, its shared memory, and the query's code, with which
// it compares other codes.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/warp.hpp"
#include "graph/search/walk/code_query_cuda.hpp"
#include "graph/search/walk/compare_codes_cuda.hpp"
#include "graph/search/walk/walk_parts_cuda.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// State shared by the threads. Pairs alternate: one is used in a round while the other is reset for the next.
struct WalkCounts {
  int fresh[2][2];  // number of entries for the beam, and for the kept places
  int first[2];     // the first position in the beam that a fresh entry has claimed
  int twice[2];     // bits: the lists in which a duplicate was found
  int doubles;      // duplicates in a list
  int opened;
  int last;
  uint32_t norm;                      // squared, of the query
  uint32_t bound;                     // on the keys of the nearest cells
  uint64_t near;                      // lists of places before this entry are prefetched
  uint32_t places[kWalkLargestStep];  // opened in a step of several rounds, or whose lists are compared
  uint32_t slots[walk_lists_ahead(kWalkMostWarps)];  // for these lists
};

// kPacked: the codes of places and of the tail are packed.
template <int kWarps, bool kPacked>
class WalkBlock {
 public:
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kRound = walk_round(kWarps);
  static constexpr int kStaged = walk_staged(kWarps);

 protected:
  __device__ WalkBlock(const WalkTaskCuda& task, std::byte* memory, WalkCounts& counts)
      : task_(task), memory_(memory), counts_(counts), chunks_(static_cast<int>(task.stride / 16)) {}

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % 32; }
  __device__ static int warp() { return thread() / 32; }
  __device__ static void sync() {
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
  template <typename T>
  __device__ T* at(int64_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  // Writes the query's code, by the first warp. False if a value is not finite. loaded() follows after a barrier.
  KITH_DEVICE_INLINE bool load(const DeviceRowsView& queries, int64_t query) {
    if (!kPacked && task_.plain) {
      if (warp() != 0) return true;
      auto* const words = at<uint32_t>(task_.layout.query);
      const uint32_t norm = visit_plain_code(task_, queries, query, [&](int i, uint32_t word) { words[i] = word; });
      if (lane() == 0) counts_.norm = norm;
      return true;
    }
    const CodedQuery coded(task_, queries, query);
    if (!coded.finite()) return false;
    bytes_ = coded.bytes();
    norm_ = coded.visit([&](int col, int level) {
      if (warp() != 0) return;
      if (bytes_) {
        at<int8_t>(task_.layout.query)[col] = static_cast<int8_t>(level);
      } else {
        at<int16_t>(task_.layout.query)[col] = static_cast<int16_t>(level);
      }
    });
    return true;
  }
  KITH_DEVICE_INLINE void loaded() {
    if (!kPacked && task_.plain) norm_ = counts_.norm;
    if (task_.kind == WalkKind::products) norm_ = 0;
  }

  // Calls use(true, number, key) for `count` codes, like compare_codes(). Codes of centres are bytes; those of places
  // and of the tail may be packed.
  template <int kAhead = kCodesAhead, typename NumberOf, typename Use>
  KITH_DEVICE_INLINE void compare(const int8_t* codes, int count, const NumberOf& number_of, const Use& use) const {
    const CodeQueryCuda query{at<uint4>(task_.layout.query), bytes_, task_.kind == WalkKind::products, norm_};
    const auto told = [&](bool there, int, uint32_t number, uint32_t key) { use(there, number, key); };
    if constexpr (kPacked) {
      if (codes != task_.centres) {
        return compare_codes<kAhead, true>(query, {codes, chunks_ / 2}, count, number_of, told);
      }
    }
    compare_codes<kAhead>(query, {codes, chunks_}, count, number_of, told);
  }

  const WalkTaskCuda& task_;
  std::byte* const memory_;
  WalkCounts& counts_;
  const int chunks_;
  int turn_ = 0;       // of the counts
  bool bytes_ = true;  // the query's values are bytes; else words
  uint32_t norm_ = 0;  // squared, of the query
};

}  // namespace kith
