// From marks (operand_layout.hpp), a bit for each row of a base, to lists of the rows that are marked, ascending.
#pragma once

#include "kernels/matrix/operand_layout.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr int kMarkedThreads = 256;
inline constexpr int64_t kMarkedPart = int64_t{kMarkedThreads} * 32;  // rows that a block goes over

KITH_HOST_DEVICE constexpr int64_t marked_parts(int64_t rows) { return divide_up(rows, kMarkedPart); }

// How many rows of each part are marked: `sets` sets of marks, of mark_words(rows) words each, one after the other.
struct CountMarkedTask {
  const uint32_t* marks = nullptr;
  int64_t sets = 0;
  int64_t rows = 0;
  uint32_t* parts = nullptr;   // sets x marked_parts(rows)
  uint32_t* totals = nullptr;  // sets, zeroed before
};
void launch_count_marked(const CountMarkedTask& task, cudaStream_t stream);

// The numbers of the marked rows of one set: row i has number first_number + i, or numbers[i].
struct ListMarkedTask {
  const uint32_t* marks = nullptr;
  int64_t rows = 0;
  const uint32_t* parts = nullptr;  // as they were counted
  uint32_t first_number = 0;
  const uint32_t* numbers = nullptr;
  uint32_t* list = nullptr;
};
void launch_list_marked(const ListMarkedTask& task, cudaStream_t stream);

#if defined(__CUDACC__)
// Marks row `row`; the marks were zeros before.
__device__ inline void mark_row(uint32_t* marks, int64_t row) {
  const auto in_tile = static_cast<int>(row % kOperandTile);
  const int bit = in_tile / 8 * 2 + in_tile % 2;
  atomicOr(&marks[mark_word(row / kOperandTile, in_tile % 8 / 2)], 1u << bit);
}
#endif

}  // namespace kith
