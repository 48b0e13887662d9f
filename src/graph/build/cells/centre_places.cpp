#include "graph/build/cells/centre_places.hpp"

#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "graph/build/cells/cell_ranks_cpu.hpp"

#include <algorithm>

namespace kith {

Neighbors nearest_centres(const MatrixView& vectors, const MatrixView& centres, int64_t k, const Resources& resources) {
  const KnnParams params{.k = k, .metric = Metric::l2, .check_finite = false};
  Neighbors found(vectors.rows(), k, resources);
  call_or_count(resources, [&](const Resources& used) { knn(vectors, centres, found.view(), params, used); });
  return found;
}

void CentrePlaces::find_own(std::span<const uint32_t> rows, uint32_t* own) {
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < count; first += batch_) {
    const int64_t some = std::min(batch_, count - first);
    const MatrixBuffer vectors = listed_(rows.data() + first, some, CellSide::found);
    const Neighbors found = nearest_centres(vectors.view(), centres_, 1, resources_);
    if (counts_only(resources_)) return;
    for (int64_t i = 0; i < some; ++i) own[first + i] = static_cast<uint32_t>(found.ids(i)[0]);
  }
}

void CentrePlaces::find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                               std::span<const PlaceQuestion> questions, uint32_t* places) {
  CellRanks near(centres_, 1, resources_);
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < count; first += batch_) {
    const int64_t some = std::min(batch_, count - first);
    const MatrixBuffer vectors = listed_(rows.data() + first, some, CellSide::looking);
    if (counts_only(resources_)) return;
    near.count_nearer(vectors.view(), first, own.data() + first, questions, places);
  }
  for (size_t i = 0; i < questions.size(); ++i) {
    places[i] = questions[i].cell == own[questions[i].row] ? 0 : places[i] + 1;
  }
}

}  // namespace kith
