#include "graph/build/cells/cell_space.hpp"

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/row_blocks.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 512;

template <typename Body>
void for_rows(int64_t rows, const Resources& resources, const Body& body) {
  const auto each = [&](int64_t first, int64_t end, int slot) {
    for (int64_t row = first; row < end; ++row) body(row, slot);
  };
  for_row_blocks("cells", rows, resources.with_progress({}), each, kRowsPerTask);
}

}  // namespace

double longest_row(const MatrixView& x, Metric metric, const Resources& resources) {
  if (metric != Metric::inner_product) return 0;
  const HostArray<float> rows(resources.threads() * x.cols(), "the longest row", resources);
  std::vector<double> longest(static_cast<size_t>(resources.threads()), 0.0);
  for_rows(x.rows(), resources, [&](int64_t row, int slot) {
    float* const values = rows.data() + slot * x.cols();
    widen_row(x, row, values);
    double& most = longest[static_cast<size_t>(slot)];
    most = std::max(most, canonical_squared_norm_cpu(values, x.cols()));
  });
  return *std::max_element(longest.begin(), longest.end());
}

CellSpace::CellSpace(const MatrixView& x, Metric metric, const Resources& resources)
    : CellSpace(x, metric, longest_row(x, metric, resources)) {}

void CellSpace::make(int64_t row, CellSide side, float* out) const {
  widen_row(x_, row, out);
  if (is_identity()) return;
  const double squared = canonical_squared_norm_cpu(out, x_.cols());
  if (extra_) {
    out[x_.cols()] = side == CellSide::found ? static_cast<float>(std::sqrt(std::max(0.0, longest_ - squared))) : 0.0f;
    return;
  }
  const double inverse = canonical_inverse_norm(squared);
  for (int64_t c = 0; c < x_.cols(); ++c) out[c] = static_cast<float>(out[c] * inverse);
}

MatrixBuffer CellSpace::memory_for(int64_t rows, const Resources& resources) const {
  return is_identity() ? MatrixBuffer() : MatrixBuffer(DType::f32, rows, cols(), "rows as cells see them", resources);
}

MatrixView CellSpace::range(int64_t first, int64_t count, CellSide side, MatrixBuffer& memory,
                            const Resources& resources) const {
  if (is_identity()) return x_.slice(first, count);
  const MutableMatrixView out = memory.mutable_view();
  for_rows(count, resources, [&](int64_t i, int) { make(first + i, side, typed_row<float>(out, i)); });
  return out.slice(0, count);
}

MatrixBuffer CellSpace::listed(const uint32_t* rows, int64_t count, CellSide side, const Resources& resources) const {
  MatrixBuffer made(DType::f32, count, cols(), "rows as cells see them", resources);
  const MutableMatrixView out = made.mutable_view();
  for_rows(count, resources, [&](int64_t i, int) { make(rows[i], side, typed_row<float>(out, i)); });
  return made;
}

}  // namespace kith
