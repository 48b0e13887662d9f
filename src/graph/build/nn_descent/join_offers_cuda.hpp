// How a join offers a neighbour to a list: it waits in the inbox of its row (join_rules.hpp), unless it is in the list,
// or another that is nearer waits in its place.
#pragma once

#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/join_task_cuda.hpp"
#include "graph/lists/warp_lists_cuda.hpp"

#include <cstdint>

namespace kith {

// atomicMin(), which knows no uint64_t.
__device__ inline void lower_to(uint64_t* place, uint64_t neighbor) {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  atomicMin(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(neighbor));
}

__device__ inline uint64_t* inbox_place(const JoinTask& task, uint32_t row, uint32_t other) {
  return task.inbox + row * task.slots + inbox_slot(task.salt, other, task.slots);
}

// What is not in the list for sure, and nearer than its end.
__device__ inline void offer_unknown(const JoinTask& task, uint32_t row, uint64_t end, uint64_t neighbor) {
  if (neighbor >= end) return;
  lower_to(inbox_place(task, row, row_of(neighbor)), neighbor);
}

__device__ inline void offer_to_list(const JoinTask& task, uint32_t row, uint64_t end, uint64_t neighbor) {
  if (neighbor >= end) return;
  uint64_t* const place = inbox_place(task, row, row_of(neighbor));
  const uint64_t waiting = __ldcg(place);
  const Known known = is_known(task.known, row, row_of(neighbor));
  if (known == Known::yes || (known == Known::unsure && list_holds(task.lists.entries + row * task.lists.length, task.lists.length, neighbor))) return;
  if (neighbor < waiting) lower_to(place, neighbor);
}

}  // namespace kith
