#include "graph/build/cells/cell_params.hpp"

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"

#include <fmt/format.h>

namespace kith {

KMeansParams cell_training(const CellsParams& params) {
  constexpr int64_t kIterations = 6;
  KMeansParams training;
  training.clusters = params.cells;
  training.iterations = kIterations;
  training.init = KMeansInit::random;
  training.seed = params.seed;
  training.compute_labels = false;
  training.check_finite = false;
  return training;
}

KMeans learn_cells(const MatrixView& sample, const CellsParams& params, const Resources& resources) {
  KMeans means(cell_training(params));
  try {
    means.fit(sample, {}, resources);
  } catch (const NamedLimit& refused) {  // which speaks of clusters
    const bool host = refused.which() == "host";
    const int64_t left = (host ? resources.host_memory() : resources.device_memory())->available();
    throw NamedLimit(refused.which(), refused.bytes_needed(),
                     fmt::format("not enough memory to learn {} cells from {} rows: the {} memory limit leaves {}; "
                                 "raise the limit, or lower cells or the threads",
                                 params.cells, sample.rows(), refused.which(), format_bytes(left)));
  }
  return means;
}

}  // namespace kith
