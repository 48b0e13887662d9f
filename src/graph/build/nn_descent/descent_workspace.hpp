// What rounds of NN-Descent on a GPU keep in its memory beside the rows and the lists: pure arithmetic, so that any
// machine can say what another needs.
//
// Bytes a row: 16 p for samples, 16 for its join, 8 for each slot of its inbox, 8 for its list's end, 4 for its place
// in the order of joins, 8 to 16 for each place of the list (KnownRows), and for metrics that are products 2
// a value, rounded up to 128, and 16.
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

// The rows of a list lie in (1 << known_bits) buckets of kBucketRows, of whose places half stay empty.
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
  Slot<unsigned long long> pairs;    // counters of what is compared
  Slot<uint32_t> join_counts;        // of each size
  Slot<unsigned long long> entered;  // counters
};

// Whether joins are products of halves.
bool joins_are_products(KeyKind kind, int64_t cols);

// Rows whose facts are looked at together while operands are made: whole tiles.
inline constexpr int64_t kFactRows = int64_t{1} << 20;

// What fits the shared memory of a block: a list and as many offers, the samples of a join.
int64_t longest_gpu_list(int64_t shared_bytes);
int64_t most_gpu_samples(int64_t shared_bytes);
// Unsupported, with what is allowed, where rounds on that device cannot be; nothing on the CPU.
void check_descent(const DescentRules& rules, int64_t list_length, Device device);

}  // namespace kith
