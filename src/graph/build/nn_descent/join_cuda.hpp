// The kernels of NN-Descent's rounds on a GPU (nn_descent.hpp), on plain arrays in its memory. They enqueue and do
// not wait.
//
// A block joins the samples of one row, or one or two warps those of a small one (small_join_cuda.cu). A block gathers
// their operands into shared memory, multiplies NEW with NEW and OLD on the matrix units, and keeps for each sample the
// pairs that the product's error bound cannot rule out, mostly one. Canonical keys decide among these and are offered;
// offers of rows that the list already has, or that queue behind a nearer one, are dropped before the key is
// computed. Without a product, or if too many pairs remain, all keys of the join are computed.
//
// Bound by the gathers: up to 4 p operands per row, and the rows of the remaining pairs.
#pragma once

#include "core/host_device.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/workspace_layout.hpp"
#include "graph/build/nn_descent/descent_passes.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/join_slots.hpp"
#include "graph/build/nn_descent/join_window.hpp"
#include "graph/lists/pairs/custom_sets_cuda.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/lists/working_lists_cuda.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kith {

// Per row 4 p row numbers: the p NEW ones that it sampled and up to p rows that sampled it as a NEW one, then the same
// for OLD; padded with kNobody. After launch_collect_joins: the members of the row's join, NEW ones first, without
// duplicates, and their counts.
struct DeviceSamples {
  uint32_t* numbers = nullptr;
  uint32_t* counts = nullptr;  // packed JoinCounts
  int64_t samples = 0;         // p

  // Where the members of a kind begin, NEW (0) or OLD (1).
  KITH_HOST_DEVICE uint32_t* forward(int64_t row, int64_t kind) const {
    return numbers + (4 * row + 2 * kind) * samples;
  }
  KITH_HOST_DEVICE uint32_t* reverse(int64_t row, int64_t kind) const { return forward(row, kind) + samples; }
  KITH_HOST_DEVICE uint32_t* collected(int64_t row) const { return numbers + 4 * row * samples; }
  int64_t of_row() const { return 4 * samples; }  // numbers
  int64_t row_bytes() const { return of_row() * static_cast<int64_t>(sizeof(uint32_t)); }
};

// Operands from launch_query_operands(), with their bounds.
struct JoinOperands {
  const std::byte* halves = nullptr;  // null: there is no product
  const JoinBounds* bounds = nullptr;
  int64_t chunks = 0;
};

// A hash table per list, to test in one read of 32 bytes whether the list has a row: rows are in buckets of eight. A
// bucket that overflowed has a mark in its last place; then the list itself must be searched. Memory: 8 to 16 bytes per
// place of a list.
inline constexpr uint32_t kMoreRows = kNobody - 1;  // in the last place of a bucket

struct KnownRows {
  uint32_t* buckets = nullptr;  // rows x (1 << bits) x kBucketRows
  int bits = 0;                 // known_bits() of the lists' length

  KITH_HOST_DEVICE int64_t bucket(int64_t list, uint32_t row) const {
    const uint32_t hash = row * 0x9E3779B1u;
    return (list << bits | (bits == 0 ? 0 : hash >> (32 - bits))) * kBucketRows;
  }
};

enum class Known : uint8_t { yes, no, unsure };

#if defined(__CUDACC__)
__device__ inline Known is_known(const KnownRows& known, uint32_t list, uint32_t row) {
  const uint4* const bucket = vectors<uint4>(known.buckets + known.bucket(list, row));
  const uint4 a = __ldg(bucket);
  const uint4 b = __ldg(bucket + 1);
  const bool found =
      a.x == row || a.y == row || a.z == row || a.w == row || b.x == row || b.y == row || b.z == row || b.w == row;
  return found ? Known::yes : b.w == kMoreRows ? Known::unsure : Known::no;
}
#endif

// Fills the tables from all lists. Enqueues.
void launch_know_rows(const DeviceListsRef& lists, const KnownRows& known, cudaStream_t stream);

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
  const uint32_t* joins = nullptr;  // the rows whose samples are joined
  int64_t first = 0;                // first join of this launch, in that order
  int64_t count = 0;
};

