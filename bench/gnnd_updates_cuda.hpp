// Rounds of GNND with the update strategies of its paper ("Large-scale approximate k-NN graph construction on GPU",
// section 4.3 and Figure 5), for comparison: samples meet as in Kith, distances are f32 sums from shared memory, and
// offers go straight into the lists under spinlocks. What a round leaves depends on who came first.
//
//   all_pairs       GNND-r1: all distances of a sample, sorted, are merged with its list under one lock
//   one_lock        GNND-r2: the nearest alone (Algorithm 2), one lock for each list
//   segment_locks   GNND: the same, into segments of 32 by the neighbour's number, a lock for each; after a round the
//                   segments are merged to one list
//
// Lists of 64, up to 32 samples of each kind; include from a .cu file.
#pragma once

#include "cuda_timing.hpp"

#include "cuda/device_core.hpp"
#include "graph/build/nn_descent/join_cuda.hpp"
#include "kernels/select/device_warp_cuda.hpp"

#include <cstdint>

namespace gnnd {

using namespace kith;

enum class Update { all_pairs, one_lock, segment_locks };
inline const char* name_of(Update update) {
  return update == Update::all_pairs ? "GNND-r1" : update == Update::one_lock ? "GNND-r2" : "GNND";
}

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kLength = 64;
constexpr int kSegments = 2;
constexpr int kSegment = kLength / kSegments;
constexpr int kMostSamples = 32;
constexpr int kRows = 2 * kMostSamples;                          // NEW
constexpr int kColumns = 4 * kMostSamples;                       // all
constexpr int kStage = 32;                                       // columns of the vectors at a time
constexpr int kMostOffers = 128;

struct Task {
  const float* x = nullptr;
  int64_t cols = 0;
  DeviceListsRef lists;
  DeviceSamples samples;
  int* locks = nullptr;  // kSegments for each list, 0 before and after
  Update update = Update::segment_locks;
};

// One order of the sum everywhere, so that a pair has one distance.
__device__ inline float next_sum(float sum, float a, float b) { return sum + (a - b) * (a - b); }

struct Memory {
  float values[kStage][kColumns + 1];
  float distances[kRows][kColumns + 1];
  uint64_t offers[kWarps][kMostOffers];
  uint64_t list[kWarps][kLength];
  uint32_t ids[kColumns];
};

// A warp sorts `room` entries, a power of two, without flags, padding last.
__device__ inline void sort_entries(uint64_t* entries, int room) {
  for (int size = 2; size <= room; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncwarp();
      for (int i = lane_index(); i < room / 2; i += 32) {
        const int low = i / apart * 2 * apart + i % apart;
        const uint64_t a = entries[low];
        const uint64_t b = entries[low + apart];
        if ((without_flag(a) > without_flag(b)) == ((low & size) == 0)) {
          entries[low] = b;
          entries[low + apart] = a;
        }
      }
    }
  }
  __syncwarp();
}

__device__ inline int rank_of(const uint64_t* list, int length, uint64_t bare) {
  return rank_in_list(list, length, bare, [](uint64_t entry) { return without_flag(entry); });
}

// A warp merges sorted offers, nobody twice among them, into a list or a segment, which it locks meanwhile.
__device__ inline void merge_locked(uint64_t* stored, int length, uint64_t* offers, int count, uint64_t* list,
                                    int* lock) {
  if (lane_index() == 0) {
    while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
    __threadfence();
  }
  __syncwarp();
  for (int i = lane_index(); i < length; i += 32) list[i] = __ldcg(stored + i);
  __syncwarp();
  int kept = 0;
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane_index();
    const uint64_t offer = i < count ? offers[i] : kPadding;
    const int rank = i < count ? rank_of(list, length, offer) : length;
    const bool stays = rank < length && without_flag(list[rank]) != offer;
    const unsigned lanes = __ballot_sync(kAllLanes, stays);
    __syncwarp();
    if (stays) offers[kept + __popc(lanes & ((1u << lane_index()) - 1))] = offer;
    kept += __popc(lanes);
    __syncwarp();
  }
  for (int i = lane_index(); i < kept; i += 32) {
    const int to = i + rank_of(list, length, offers[i]);
    if (to < length) __stcg(stored + to, offers[i]);
  }
  for (int i = lane_index(); i < length; i += 32) {
    const int to = i + rank_of(offers, kept, without_flag(list[i]));
    if (to < length && to != i) __stcg(stored + to, list[i]);
  }
  __threadfence();
  __syncwarp();
  if (lane_index() == 0) atomicExch(lock, 0);
  __syncwarp();
}

// The nearest of `kept` entries that other(i) names at distance(i), i < count; all lanes get it.
template <typename Distance>
__device__ inline uint64_t nearest_of(const Distance& neighbor, int first, int end) {
  uint64_t best = kPadding;
  for (int i = first + lane_index(); i < end; i += 32) best = min(best, neighbor(i));
  for (int apart = 16; apart > 0; apart /= 2) best = min(best, __shfl_xor_sync(kAllLanes, best, apart));
  return best;
}

