// The GPU memory of NN-Descent's rounds besides the rows and the lists: pure arithmetic, so that it can be computed on
// any machine.
//
// Bytes per row: 16 p for samples, 16 for its join, 8 for each slot of its inbox, 8 for its list's end, 4 for its place
// in the order of joins, 8 to 16 for each place of the list (KnownRows), and for metrics based on products 2 per
// value, rounded up to 128, and 16.
#pragma once

#include <kith/device.hpp>
#include <kith/metric.hpp>
#include <kith/view.hpp>

#include "cuda/workspace_layout.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/join_slots.hpp"
#include "graph/lists/working_lists.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

// The rows of a list are hashed to (1 << known_bits) buckets of kBucketRows places, half of them empty.
inline constexpr int kBucketRows = 8;
constexpr int known_bits(int64_t list_length) {
  int bits = 0;
  while ((int64_t{kBucketRows / 2} << bits) < list_length) ++bits;
  return bits;
}

struct DescentLayout : WorkspaceLayout {
  DescentLayout(int64_t rows, int64_t list_length, const DescentRules& rules)
      : samples(take<uint32_t>(rows, 4 * rules.samples)),
        sample_counts(take<uint32_t>(rows)),
        joins(take<uint32_t>(rows, kJoinSizes)),
        inbox(take<uint64_t>(rows, rules.inbox_slots)),
        ends(take<uint64_t>(rows)),
        known(take<uint32_t>(rows, int64_t{kBucketRows} << known_bits(list_length))),
        order(take<uint32_t>(rows)),
        pairs(take<unsigned long long>(kCounters)),
        join_counts(take<uint32_t>(2 * kCounters)),
        entered(take<unsigned long long>(kCounters)) {}

  Slot<uint32_t> samples, sample_counts, joins;
  Slot<uint64_t> inbox, ends;
  Slot<uint32_t> known, order;
  Slot<unsigned long long> pairs;    // counters of compared pairs
  Slot<uint32_t> join_counts;        // of each size
  Slot<unsigned long long> entered;  // counters
};

// Whether joins use fp16 products.
bool joins_are_products(KeyKind kind, int64_t cols);

// Rows whose operands are made together, in whole tiles.
inline constexpr int64_t kFactRows = int64_t{1} << 20;

// The limits of a block's shared memory: a list and as many offers; the samples of a join.
int64_t longest_gpu_list(int64_t shared_bytes);
int64_t most_gpu_samples(int64_t shared_bytes);
// Throws Unsupported, naming what is allowed, if the device cannot run such rounds; never for the CPU.
void check_descent(const DescentRules& rules, int64_t list_length, Device device);

}  // namespace kith
