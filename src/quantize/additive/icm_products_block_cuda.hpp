// A block of the search by products (icm_products_kernel_cuda.hpp): its threads, its shared memory, and the warpgroup
// that brings books to it, one after the other, through a ring of two.
#pragma once

#include "core/slot.hpp"
#include "cuda/ptx_hopper.hpp"
#include "quantize/additive/icm_task_cuda.hpp"

#include <cstdint>

namespace kith::icm {

inline constexpr int kGroups = 2;
inline constexpr int kGroupThreads = 128;
inline constexpr int kSearchers = kGroups * kGroupThreads;
inline constexpr int kThreads = kSearchers + kGroupThreads;  // one more copies, and gives them its registers
inline constexpr int kSearcherRegisters = 232;  // of 168 that all begin with
inline constexpr int kCopierRegisters = 40;
inline constexpr int kGroupRows = 64;
inline constexpr int kStages = 2;
inline constexpr int kHalfTile = 128;  // codewords of one product
inline constexpr unsigned kFullWarp = 0xFFFFFFFFu;

struct Barriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

// What a step does, in turn.
enum class Stage : int { wait, operand, product, choice, settle, replace, rest, count };

// Books come and go by barriers in shared memory alone: a warp that has read one says so, and the copier overwrites it
// when all have. racecheck reports such pairs. To tell whether it merely does not follow these barriers, a Watch with
// kBlockBarriers lets copier and searchers meet at a barrier of the block after each step, too (`lsq_cuda_bench --parts
// race`).
inline constexpr int kMeetingBarrier = 1;
inline constexpr int kMeetingThreads = kSearchers + 32;

// The time since the last call belongs to that stage.
struct NoWatch {
  static constexpr bool kBlockBarriers = false;
  __device__ void begin() {}
  __device__ void ends(Stage) {}
  __device__ void finish() {}
};

template <int kChunks>
struct Layout {
  static constexpr int kTileBytes = kChunks * kProductChunkBytes;
  static constexpr int kSteps = 4 * kChunks;  // of 16 columns
  static constexpr int kCols = kChunks * kProductChunkCols;

  // Shared memory: tiles of books first.
  static constexpr Slot<float> terms() { return {kStages * kTileBytes, kStages * kProductWords}; }
  static constexpr Slot<float4> residuals() { return {terms().offset + terms().bytes(), kSearchers * 2 * kSteps}; }
  static constexpr Slot<Barriers> barriers() { return {residuals().offset + residuals().bytes(), 1}; }
  // The best so far, those that are worked with, and the next ones.
  static constexpr Slot<uint8_t> codes(int64_t books) {
    return {barriers().offset + 64, 3 * kProductTileRows * books};
  }
  static int bytes(int64_t books) {
    return static_cast<int>(1024 + codes(books).offset + codes(books).bytes());
  }
};

struct Place {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    stage ^= 1;
    parity ^= stage == 0 ? 1u : 0u;
  }
};

// By the first thread of a warp; with barriers of the block, by all of it.
template <int kChunks, bool kBlockBarriers>
__device__ void copy_books(const IcmBooks& books, const IcmRun& run, std::byte* shared, Barriers* barriers) {
  using L = Layout<kChunks>;
  Place place;
  int64_t brought = 0;
  const auto bring = [&](int64_t book) {
    if constexpr (kBlockBarriers) {
      if (brought++ >= kStages) ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
      if (threadIdx.x % 32 != 0) return;
    }
    uint64_t* const full = &barriers->full[place.stage];
    ptx::barrier_wait(&barriers->empty[place.stage], place.parity ^ 1);
    ptx::barrier_arrive_and_expect(full, L::kTileBytes + kProductWords * 4);
    for (int part = 0; part < 2 * kChunks; ++part) {
      constexpr int kPart = kProductChunkBytes / 2;
      ptx::copy_bulk(shared + place.stage * L::kTileBytes + part * kPart,
                     books.tiles + book * L::kTileBytes + part * kPart, kPart, full);
    }
    ptx::copy_bulk(L::terms().in(shared) + place.stage * kProductWords, books.terms + book * kProductWords,
                   kProductWords * 4, full);
    place.advance();
  };
  if (run.start == IcmStart::greedy) {
    for (int64_t k = 0; k < books.books; ++k) bring(k);
  }
  for (int round = 0; round < run.rounds; ++round) {
    const IcmStep* const steps = run.schedule + static_cast<int64_t>(round) * run.schedule_stride;
    for (int i = 0; i < run.steps; ++i) bring(steps[i].book);
  }
  if constexpr (kBlockBarriers) {
    for (int64_t last = 0; last < min(brought, int64_t{kStages}); ++last) ptx::turn_wait(kMeetingBarrier, kMeetingThreads);
  }
}

}  // namespace kith::icm
