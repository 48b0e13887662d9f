#include <kith/pairwise_distances.hpp>

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/dispatch.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/metric_unit.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "exact/knn_plan.hpp"
#include "exact/pairwise_cuda.hpp"
#include "exact/search_checks.hpp"
#include "kernels/distance/distance_block_cpu.hpp"
#include "ranks/parts.hpp"
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFewestBlockQueries = 12;
constexpr int64_t kFewestFloatQueries = 60;  // of f32, which are not widened: rows are packed for each block of queries
constexpr int64_t kMostQueries = 216;        // of a block: rows of y are packed once for all of them
constexpr int64_t kBlocksOfAThread = 4;      // at least, where there are rows enough: threads end together
constexpr int64_t kBlockValues = 1 << 18;    // of x, widened to f32
constexpr int64_t kBlockPairs = 1 << 14;     // at least, where there are rows enough

// Memory of each thread beside the arrays.
struct BlockMemory {
  int64_t queries = 0;  // rows of x in a block
  int64_t values = 0;   // of these, widened to f32 where they are not
  int64_t bytes = 0;    // of packed pairs; 0: they are not packed

  BlockMemory(const MatrixView& x, int64_t most_queries, bool packs)
      : queries(std::min(most_queries, std::max<int64_t>(x.rows(), 1))),
        values(x.dtype() == DType::f32 ? 0 : queries * x.cols()),
        bytes(packs ? canonical_block_bytes(x.cols()) : 0) {}

  int64_t bytes_of(int threads) const { return threads * (array_bytes<float>(values) + bytes); }
};

// A row of x at a time.
BlockMemory smallest_block(const MatrixView& x) { return {x, 1, false}; }

// The best block that fits, at least the smallest.
BlockMemory block_for(const MatrixView& x, int64_t y_rows, KeyKind kind, const Resources& resources) {
  const int64_t fewest = x.dtype() == DType::f32 ? kFewestFloatQueries : kFewestBlockQueries;
  const int64_t row_blocks = divide_up(std::max<int64_t>(y_rows, 1), kDenseRows);
  const int64_t fair = divide_up(x.rows() * row_blocks, kBlocksOfAThread * resources.threads());
  const int64_t at_most = std::clamp(fair, kDenseQueries, kMostQueries);
  const int64_t most = std::clamp(kBlockValues / std::max<int64_t>(x.cols(), 1), fewest, at_most);
  const BlockMemory block(x, most, block_packs(kind, x.rows(), x.cols()));
  return block.bytes_of(resources.threads()) <= resources.host_memory()->available() ? block : smallest_block(x);
}

void check_values(const MatrixView& x, const MatrixView& y, const PairwiseParams& params, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  if (params.check_finite) {
    refuse_not_finite("x", x, {0}, quiet);
    refuse_not_finite("y", y, {0}, quiet);
  }
  if (params.metric == Metric::chi_square) {
    refuse_negative("x", x, {0}, quiet);
    refuse_negative("y", y, {0}, quiet);
  }
}

// Whether both are the same rows, so that the distance of i and j is that of j and i: its definition is symmetric bit
// by bit where no value is a NaN.
bool are_same_rows(const MatrixView& x, const MatrixView& y, const PairwiseParams& params) {
  return params.check_finite && x.data() == y.data() && x.rows() == y.rows() && x.row_stride() == y.row_stride() &&
         x.dtype() == y.dtype();
}

// The rows of x and of y of one task.
struct PairBlock {
  int64_t first_query = 0;
  int64_t query_count = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// The division of all pairs into blocks. If x and y are the same rows, blocks begin at the diagonal, and blocks left of
// it are empty.
struct PairGrid {
  int64_t rows;  // of x
  int64_t cols;  // rows of y
  int64_t queries;
  int64_t most = std::max(kDenseRows, kBlockPairs / queries);
  int64_t across = divide_up(cols, most);
  bool same = false;

