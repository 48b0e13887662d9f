#include "graph/lists/pairs/custom_sets_cuda.hpp"

#include "core/host_array.hpp"
#include "graph/lists/pairs/symmetric_pairs.hpp"
#include "graph/lists/start_rules.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

int64_t bytes_of_set(int64_t most_queries, int64_t most_rows) {
  return array_bytes<custom::SetCounts>(1) + array_bytes<uint32_t>(most_rows) +
         array_bytes<float>(most_queries * most_rows);
}

}  // namespace

CustomSetsCuda::CustomSetsCuda(const custom::GraphMetric& metric, const PairKeyRows& rows, int64_t sets,
                               int64_t most_queries, int64_t most_rows, std::shared_ptr<const DeviceContext> context,
                               const Resources& resources)
    : metric_(metric),
      rows_(rows),
      context_(std::move(context)),
      room_(std::clamp<int64_t>(kSetBytes / bytes_of_set(most_queries, most_rows), 1, std::max<int64_t>(sets, 1))),
      counts_(room_, "sets of rows", context_, resources),
      numbers_(room_ * most_rows, "sets of rows", context_, resources),
      distances_(room_ * most_queries * most_rows, "sets of rows", context_, resources),
      ref_{numbers_.data(), counts_.data(), distances_.data(), most_queries, most_rows} {}

void CustomSetsCuda::compute(int64_t sets) const {
  if (context_->counts_only()) return;
  const DeviceRowsView& rows = rows_.rows;
  metric_.distances(metric_.search.metric,
                    {.rows = {rows.data, rows.dtype, rows.stride, rows.count},
                     .cols = rows_.cols,
                     .numbers = ref_.numbers,
                     .counts = ref_.counts,
                     .sets = sets,
                     .most_queries = ref_.most_queries,
                     .most_rows = ref_.most_rows,
                     .distances = ref_.distances},
                    context_->stream());
}

void check_symmetric_cuda(const custom::GraphMetric& metric, const PairKeyRows& rows, uint64_t seed,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const SymmetricPairs pairs(rows.rows.count, seed);
  // Each pair is two sets, one for each way.
  constexpr int64_t kSets = 2 * SymmetricPairs::kCount;
  const CustomSetsCuda sets(metric, rows, kSets, 1, 2, context, resources);
  std::vector<uint32_t> numbers(2 * kSets);
  const std::vector<custom::SetCounts> counts(kSets, {1, 2});
  for (int64_t i = 0; i < kSets; ++i) {
    const auto [a, b] = pairs.pair(i / 2);
    numbers[2 * i] = i % 2 == 0 ? a : b;
    numbers[2 * i + 1] = i % 2 == 0 ? b : a;
  }
  context->copy_values(sets.ref().numbers, numbers.data(), 2 * kSets);
  context->copy_values(sets.ref().counts, counts.data(), kSets);
  sets.compute(kSets);
  std::vector<float> found(2 * kSets);
  context->copy_values(found.data(), sets.ref().distances, 2 * kSets);
  context->synchronize();
  for (int64_t i = 0; i < SymmetricPairs::kCount; ++i) pairs.check(i, found[4 * i + 1], found[4 * i + 3]);
}

}  // namespace kith
