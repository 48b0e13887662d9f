// Queries that fail together: each follows a leader, a query near it (kernels/matrix/vicinity_bounds.hpp).
#pragma once

#include "kernels/distance/canonical.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostLeaders = 256;

// Picks `count` of `of` numbers, evenly spaced.
void launch_sample_numbers(const uint32_t* numbers, int64_t of, int64_t count, uint32_t* sampled, cudaStream_t stream);

// Chooses the leader of each of `count` queries: among those with a sufficient radius the one with the smallest.
struct ChooseLeaderTask {
  KeyKind kind = KeyKind::l2;
  const uint32_t* queries = nullptr;  // their numbers
  int64_t count = 0;
  const uint32_t* key_limits = nullptr;  // by number; 0: unknown
  const float* keys = nullptr;           // leaders x stride: between leaders and queries, of kind_between_queries()
  int64_t stride = 0;
  double distance_factor = 1;
  const double* radii = nullptr;  // one for each leader; infinite: it leads no one
  int leaders = 0;                // at most kMostLeaders
  uint32_t* chosen = nullptr;     // `leaders` if none suffices
  uint32_t* followers = nullptr;  // counts of followers, leaders + 1 entries, zeroed by the caller
};
void launch_choose_leader(const ChooseLeaderTask& task, cudaStream_t stream);

}  // namespace kith
