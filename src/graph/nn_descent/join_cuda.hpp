// The kernels of NN-Descent's rounds on a GPU (descent_steps.hpp), on plain arrays in its memory. They enqueue and do not
// wait.
//
// A block joins the samples of one row: it gathers their operands into shared memory, multiplies NEW with NEW and OLD on
// the matrix units, and leaves for each sample the pairs that the product's error does not rule out, mostly one.
// Canonical keys decide among them and are what is offered; an offer of a row that the list knows, or that waits behind a
// nearer one, is dropped before its key is computed. Where there is no product, or too many pairs are left, all keys of
// the join are computed.
//
// Bound by the gathers: up to 4 p operands for each row, and the rows of the pairs that are left.
#pragma once

#include "graph/nn_descent/join_window.hpp"
#include "graph/nn_descent/known_rows_cuda.hpp"
#include "graph/pairs/pair_key_rows.hpp"
#include "graph/working_lists_cuda.hpp"

#include <cuda_runtime_api.h>

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
  const uint32_t* order = nullptr;  // on the device; null: as they lie
  int64_t first = 0;                // of this launch, in that order
  int64_t count = 0;
  unsigned long long* pairs = nullptr;  // kCounters counters of what is compared
};

// More do not fit a block's memory.
inline constexpr int64_t kMostDeviceSamples = 512;

// Draws the samples of all lists and marks them OLD; `reverse` is cleared before.
void launch_sample_lists(const DeviceListsRef& lists, const DeviceSamples& samples, uint64_t salt, cudaStream_t stream);
void launch_join(const JoinTask& task, cudaStream_t stream);

}  // namespace kith
