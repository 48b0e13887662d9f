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
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kFewestBlockQueries = 12;
constexpr int64_t kFewestFloatQueries = 60;  // of f32, which are not widened: rows are packed for each block of queries
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

// That, where the limit has no room for more.
BlockMemory block_for(const MatrixView& x, KeyKind kind, const Resources& resources) {
  const int64_t fewest = x.dtype() == DType::f32 ? kFewestFloatQueries : kFewestBlockQueries;
  const int64_t most = std::clamp(kBlockValues / std::max<int64_t>(x.cols(), 1), fewest, kDenseQueries);
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

void pairwise_cpu(const MatrixView& x, const MatrixView& y, const MutableMatrixView& out, const PairwiseParams& params,
                  const Resources& resources) {
  const DefaultFloatMode mode;
  check_values(x, y, params, resources);
  const KeyKind kind = key_kind(params.metric);
  const int64_t cols = x.cols();
  const BlockMemory block = block_for(x, kind, resources);
  const bool as_they_lie = block.values == 0;
  const HostArray<float> values(resources.threads() * block.values, "the widened rows", resources);
  const HostBuffer scratch(resources.threads() * block.bytes, "a block of pairs", resources);
  const int64_t block_rows = std::max(kDenseRows, kBlockPairs / block.queries);
  const int64_t row_blocks = divide_up(y.rows(), block_rows);
  const int64_t query_blocks = divide_up(x.rows(), block.queries);
  ProgressMeter meter("distances", x.rows() * y.rows(), resources);
  parallel_for(row_blocks * query_blocks, meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task % row_blocks * block_rows;
    const int64_t first_query = task / row_blocks * block.queries;
    const int64_t count = std::min(block_rows, y.rows() - first);
    const int64_t query_count = std::min(block.queries, x.rows() - first_query);
    CanonicalQuery queries[kDenseQueries];
    double inverses[kDenseQueries] = {};
    if (kind == KeyKind::cosine) canonical_inverse_norms_cpu(x.slice(first_query, query_count), inverses);
    for (int64_t i = 0; i < query_count; ++i) {
      float* const to = values.data() + slot * block.values + i * cols;
      if (!as_they_lie) widen_row(x, first_query + i, to);
      queries[i] = {as_they_lie ? reinterpret_cast<const float*>(x.row(first_query + i)) : to, inverses[i]};
    }
    float* const keys = reinterpret_cast<float*>(out.row(first_query)) + first;
    const int64_t stride = out.row_stride();
    canonical_block_cpu({kind, queries, query_count, y.slice(first, count), keys, stride},
                        block.bytes == 0 ? nullptr : scratch.data() + slot * block.bytes);
    for (int64_t i = 0; i < query_count; ++i) {
      float* const distances = keys + i * stride;
      for (int64_t j = 0; j < count; ++j) distances[j] = distance_of(params.metric, distances[j] + 0.0f);
    }
    meter.add(query_count * count);
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
