#include "graph/build/cells/cell_params.hpp"

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"

#include <fmt/format.h>

namespace kith {

KMeansParams cell_training(const CellsWish& wish) {
  constexpr int64_t kIterations = 6;
  KMeansParams params;
  params.clusters = wish.cells;
  params.iterations = kIterations;
  params.init = KMeansInit::random;
  params.seed = wish.seed;
  params.compute_labels = false;
  params.check_finite = false;
  return params;
}

KMeans learn_cells(const MatrixView& sample, const CellsWish& wish, const Resources& resources) {
  KMeans means(cell_training(wish));
  try {
    means.fit(sample, {}, resources);
  } catch (const NamedLimit& refused) {  // which speaks of clusters
    const bool host = refused.which() == "host";
    const int64_t left = (host ? resources.host_memory() : resources.device_memory())->available();
    throw NamedLimit(refused.which(), refused.bytes_needed(),
                     fmt::format("not enough memory to learn {} cells from {} rows: the {} memory limit leaves {}; "
                                 "raise the limit, or lower cells or the threads",
                                 wish.cells, sample.rows(), refused.which(), format_bytes(left)));
  }
  return means;
}

}  // namespace kith
