// What a join of NN-Descent on a GPU is given (join_cuda.hpp), on plain arrays in its memory.
#pragma once

#include "graph/nn_descent/join_window.hpp"
#include "graph/nn_descent/known_rows_cuda.hpp"
#include "graph/pairs/pair_key_rows.hpp"
#include "graph/working_lists_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// Of every row p NEW ones, then p OLD ones, kNobody where there are fewer.
struct DeviceSamples {
  uint32_t* forward = nullptr;  // those that the row has sampled
  uint32_t* reverse = nullptr;  // some of those that have sampled it
  int64_t samples = 0;          // p
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
  bool once = true;
  const uint32_t* order = nullptr;  // on the device; null: as they lie
  int64_t first = 0;                // of this launch, in that order
  int64_t count = 0;
  unsigned long long* pairs = nullptr;  // kCounters counters of what is compared
};

}  // namespace kith
