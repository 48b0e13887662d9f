#include "graph/build/nn_descent/join_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/build/nn_descent/join_memory_cuda.hpp"
#include "graph/build/nn_descent/join_slots.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kSetThreads = 128;

// Sorted, so that sets have the same order in every run: a row that was sampled twice may stand in either of its
// places.
__global__ void __launch_bounds__(kSetThreads)
    join_sets_kernel(const __grid_constant__ JoinTask task, CustomSetsRef sets) {
  extern __shared__ uint32_t memory[];  // the numbers
  const uint32_t row = task.joins[task.first + blockIdx.x];
  const JoinCounts counts = unpack_counts(task.samples.counts[row]);
  const uint32_t* const collected = task.samples.collected(row);
  for (int i = static_cast<int>(threadIdx.x); i < counts.all(); i += kSetThreads) memory[i] = collected[i];
  __syncthreads();
  uint32_t* const numbers = sets.numbers + blockIdx.x * sets.most_rows;
  for (int i = static_cast<int>(threadIdx.x); i < counts.all(); i += kSetThreads) {
    const int first = i < counts.fresh ? 0 : counts.fresh;
    const int end = i < counts.fresh ? counts.fresh : counts.all();
    int rank = first;
    for (int j = first; j < end; ++j) rank += memory[j] < memory[i] ? 1 : 0;
    numbers[rank] = memory[i];
  }
  if (threadIdx.x == 0) sets.counts[blockIdx.x] = {counts.fresh, counts.all()};
}

// A block per join. A NaN distance is never the nearest.
__global__ void __launch_bounds__(kThreads)
    join_offers_kernel(const __grid_constant__ JoinTask task, CustomSetsRef sets) {
  extern __shared__ __align__(8) unsigned long long nearest[];  // of the slots
  const custom::SetCounts found = sets.counts[blockIdx.x];
  const JoinSlots slots({found.queries, found.rows - found.queries}, false);
  const uint32_t* const numbers = sets.numbers + blockIdx.x * sets.most_rows;
  const float* const distances = sets.distances + blockIdx.x * sets.most_queries * sets.most_rows;
  const auto offer = [&](int sample, uint64_t neighbor) {
    const uint32_t row = numbers[sample];
    offer_to_list(task, row, task.lists.ends[row], neighbor);
  };
  for (int slot = static_cast<int>(threadIdx.x); slot < slots.count(); slot += kThreads) nearest[slot] = kPadding;
  __syncthreads();
  const auto take = [&](int slot, int sample, uint64_t neighbor) {
    if (task.all_pairs) return offer(sample, neighbor);
    atomicMin(nearest + slot, static_cast<unsigned long long>(neighbor));
  };
  for (int i = static_cast<int>(threadIdx.x); i < found.queries * found.rows; i += kThreads) {
    const int query = i / found.rows;
    const int row = i % found.rows;
    if (row <= query) continue;
    const float distance = distances[query * sets.most_rows + row];
    if (isnan(distance)) continue;
    const uint32_t key = ordered_key(distance);
    take(slots.new_slot(query, row), query, pack_neighbor(key, numbers[row]));
    take(slots.slot_for_new(row), row, pack_neighbor(key, numbers[query]));
  }
  __syncthreads();
  for (int slot = static_cast<int>(threadIdx.x); slot < slots.count(); slot += kThreads) {
    if (nearest[slot] != kPadding) offer(slots.sample_of(slot), nearest[slot]);
  }
}

}  // namespace

void launch_join_sets(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream) {
  allow_all_shared_memory(join_sets_kernel);
  launch(join_sets_kernel, Grid::of(task.count, kSetThreads).with_shared(task.samples.row_bytes()), stream, task, sets);
}

void launch_join_offers(const JoinTask& task, const CustomSetsRef& sets, cudaStream_t stream) {
  const int64_t bytes = 8 * JoinSlots::most(task.samples.samples);
  launch(join_offers_kernel, Grid::of(task.count, kThreads).with_shared(bytes), stream, task, sets);
}

}  // namespace kith
