// The steps of a search of lists in pieces (pieced_lists_cuda.hpp) beside those of each piece: which queries look at a
// piece, what these bring to it, and what comes of it. All enqueue and return.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Whole lists of a segment: its vectors first, first + 1, ..., end - 1.
struct PieceRange {
  const int64_t* offsets = nullptr;  // of all lists of the segment, on the device
  int64_t lists = 0;
  int64_t first = 0;
  int64_t end = 0;
};

// The offsets of the piece's vectors: lists of other pieces are empty.
void launch_piece_offsets(const PieceRange& piece, int64_t* offsets, cudaStream_t stream);

// Ranked lists of a batch of queries: queries x slots, packed.
struct RankedProbes {
  const uint64_t* probes = nullptr;
  int64_t queries = 0;
  int64_t slots = 0;
};

// What a batch wants of a piece. Zeroed before.
struct PieceProbes {
  uint32_t queries = 0;  // that have one of its lists among theirs
  uint32_t most = 0;     // such lists of one query
  uint32_t taken = 0;    // queries so far, by launch_take_here()
};

void launch_count_here(const RankedProbes& ranked, const PieceRange& piece, PieceProbes* found, cudaStream_t stream);

// The queries that look at a piece, one after the other in any order.
struct QueriesHere {
  uint32_t* numbers = nullptr;  // of the queries in the batch
  float* rows = nullptr;
  uint64_t* probes = nullptr;  // queries x most, their lists of the piece in the order of ranking, and padding
  uint64_t* bounds = nullptr;  // of each (QueryBounds)
};
struct TakeHereTask {
  RankedProbes ranked;
  PieceRange piece;
  int64_t most = 0;  // PieceProbes::most
  const float* rows = nullptr;
  int64_t row_stride = 0;
  int64_t cols = 0;
  const uint64_t* bounds = nullptr;
  uint32_t* taken = nullptr;  // PieceProbes::taken
  QueriesHere here = {};      // output
};
void launch_take_here(const TakeHereTask& task, cudaStream_t stream);

// Brings what a piece has together with the best so far, and lowers the queries' bounds. Lists of k neighbours, packed,
// sorted and padded; no row is in both.
struct MergeHereTask {
  const uint32_t* numbers = nullptr;  // of these queries
  int64_t queries = 0;
  int64_t k = 0;
  const uint64_t* found = nullptr;
  uint64_t* merged = nullptr;  // queries x k, for a while
  uint64_t* best = nullptr;    // of all queries of the batch
  uint64_t* bounds = nullptr;  // likewise
};
void launch_merge_here(const MergeHereTask& task, cudaStream_t stream);

// Gathers a sample of a segment's lists: of each at most `each` vectors, in runs of `run` neighbours that are spread
// over all of it. Reads the host's pinned memory over the bus, a run at a time.
struct SampleTask {
  const int64_t* offsets = nullptr;  // of all segments one after the other, segments x (lists + 1), on the device
  int64_t lists = 0;
  int64_t segment = 0;  // this one; of those before it the sample has its vectors already
  int64_t each = 0;
  int64_t run = 0;
  int64_t code_bytes = 0;
  const uint8_t* codes = nullptr;  // of the segment, in pinned memory
  const uint32_t* rows = nullptr;
  const int64_t* starts = nullptr;  // of the sample's lists
  uint8_t* to_codes = nullptr;
  uint32_t* to_rows = nullptr;
};
void launch_gather_sample(const SampleTask& task, cudaStream_t stream);

}  // namespace kith
