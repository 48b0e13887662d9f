#include <kith/pairwise_distances.hpp>

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/dispatch.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "exact/knn_checks.hpp"
#include "exact/knn_loop.hpp"
#include "exact/metric_unit.hpp"
#include "exact/pairwise_cuda.hpp"
#include "exact/search_limit.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 256;  // of y: these stay in the cache while the block's rows of x pass over them
constexpr int64_t kBlockQueries = 64;

// A row of x for each thread.
int64_t scratch_values(int64_t cols, const Resources& resources) { return resources.threads() * cols; }

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
  const HostArray<float> scratch(scratch_values(cols, resources), "a widened row", resources);
  const int64_t row_blocks = divide_up(y.rows(), kBlockRows);
  const int64_t query_blocks = divide_up(x.rows(), kBlockQueries);
  ProgressMeter meter("distances", x.rows() * y.rows(), resources);
  parallel_for(row_blocks * query_blocks, meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task % row_blocks * kBlockRows;
    const int64_t count = std::min(kBlockRows, y.rows() - first);
    const MatrixView rows = y.slice(first, count);
    uint32_t numbers[kBlockRows];
    std::iota(numbers, numbers + count, 0u);
    float* const query = scratch.data() + slot * cols;
    const int64_t first_query = task / row_blocks * kBlockQueries;
    for (int64_t i = first_query; i < std::min(first_query + kBlockQueries, x.rows()); ++i) {
      widen_row(x, i, query);
      const double inverse_norm = canonical_inverse_norm(canonical_squared_norm_cpu(query, cols));
      float* const distances = reinterpret_cast<float*>(out.row(i)) + first;
      canonical_keys_cpu(kind, {query, inverse_norm}, rows, numbers, count, distances);
      for (int64_t j = 0; j < count; ++j) distances[j] = distance_of(params.metric, distances[j] + 0.0f);
      meter.add(count);
    }
    meter.checkpoint();
  });
  meter.finish();
}

}  // namespace

int64_t pairwise_host_bytes(const MatrixView& x, const MatrixView& y, bool with_result, const Resources& resources) {
  const int64_t result = with_result ? saturating_multiply(saturating_multiply(x.rows(), y.rows()), 4) : 0;
  const int64_t scratch = array_bytes<float>(scratch_values(x.cols(), resources));
  return result > INT64_MAX - scratch ? INT64_MAX : result + scratch;
}

MatrixBuffer pairwise_distances(const MatrixView& x, const MatrixView& y, const PairwiseParams& params,
                                const Resources& resources) {
  check_result_size(x.rows(), std::max<int64_t>(y.rows(), 1));
  const auto needed = [&] { return pairwise_host_bytes(x, y, true, resources); };
  return naming_host_limit(needed, resources, [&] {
    MatrixBuffer result(DType::f32, x.rows(), y.rows(), "the distances", resources);
    pairwise_distances(x, y, result.mutable_view(), params, resources);
    return result;
  });
}

void pairwise_distances(const MatrixView& x, const MatrixView& y, const MutableMatrixView& out,
                        const PairwiseParams& params, const Resources& resources) {
  if (x.cols() != y.cols()) {
    throw InvalidArgument(fmt::format("x has {} columns and y has {}; they must be the same", x.cols(), y.cols()));
  }
  const SearchShape shape = check_search(RowsInfo(x), RowsInfo(y), params.metric);
  if (out.dtype() != DType::f32 || out.rows() != x.rows() || out.cols() != y.rows()) {
    throw InvalidArgument(fmt::format("the output is {} {} x {}; the distances are f32, {} x {}", name_of(out.dtype()),
                                      out.rows(), out.cols(), x.rows(), y.rows()));
  }
  const SearchTask task =
      search_of(shape, {.what = Wanted::all_keys, .check_finite = params.check_finite, .result_space = out.space()});
  const Device device = resolve_device(task, resources);
  dispatch(
      device, [&] { pairwise_cpu(x, y, out, params, resources); },
      [&](int) {
        if (x.rows() > 0 && y.rows() > 0) pairwise_cuda(task, plan_knn(task, device, resources), x, y, out);
      });
}

}  // namespace kith