  int64_t count() const { return across * divide_up(rows, queries); }
  PairBlock operator[](int64_t task) const {
    const int64_t query = task / across * queries;
    const int64_t begin = task % across * most;
    const int64_t end = std::min(begin + most, cols);
    const int64_t first = same ? std::max(begin, query) : begin;
    return {query, std::min(queries, rows - query), first, std::max<int64_t>(end - first, 0)};
  }
};

// Copies the distances of a block right of the diagonal to their mirrored places below it; returns how many. Works on a
// few rows and columns at a time, which stay in the cache.
int64_t mirror(const PairBlock& block, const MutableMatrixView& out) {
  constexpr int64_t kSide = 16;
  const int64_t end = block.first_query + block.query_count;
  const int64_t from = std::max(block.first, end);
  const int64_t to = block.first + block.count;
  for (int64_t j = from; j < to; j += kSide) {
    for (int64_t i = block.first_query; i < end; i += kSide) {
      for (int64_t row = j; row < std::min(j + kSide, to); ++row) {
        float* const below = reinterpret_cast<float*>(out.row(row));
        for (int64_t col = i; col < std::min(i + kSide, end); ++col) {
          below[col] = reinterpret_cast<const float*>(out.row(col))[row];
        }
      }
    }
  }
  return std::max<int64_t>(to - from, 0) * block.query_count;
}

void pairwise_cpu(const MatrixView& x, const MatrixView& y, const MutableMatrixView& out, const PairwiseParams& params,
                  const Resources& resources) {
  const DefaultFloatMode mode;
  check_values(x, y, params, resources);
  const KeyKind kind = key_kind(params.metric);
  const int64_t cols = x.cols();
  const BlockMemory memory = block_for(x, y.rows(), kind, resources);
  const bool as_they_lie = memory.values == 0;
  const bool same = are_same_rows(x, y, params);
  const HostArray<float> values(resources.threads() * memory.values, "the widened rows", resources);
  const HostBuffer scratch(resources.threads() * memory.bytes, "a block of pairs", resources);
  const PairGrid grid{.rows = x.rows(), .cols = y.rows(), .queries = memory.queries, .same = same};
  ProgressMeter meter("distances", x.rows() * y.rows(), resources);
  parallel_for(grid.count(), meter, resources, [&](int64_t task, int slot) {
    const PairBlock block = grid[task];
    if (block.count == 0) return;
    CanonicalQuery queries[kMostQueries];
    double inverses[kMostQueries] = {};
    if (kind == KeyKind::cosine) canonical_inverse_norms_cpu(x.slice(block.first_query, block.query_count), inverses);
    for (int64_t i = 0; i < block.query_count; ++i) {
      const int64_t row = block.first_query + i;
      float* const to = values.data() + slot * memory.values + i * cols;
      if (!as_they_lie) widen_row(x, row, to);
      queries[i] = {as_they_lie ? reinterpret_cast<const float*>(x.row(row)) : to, inverses[i]};
    }
    float* const keys = reinterpret_cast<float*>(out.row(block.first_query)) + block.first;
    const int64_t stride = out.row_stride();
    canonical_block_cpu({kind, queries, block.query_count, y.slice(block.first, block.count), keys, stride},
                        memory.bytes == 0 ? nullptr : scratch.data() + slot * memory.bytes);
    for (int64_t i = 0; i < block.query_count; ++i) {
      float* const distances = keys + i * stride;
      for (int64_t j = 0; j < block.count; ++j) distances[j] = distance_of(params.metric, distances[j] + 0.0f);
    }
    meter.add(block.query_count * block.count + (same ? mirror(block, out) : 0));
    meter.checkpoint();
  });
  meter.finish();
}

}  // namespace

MatrixBuffer pairwise_distances(const MatrixView& x, const MatrixView& y, const PairwiseParams& params,
                                const Resources& resources) {
  check_result_size(x.rows(), std::max<int64_t>(y.rows(), 1));
  return within_limits("the distances", resources, [&](const Resources& used) {
    MatrixBuffer result(DType::f32, x.rows(), y.rows(), "the distances", used);
    pairwise_distances(x, y, result.mutable_view(), params, used);
    return result;
  });
}

void pairwise_distances(const MatrixView& x, const MatrixView& y, const MutableMatrixView& out,
                        const PairwiseParams& params, const Resources& resources) {
  if (x.cols() != y.cols()) {
    throw InvalidArgument(fmt::format("x has {} columns and y has {}; they must be the same", x.cols(), y.cols()));
  }
  check_rows_dtype("rows of x", x.dtype(), params.metric);
  check_rows_dtype("rows of y", y.dtype(), params.metric);
  (void)check_search(RowsInfo(x), RowsInfo(y), params.metric);
  if (out.dtype() != DType::f32 || out.rows() != x.rows() || out.cols() != y.rows()) {
    throw InvalidArgument(fmt::format("the output is {} {} x {}; the distances are f32, {} x {}", name_of(out.dtype()),
                                      out.rows(), out.cols(), x.rows(), y.rows()));
  }
  const auto compute = [&](const MatrixView& some, const MatrixView& all, const Resources& used) {
    // Parts divide the rows of x if all memory is readable by all of them.
    const bool on_host = some.space().host_readable() && all.space().host_readable() && out.space().host_readable();
    if (is_shared(used) && on_host) {
      return share_out(some.rows(), 1, used, [&](RankPart share, const Resources& part) {
        try {
          pairwise_distances(some.slice(share.first, share.count), all, out.slice(share.first, share.count), params,
                             part);
        } catch (const RefusedRow& refused) {
          refused.throw_as(refused.what_row(), refused.row() + (refused.what_row() == "y" ? 0 : share.first));
        }
      });
    }
    const SearchTask task =
        search_of(check_search(RowsInfo(some), RowsInfo(all), params.metric),
                  {.what = Wanted::all_keys, .check_finite = params.check_finite, .result_space = out.space()});
    const Device device = resolve_device(task, used);
    const auto least = [&] {
      if (device.kind == DeviceKind::cpu) return Footprint{smallest_block(some).bytes_of(used.threads())};
      return out.empty() ? Footprint() : least_plan(task, device, used);
    };
    within_limits("the distances", used, least, [&] {
      dispatch(
          device, [&] { pairwise_cpu(some, all, out, params, used); },
          [&](int) {
            if (!out.empty()) pairwise_cuda(task, plan_knn(task, device, used), some, all, out);
          });
    });
  };
  with_narrowed("the distances", {"x", x, x.data() == y.data() ? "x" : "y", y}, params.metric, resources, compute);
}

}  // namespace kith
