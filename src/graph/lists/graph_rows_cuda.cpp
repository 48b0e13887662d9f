#include "graph/lists/graph_rows_cuda.hpp"

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "cuda/pinned_bytes.hpp"
#include "cuda/row_upload.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>

namespace kith {

GraphRowsCuda::GraphRowsCuda(std::shared_ptr<const DeviceContext> context, const MatrixView& x, const GraphRowsWish& wish,
                             const Resources& resources)
    : view_(x) {
  const int device = context->device();
  check_on_device(x, "base", device);
  if (!lies_on(x, device)) bring(context, resources);
  rows_ = device_rows(view_);

  RowFindings findings;
  const DeviceArray<uint32_t> first(2, "the first bad row", context, resources);
  if (wish.check_finite && can_be_infinite(x.dtype())) findings.first_bad = first.data();
  if (wish.metric == Metric::chi_square) findings.first_negative = first.data() + 1;
  if (wish.metric == Metric::cosine) {
    norms_ = DeviceArray<double>(x.rows(), "the rows' norms", context, resources);
    findings.inverse_norms = norms_.data();
  }
  if (!findings.wanted()) return;
  context->fill(first.data(), 0xFF, 2);
  inspect_rows(rows_, x.cols(), findings, context->stream());
  uint32_t bad[2];
  context->copy_values(bad, first.data(), 2);
  context->synchronize();
  if (bad[0] != kNoBadRow) throw_not_finite("base", bad[0]);
  if (bad[1] != kNoBadRow) throw_negative("base", bad[1]);
}

// In pieces, between which the copy can be cancelled.
void GraphRowsCuda::bring(std::shared_ptr<const DeviceContext> context, const Resources& resources) {
  constexpr int64_t kPieceBytes = int64_t{256} << 20;
  const MatrixView x = view_;
  const int64_t row_bytes = x.cols() * size_of(x.dtype());
  matrix_ = DeviceBuffer(x.rows() * row_bytes, "the rows", context, resources);
  const int64_t piece = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
  const bool pinned =
      wants_pinned(x.space(), x.rows() * row_bytes) && resources.host_memory()->available() >= 2 * kPinnedBytes;
  RowUpload upload(pinned, resources);
  ProgressMeter meter("copy", x.rows(), resources);
  for (int64_t first = 0; first < x.rows(); first += piece) {
    const MatrixView part = x.slice(first, std::min(piece, x.rows() - first));
    upload.copy(part, matrix_.data() + first * row_bytes, context->stream(), meter);
    context->synchronize();
    meter.add(part.rows());
    meter.poll();
  }
  meter.finish();
  view_ = MatrixView(matrix_.data(), x.dtype(), {x.rows(), x.cols(), x.cols()}, MemorySpace::cuda(context->device()));
}

}  // namespace kith
