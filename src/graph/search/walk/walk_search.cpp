#include "graph/search/walk/walk_search.hpp"

namespace kith {
namespace {

constexpr int64_t kMostTaskQueries = 16;

}  // namespace

WalkSearch::WalkSearch(const WalkParams& params, int64_t degree, int64_t query_bytes, int64_t queries,
                       const Resources& resources)
    : task_queries_(std::clamp<int64_t>(divide_up(queries, resources.threads()), 1, kMostTaskQueries)),
      slots_(queries <= task_queries_ ? 1 : resources.threads()),
      per_slot_(std::min(task_queries_, kTurns)) {
  turns_.reserve(static_cast<size_t>(slots_ * per_slot_));
  for (int64_t i = 0; i < slots_ * per_slot_; ++i) turns_.emplace_back(params, degree, query_bytes, resources);
}

}  // namespace kith