// Draws the samples of all lists and marks them OLD; samples are kNobody before. In a merge (boundary not 0) OLD
// samples are of the row's own set.
void launch_sample_lists(const DeviceListsRef& lists, const DeviceSamples& samples, int64_t boundary, uint64_t salt,
                         cudaStream_t stream);

// Collects the joins of a round: the samples of each row, forward and reverse, without duplicates, NEW ones first, and
// the rows that have a join at all, by its size. Memory: 16 bytes per row. Time: one read of the samples, a write of
// those that remain.

// The rows that have a join of each size, roughly in the given order, in which neighbours share samples.
struct DeviceJoins {
  uint32_t* rows = nullptr;    // kJoinSizes times as many as there are rows
  uint32_t* counts = nullptr;  // of each size; zero before
};

struct CollectTask {
  DeviceSamples samples;
  int64_t first = 0;                // the rows from this place of the order on
  int64_t rows = 0;
  bool across = false;              // in a merge: NEW ones are joined with OLD ones only
  const uint32_t* order = nullptr;  // the order of all rows; null: by number
  bool sizes = false;               // separates joins by size; else all count as large
  DeviceJoins joins;
  unsigned long long* pairs = nullptr;  // kCounters counters of the comparisons to come, zero before
};

// Collects samples in place. Enqueues.
void launch_collect_joins(const CollectTask& task, cudaStream_t stream);

// Orders rows so that those that share neighbours are close: concurrent blocks then gather the same rows from the
// cache. The offers of a join do not depend on it.
//
// A row's label is the smallest hash among itself and its nearest neighbours; labels of labels reach neighbours'
// neighbours. Rows with the same third-generation label, some hundreds, are placed together, among these the rows with
// the same second-generation label, and so on (min-wise hashing: the probability of a common label is the share of
// common neighbours).
//
// Memory: 32 bytes per row plus a radix sort's, during launch_join_order(). Time: three passes over the first
// neighbours of all lists, and the sort.
struct JoinOrderLayout : WorkspaceLayout {
  explicit JoinOrderLayout(int64_t rows);

  Slot<uint32_t> labels[2];
  Slot<uint64_t> keys[2];
  Slot<uint32_t> numbers[2];
  Slot<std::byte> sort;
};

// Writes a permutation of the rows to `order`. `memory` has layout.bytes, for a layout of this many rows. Enqueues.
void launch_join_order(const DeviceWorkingLists& lists, const JoinOrderLayout& layout, std::byte* memory,
                       uint32_t* order, cudaStream_t stream);

// Computes the bounds that joins use from the operands' bounds of this many rows.
void launch_join_bounds(KeyKind kind, const QueryOperand* from, int64_t count, JoinBounds* to, cudaStream_t stream);
// Runs the joins of one size (launch_collect_joins).
void launch_join(const JoinTask& task, JoinSize size, cudaStream_t stream);
// The same for a size that is not large; requires operands.
void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream);

// Joins around a user's kernel (custom_sets_cuda.hpp): samples become sets, and the distances of sets become offers.
// All pairs of a join are compared, as there is no bound to rule one out by. Bound by the user's kernel.

// Writes the samples that a launch's rows join, NEW ones first, each kind in order of row numbers.
void launch_join_sets(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);
// Offers the pairs that the joins found to the inbox.
void launch_join_offers(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);

class DescentSteps;

// The rounds on a GPU: rows, lists, samples and offers stay there. The lists equal the CPU's, byte for byte. The
// workspace is described in descent_workspace.hpp. All arguments must outlive it; work is enqueued on the context's
// stream. Unsupported for more samples or longer lists than a block supports.
std::unique_ptr<DescentSteps> make_descent_steps_cuda(const PairKeyRows& rows, const DescentRules& rules,
                                                      uint64_t* lists, int64_t list_length,
                                                      std::shared_ptr<const DeviceContext> context,
                                                      const Resources& resources, const DescentPasses& passes = {});

}  // namespace kith
