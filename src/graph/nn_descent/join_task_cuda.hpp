// What a join of NN-Descent on a GPU is given (join_cuda.hpp), on plain arrays in its memory.
#pragma once

#include "core/host_device.hpp"
#include "graph/nn_descent/join_window.hpp"
#include "graph/nn_descent/known_rows_cuda.hpp"
#include "graph/pairs/pair_key_rows.hpp"
#include "graph/working_lists_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Of every row 4 p numbers: the p NEW ones that it has sampled and some p of those that have sampled it as a NEW one,
// then the OLD ones likewise, kNobody where there are fewer. Once collected (collect_joins_cuda.hpp) those that meet in
// the row's join, NEW ones first, nobody twice, and how many of each kind.
struct DeviceSamples {
  uint32_t* numbers = nullptr;
  uint32_t* counts = nullptr;  // packed JoinCounts
  int64_t samples = 0;         // p

  // Where those of a kind begin, NEW (0) or OLD (1).
  KITH_HOST_DEVICE uint32_t* forward(int64_t row, int64_t kind) const { return numbers + (4 * row + 2 * kind) * samples; }
  KITH_HOST_DEVICE uint32_t* reverse(int64_t row, int64_t kind) const { return forward(row, kind) + samples; }
  KITH_HOST_DEVICE uint32_t* collected(int64_t row) const { return numbers + 4 * row * samples; }
  int64_t of_row() const { return 4 * samples; }  // numbers
  int64_t row_bytes() const { return of_row() * static_cast<int64_t>(sizeof(uint32_t)); }
};

// Operands as launch_query_operands() makes them, with what is known of each.
struct JoinOperands {
  const std::byte* halves = nullptr;  // null: there is no product
  const JoinFacts* facts = nullptr;
  int64_t chunks = 0;
};

struct JoinTask {
  PairKeyRows rows;
  JoinOperands operands;
  DeviceListsRef lists;
  KnownRows known;
  DeviceSamples samples;
  uint64_t* inbox = nullptr;  // rows x slots
  int64_t slots = 0;
  uint64_t salt = 0;
  int64_t boundary = 0;
  bool all_pairs = false;
  const uint32_t* joins = nullptr;  // rows whose samples meet
  int64_t first = 0;                // of this launch, in that order
  int64_t count = 0;
};

}  // namespace kith