__device__ inline void offer_one(const Task& task, Memory& memory, uint32_t row, uint64_t neighbor) {
  if (neighbor == kPadding) return;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool segments = task.update == Update::segment_locks;
  const int segment = segments ? static_cast<int>(row_of(neighbor) % kSegments) : 0;
  const int length = segments ? kSegment : kLength;
  uint64_t* const list = task.lists.entries + static_cast<int64_t>(row) * kLength + segment * kSegment;
  if (neighbor >= without_flag(__ldcg(list + length - 1))) return;
  if (lane_index() == 0) memory.offers[warp][0] = neighbor;
  __syncwarp();
  merge_locked(list, length, memory.offers[warp], 1, memory.list[warp], task.locks + row * kSegments + segment);
}

__device__ inline void compute_distances(const Task& task, Memory& memory, const JoinCounts& counts) {
  constexpr int kSide = 16;
  constexpr int kMine = (kColumns + kSide - 1) / kSide;
  const int tx = static_cast<int>(threadIdx.x) % kSide;
  const int ty = static_cast<int>(threadIdx.x) / kSide;
  float sums[kRows / kSide][kMine] = {};
  for (int64_t first = 0; first < task.cols; first += kStage) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < counts.all() * kStage; i += kThreads) {
      const uint32_t id = memory.ids[i / kStage];
      const int64_t column = first + i % kStage;
      memory.values[i % kStage][i / kStage] =
          column < task.cols ? task.x[static_cast<int64_t>(id) * task.cols + column] : 0.0f;
    }
    __syncthreads();
    for (int c = 0; c < kStage; ++c) {
      float a[kRows / kSide];
      KITH_UNROLL
      for (int i = 0; i < kRows / kSide; ++i) a[i] = memory.values[c][ty + kSide * i];
      KITH_UNROLL
      for (int j = 0; j < kMine; ++j) {
        const float b = tx + kSide * j < kColumns ? memory.values[c][tx + kSide * j] : 0.0f;
        KITH_UNROLL
        for (int i = 0; i < kRows / kSide; ++i) sums[i][j] = next_sum(sums[i][j], a[i], b);
      }
    }
  }
  KITH_UNROLL
  for (int i = 0; i < kRows / kSide; ++i) {
    KITH_UNROLL
    for (int j = 0; j < kMine; ++j) {
      if (tx + kSide * j < kColumns) memory.distances[ty + kSide * i][tx + kSide * j] = sqrtf(sums[i][j]);
    }
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) join_kernel(const __grid_constant__ Task task) {
  extern __shared__ __align__(16) std::byte bytes[];
  Memory& memory = *reinterpret_cast<Memory*>(bytes);
  const JoinCounts counts = unpack_counts(task.samples.counts[blockIdx.x]);
  if (!counts.meet(false)) return;
  const int mine = static_cast<int>(threadIdx.x);
  if (mine < counts.all()) memory.ids[mine] = task.samples.collected(blockIdx.x)[mine];
  __syncthreads();
  compute_distances(task, memory, counts);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int sample = warp; sample < counts.all(); sample += kWarps) {
    const bool old = sample >= counts.fresh;
    const uint32_t row = memory.ids[sample];
    const auto neighbor = [&](int other) -> uint64_t {
      if (other == sample) return kPadding;
      const float distance = old ? memory.distances[other][sample] : memory.distances[sample][other];
      return pack_neighbor(ordered_key(distance), memory.ids[other]);
    };
    if (task.update != Update::all_pairs) {
      offer_one(task, memory, row, nearest_of(neighbor, 0, counts.fresh));
      if (!old) offer_one(task, memory, row, nearest_of(neighbor, counts.fresh, counts.all()));
      continue;
    }
    uint64_t* const offers = memory.offers[warp];
    int count = 0;
    for (int first = 0; first < (old ? counts.fresh : counts.all()); first += 32) {
      const int other = first + lane_index();
      const uint64_t mine = other < (old ? counts.fresh : counts.all()) ? neighbor(other) : kPadding;
      const unsigned lanes = __ballot_sync(kAllLanes, mine != kPadding);
      if (mine != kPadding) offers[count + __popc(lanes & ((1u << lane_index()) - 1))] = mine;
      count += __popc(lanes);
    }
    for (int i = count + lane_index(); i < kMostOffers; i += 32) offers[i] = kPadding;
    sort_entries(offers, kMostOffers);
    merge_locked(task.lists.entries + static_cast<int64_t>(row) * kLength, kLength, offers, count, memory.list[warp],
                 task.locks + row * kSegments);
  }
}

