// The kernels of NN-Descent's rounds on a GPU (nn_descent.hpp), on plain arrays in its memory. They enqueue and do
// not wait.
//
// A block joins the samples of one row, one or two warps those of a small one (small_join_cuda.cu). A block gathers
// their operands into shared memory, multiplies NEW with NEW and OLD on the matrix units, and leaves for each sample
// the pairs that the product's error does not rule out, mostly one. Canonical keys decide among them and are what is
// offered; an offer of a row that the list knows, or that waits behind a nearer one, is dropped before its key is
// computed. Where there is no product, or too many pairs are left, all keys of the join are computed.
//
// Bound by the gathers: up to 4 p operands for each row, and the rows of the pairs that are left.
#pragma once

#include "core/host_device.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/workspace_layout.hpp"
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

// For every row 4 p numbers: the p NEW ones that it has sampled and some p of those that have sampled it as a NEW one,
// then the OLD ones likewise, kNobody where there are fewer. Once collected (launch_collect_joins) those that meet in
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
  const JoinBounds* bounds = nullptr;
  int64_t chunks = 0;
};

// Whether a list holds a row, in one read of 32 bytes: beside each list its rows lie in buckets of eight by a hash. A
// bucket that got more says so in its last place; then the list itself must be asked. What is found is there. Memory: 8
// to 16 bytes for each place of a list.
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

// From all lists. Enqueues.
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
  const uint32_t* joins = nullptr;  // rows whose samples meet
  int64_t first = 0;                // of this launch, in that order
  int64_t count = 0;
};

// Draws the samples of all lists and marks them OLD; all are kNobody before. In a merge (a boundary that is not 0) OLD
// ones are of the row's own set.
void launch_sample_lists(const DeviceListsRef& lists, const DeviceSamples& samples, int64_t boundary, uint64_t salt,
                         cudaStream_t stream);

// Who meets in the joins of a round: the samples of each row, forward and reverse, nobody twice, NEW ones first, and
// the rows that have a join at all, by its size. A join then begins with what it compares. Memory: 16 bytes a row. Time: one
// read of the samples, a write of those that stay.

// Rows that have a join of each size, about in the order in which they were gone over: neighbours share samples.
struct DeviceJoins {
  uint32_t* rows = nullptr;    // kJoinSizes times as many as there are rows
  uint32_t* counts = nullptr;  // of each size; zero before
};

struct CollectTask {
  DeviceSamples samples;
  int64_t rows = 0;
  bool across = false;              // in a merge NEW ones meet OLD ones alone
  const uint32_t* order = nullptr;  // in which rows are gone over; null: as they lie
  bool sizes = false;               // joins are told apart by size; else all are large
  DeviceJoins joins;
  unsigned long long* pairs = nullptr;  // kCounters counters of what will be compared, zero before
};

// Samples are collected in their own place. Enqueues.
void launch_collect_joins(const CollectTask& task, cudaStream_t stream);

// An order of the rows in which those that share neighbours come near each other, from their lists: blocks of a join that run
// at the same time then gather the same rows, from the cache. What a join offers does not depend on it.
//
// A row's label is the least hash among itself and its nearest neighbours; labels of labels reach neighbours' neighbours. Rows
// with the same label of the third generation, some hundreds, come together, among these rows with the same of the second,
// and so on (min-wise hashing: rows share a label as likely as they share neighbours).
//
// Memory: 32 bytes a row and what a radix sort takes, for as long as launch_join_order() works. Time: three passes over the first
// neighbours of all lists, and the sort.
struct JoinOrderLayout : WorkspaceLayout {
  explicit JoinOrderLayout(int64_t rows);

  Slot<uint32_t> labels[2];
  Slot<uint64_t> keys[2];
  Slot<uint32_t> numbers[2];
  Slot<std::byte> sort;
};

// Every row once into `order`. `memory` has layout.bytes, of a layout for so many rows. Enqueues.
void launch_join_order(const DeviceWorkingLists& lists, const JoinOrderLayout& layout, std::byte* memory, uint32_t* order,
                       cudaStream_t stream);

// What joins know of operands, from the bounds of so many rows.
void launch_join_bounds(KeyKind kind, const QueryOperand* from, int64_t count, JoinBounds* to, cudaStream_t stream);
// Joins of one size (launch_collect_joins).
void launch_join(const JoinTask& task, JoinSize size, cudaStream_t stream);
// The same of a size that is not large, where there are operands.
void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream);

// Joins around a user's kernel (custom_sets_cuda.hpp): samples become sets, and the distances of sets become offers. All pairs
// of a join are compared, as there is no bound to rule one out by. Bound by the user's kernel.

// The samples that the rows of a launch join, NEW ones first, each kind by number.
void launch_join_sets(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);
// Offers what the joins found to the inbox.
void launch_join_offers(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream);

class DescentSteps;

// The rounds: rows, lists, samples and offers stay on the GPU. The lists are the CPU's, byte for byte. What they keep beside
// rows and lists is in descent_workspace.hpp.
// What is given must outlive it; work is enqueued on the context's stream. The rules' order lies on the device. Unsupported
// where there are more samples or longer lists than a block has room for.
std::unique_ptr<DescentSteps> make_descent_steps_cuda(const PairKeyRows& rows, const DescentRules& rules,
                                                      uint64_t* lists, int64_t list_length,
                                                      std::shared_ptr<const DeviceContext> context,
                                                      const Resources& resources);

}  // namespace kith
