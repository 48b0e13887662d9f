#include <kith/near_duplicates.hpp>

#include <kith/error.hpp>
#include <kith/knn_graph.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/range_search.hpp>

#include "core/host_array.hpp"
#include "graph/handle/row_sets.hpp"
#include "paths/near_in_cells.hpp"
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 4096;      // whose ranges are found at a time
constexpr int64_t kMostBlockRows = 8192;  // where all rows' are
constexpr int64_t kLeastBlockRows = 64;
constexpr int64_t kManyFound = 1 << 24;   // by a block; the next is smaller
constexpr int64_t kCellRows = 4096;       // of fewer all pairs are soon compared

KnnGraph graph_of(const MatrixView& x, const NearDuplicateParams& params, const Resources& resources) {
  KnnGraphParams wanted;
  wanted.k = std::min(params.k, x.rows() - 1);
  wanted.metric = params.metric;
  wanted.recall = params.exact ? 1 : params.recall;
  if (params.exact) wanted.method = GraphMethod::exact;
  wanted.check_finite = params.check_finite;
  wanted.seed = params.seed;
  return knn_graph(x, wanted, resources).to(MemorySpace::host(), resources);
}

// On a GPU the exact graph is soonest, wherever the rows lie.
bool is_for_cpu(const Resources& resources) {
  const DeviceKind kind = resources.device().kind;
  return kind == DeviceKind::cpu || (kind == DeviceKind::automatic && cuda_devices().empty());
}

bool are_one_set(const RowSets& sets, int64_t rows) {
  const uint32_t first = sets.find(0);
  for (int64_t row = 1; row < rows; ++row) {
    if (sets.find(static_cast<uint32_t>(row)) != first) return false;
  }
  return true;
}

// Each row against those behind it, a block of rows at a time, which is halved where its ranges have no room.
void join_all(const MatrixView& x, const NearDuplicateParams& params, const RowSets& sets, const Resources& resources) {
  const RangeParams wanted{.radius = params.radius, .metric = params.metric, .check_finite = false};
  const Resources quiet = resources.with_progress({});
  int64_t most = counts_only(resources) ? kLeastBlockRows : kMostBlockRows;
  for (int64_t first = 0; first < x.rows();) {
    const int64_t count = std::min(most, x.rows() - first);
    RangeNeighbors found;
    try {
      found = range_search(x.slice(first, count), x.slice(first, x.rows() - first), wanted, quiet);
    } catch (const OutOfMemory&) {
      if (most == kLeastBlockRows) throw;
      most /= 2;
      continue;
    }
    const RangeView view = found.view();
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t n = view.offsets[i]; n < view.offsets[i + 1]; ++n) {
        sets.join(static_cast<uint32_t>(first + i), static_cast<uint32_t>(first + view.ids[n]));
      }
    }
    first += count;
    resources.report({"ranges", first, x.rows()});
    resources.check_cancelled();
    if (found.size() > kManyFound) most = std::max(kLeastBlockRows, most / 2);
    if (found.size() > count && are_one_set(sets, x.rows())) return;
  }
}

void join_exactly(const MatrixView& x, const NearDuplicateParams& params, const RowSets& sets,
                  const Resources& resources) {
  if (params.check_finite && !counts_only(resources)) {
    refuse_not_finite("x", x, {0}, resources.with_progress({}));
    const bool is_large = x.rows() >= kCellRows;
    if (is_large && join_in_cells(x, {params.radius, params.metric, params.seed}, sets, resources)) return;
  }
  join_all(x, params, sets, resources);
}

void join_near(const KnnGraph& graph, float radius, const RowSets& sets, const Resources& resources) {
  for_row_blocks("join near rows", graph.rows(), resources, [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      for (int64_t i = 0; i < graph.k() && graph.distances(row)[i] <= radius; ++i) {
        if (graph.ids(row)[i] < 0) break;
        sets.join(static_cast<uint32_t>(row), static_cast<uint32_t>(graph.ids(row)[i]));
      }
    }
  });
}

// The rows whose neighbours in the graph are all within the radius, in their order: there may be more of them.
HostArray<int64_t> open_rows(const KnnGraph& graph, float radius, const Resources& resources) {
  const auto is_open = [&](int64_t row) {
    const int64_t last = graph.k() - 1;
    return graph.k() < graph.rows() - 1 && graph.ids(row)[last] >= 0 && graph.distances(row)[last] <= radius;
  };
  int64_t count = 0;
  for (int64_t row = 0; row < graph.rows(); ++row) count += is_open(row);
  HostArray<int64_t> rows(count, "rows with many near ones", resources);
  int64_t at = 0;
  for (int64_t row = 0; row < graph.rows(); ++row) {
    if (is_open(row)) rows[at++] = row;
  }
  return rows;
}

// Their ranges, a block of rows at a time.
void join_ranges(const MatrixView& x, const NearDuplicateParams& params, const HostArray<int64_t>& rows,
                 const RowSets& sets, const Resources& resources) {
  const RangeParams wanted{.radius = params.radius, .metric = params.metric, .check_finite = false};
  const int64_t block = std::min(kBlockRows, rows.size());
  MatrixBuffer queries(x.dtype(), block, x.cols(), "rows with many near ones", resources);
  for (int64_t first = 0; first < rows.size(); first += block) {
    const int64_t count = std::min(block, rows.size() - first);
    const MutableMatrixView some = queries.mutable_view().slice(0, count);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(some.row(i), x.row(rows[first + i]), static_cast<size_t>(x.cols() * size_of(x.dtype())));
    }
    const RangeNeighbors found = range_search(some, x, wanted, resources);
    const RangeView view = found.view();
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t n = view.offsets[i]; n < view.offsets[i + 1]; ++n) {
        sets.join(static_cast<uint32_t>(rows[first + i]), static_cast<uint32_t>(view.ids[n]));
      }
    }
    resources.report({"ranges", first + count, rows.size()});
    resources.check_cancelled();
  }
}

}  // namespace

void NearDuplicateParams::validate() const {
  if (metric == Metric::inner_product) {
    throw InvalidArgument("inner_product is no distance, and has no near duplicates; take cosine or l2");
  }
  if (std::isnan(radius) || radius < 0) throw InvalidArgument(fmt::format("radius = {}; it must be at least 0", radius));
  if (k < 1) throw InvalidArgument(fmt::format("k = {}; it must be at least 1", k));
  if (!(recall > 0 && recall <= 1)) {
    throw InvalidArgument(fmt::format("recall = {}; it must be above 0 and at most 1", recall));
  }
}

RowLabels near_duplicates(const MatrixView& x, const NearDuplicateParams& params, const Resources& given) {
  params.validate();
  if (params.exact && !x.space().host_readable()) {
    throw Unsupported("exact near duplicates of vectors in a GPU's memory: copy them to the host, or leave out exact");
  }
  const auto search = [&](const MatrixView& rows, const Resources& resources) {
    const RowSets sets(rows.rows(), resources);
    if (rows.rows() < 2) return sets.labels(resources);
    if (params.exact && is_for_cpu(resources)) {
      join_exactly(rows, params, sets, resources);
      return sets.labels(resources);
    }
    const KnnGraph graph = graph_of(rows, params, resources);
    join_near(graph, params.radius, sets, resources);
    if (params.exact) {
      const HostArray<int64_t> open = open_rows(graph, params.radius, resources);
      if (open.size() > 0) join_ranges(rows, params, open, sets, resources);
    }
    return sets.labels(resources);
  };
  return with_narrowed("near duplicates", "x", x, params.metric, given, search);
}

}  // namespace kith