// The sorted list becomes segments by the neighbours' numbers; what a full one has no room for goes to the other.
__global__ void __launch_bounds__(kThreads) split_kernel(DeviceListsRef lists) {
  __shared__ uint64_t memory[kWarps][kLength];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= lists.rows) return;
  uint64_t* const list = lists.entries + row * kLength;
  uint64_t* const mine = memory[threadIdx.x / 32];
  uint64_t entries[2];
  int before[kSegments] = {0, 0};
  int places[2];
  for (int part = 0; part < 2; ++part) {
    entries[part] = list[part * 32 + lane_index()];
    const bool there = entries[part] != kPadding;
    const auto segment = static_cast<int>(row_of(without_flag(entries[part])) % kSegments);
    for (int s = 0; s < kSegments; ++s) {
      const unsigned lanes = __ballot_sync(kAllLanes, there && segment == s);
      if (there && segment == s) places[part] = s * kLength + before[s] + __popc(lanes & ((1u << lane_index()) - 1));
      before[s] += __popc(lanes);
    }
  }
  for (int i = lane_index(); i < kLength; i += 32) mine[i] = kPadding;
  __syncwarp();
  for (int part = 0; part < 2; ++part) {
    if (entries[part] == kPadding) continue;
    const int segment = places[part] / kLength;
    const int place = places[part] % kLength;
    const int other = 1 - segment;
    const int to = place < kSegment ? segment * kSegment + place
                                    : other * kSegment + min(before[other], kSegment) + place - kSegment;
    mine[to] = entries[part];
  }
  for (int s = 0; s < kSegments; ++s) sort_entries(mine + s * kSegment, kSegment);
  for (int i = lane_index(); i < kLength; i += 32) list[i] = mine[i];
}

// One list again, nobody twice.
__global__ void __launch_bounds__(kThreads) merge_kernel(DeviceListsRef lists) {
  __shared__ uint64_t memory[kWarps][kLength];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= lists.rows) return;
  uint64_t* const list = lists.entries + row * kLength;
  uint64_t* const mine = memory[threadIdx.x / 32];
  for (int i = lane_index(); i < kLength; i += 32) mine[i] = list[i];
  sort_entries(mine, kLength);
  bool twice[2];
  for (int part = 0; part < 2; ++part) {
    const int i = part * 32 + lane_index();
    twice[part] = i > 0 && mine[i] != kPadding && without_flag(mine[i - 1]) == without_flag(mine[i]);
  }
  __syncwarp();
  for (int part = 0; part < 2; ++part) {
    if (twice[part]) mine[part * 32 + lane_index()] = kPadding;
  }
  sort_entries(mine, kLength);
  for (int i = lane_index(); i < kLength; i += 32) list[i] = mine[i];
}

// The distances of lists as these rounds compute them; a thread for each entry, then the lists are sorted.
__global__ void __launch_bounds__(kThreads) keys_kernel(Task task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= task.lists.rows * kLength || task.lists.entries[i] == kPadding) return;
  const uint32_t other = row_of(without_flag(task.lists.entries[i]));
  float sum = 0;
  for (int64_t c = 0; c < task.cols; ++c) {
    sum = next_sum(sum, task.x[i / kLength * task.cols + c], task.x[static_cast<int64_t>(other) * task.cols + c]);
  }
  task.lists.entries[i] = pack_neighbor(ordered_key(sqrtf(sum)), other);
}

inline unsigned warps_for(int64_t rows) { return static_cast<unsigned>((rows + kWarps - 1) / kWarps); }

inline void begin(const Task& task, cudaStream_t stream) {
  const int64_t blocks = (task.lists.rows * kLength + kThreads - 1) / kThreads;
  keys_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(task);
  merge_kernel<<<warps_for(task.lists.rows), kThreads, 0, stream>>>(task.lists);
  check(cudaGetLastError());
}

inline void round(const Task& task, uint64_t salt, cudaStream_t stream) {
  check(cudaMemsetAsync(task.samples.numbers, 0xFF, static_cast<size_t>(task.samples.row_bytes() * task.lists.rows),
                        stream));
  launch_sample_lists(task.lists, task.samples, 0, salt, stream);
  CollectTask collect;
  collect.samples = task.samples;
  collect.rows = task.lists.rows;
  launch_collect_joins(collect, stream);
  const bool segments = task.update == Update::segment_locks;
  if (segments) split_kernel<<<warps_for(task.lists.rows), kThreads, 0, stream>>>(task.lists);
  check(cudaFuncSetAttribute(join_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)));
  join_kernel<<<static_cast<unsigned>(task.lists.rows), kThreads, sizeof(Memory), stream>>>(task);
  if (segments) merge_kernel<<<warps_for(task.lists.rows), kThreads, 0, stream>>>(task.lists);
  check(cudaGetLastError());
}

}  // namespace gnnd
