// Applies a filter to arrays with one value for each row of a base, on the GPU. All functions enqueue and return.
#pragma once

#include "core/host_device.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Bit i % 64 of word i / 64 for row number i.
KITH_HOST_DEVICE inline bool is_kept(const uint64_t* bits, uint32_t row) { return bits[row / 64] >> (row % 64) & 1; }

// The numbers of kept rows first_place .. first_place + count - 1, ascending, from bits. `ranks` tells how many rows
// are kept before each kKeptRankRows-th; all those wanted lie between first_rank and end_rank.
inline constexpr int kKeptRankRows = 4096;
struct KeptNumbersTask {
  const uint64_t* bits = nullptr;
  const uint32_t* ranks = nullptr;
  int64_t first_rank = 0;
  int64_t end_rank = 0;
  int64_t words = 0;  // of all bits
  uint32_t first_place = 0;
  uint32_t count = 0;
  uint32_t* numbers = nullptr;
};
void launch_kept_numbers(const KeptNumbersTask& task, cudaStream_t stream);

// kept[i] = norms[list[i] - first_listed].
void launch_keep_norms(const double* norms, const uint32_t* list, uint32_t first_listed, int64_t count, double* kept,
                       cudaStream_t stream);

// Copies the 4-byte terms (kernels/matrix) of rows first_row, first_row + 1, ...; rows that are left out, and places
// past the last row up to `padded`, get `none`.
struct MaskTermsTask {
  const uint32_t* terms = nullptr;
  const uint64_t* bits = nullptr;
  uint32_t first_row = 0;
  int64_t count = 0;
  int64_t padded = 0;
  uint32_t none = 0;
  uint32_t* masked = nullptr;
};
void launch_mask_terms(const MaskTermsTask& task, cudaStream_t stream);

}  // namespace kith
