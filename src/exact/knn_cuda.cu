// Exact search on a GPU: the steps of knn_backend.hpp.
//
// Rows go to the device in pieces of the plan's row_tile (or lie there already: a prepared base, a matrix in device
// memory). For each piece and each tile of queries one kernel computes all keys directly in canonical arithmetic and
// one keeps every query's k best. Time is queries x rows x cols on the double-precision units; memory is the plan's
// workspace.
#include "exact/knn_backend.hpp"

#include <kith/error.hpp>

#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "exact/finite_check.hpp"
#include "exact/knn_workspace_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/select/select_cuda.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

bool lies_on(const MatrixView& matrix, int device) { return matrix.space() == MemorySpace::cuda(device); }

void check_input(const MatrixView& matrix, std::string_view what, int device) {
  if (matrix.dtype() != DType::f32 && matrix.dtype() != DType::u8) {
    throw Unsupported("exact search on a GPU takes f32 and u8, and the " + std::string(what) + " is " +
                      std::string(name_of(matrix.dtype())));
  }
  if (matrix.space().kind == MemoryKind::cuda && !lies_on(matrix, device)) {
    throw InvalidArgument("the " + std::string(what) + " lies on cuda:" + std::to_string(matrix.space().device) +
                          " and the search runs on cuda:" + std::to_string(device) +
                          "; search there, or hand it over in host memory");
  }
}

DeviceRowsView view_of(const MatrixView& matrix) {
  return {matrix.data(), matrix.dtype(), matrix.row_stride(), matrix.rows(), nullptr};
}

// Packs the rows one after the other at `target`, which holds rows x cols.
void upload(const MatrixView& rows, std::byte* target, cudaStream_t stream) {
  if (rows.empty()) return;
  constexpr int64_t kLargestPitch = INT32_MAX;  // what a two-dimensional copy takes
  const int64_t size = size_of(rows.dtype());
  const size_t width = static_cast<size_t>(rows.cols() * size);
  const size_t pitch = static_cast<size_t>(rows.row_stride() * size);
  const size_t count = static_cast<size_t>(rows.rows());
  if (width == pitch) {
    KITH_CUDA_CHECK(cudaMemcpyAsync(target, rows.data(), width * count, cudaMemcpyDefault, stream));
  } else if (rows.row_stride() * size <= kLargestPitch) {
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(target, width, rows.data(), pitch, width, count, cudaMemcpyDefault, stream));
  } else {
    for (size_t i = 0; i < count; ++i) {
      KITH_CUDA_CHECK(
          cudaMemcpyAsync(target + i * width, rows.row(static_cast<int64_t>(i)), width, cudaMemcpyDefault, stream));
    }
  }
}

struct Inspection {
  std::string_view what;  // "query" or "base"
  bool check_finite;
  int64_t first;          // the number of the first row
  double* inverse_norms;  // where they go; null where the metric needs none
  uint32_t* first_bad;    // one place on the device
};

// Fills in the inverse norms and refuses rows that are not finite. Synchronises where it checks.
void inspect(DeviceRowsView& rows, int64_t cols, const Inspection& inspection, const DeviceContext& context) {
  const bool check = inspection.check_finite && rows.dtype != DType::u8;
  if (!check && inspection.inverse_norms == nullptr) return;
  KITH_CUDA_CHECK(cudaMemsetAsync(inspection.first_bad, 0xFF, sizeof(uint32_t), context.stream()));
  launch_inspect_rows(rows, cols, inspection.inverse_norms, inspection.first_bad, context.stream());
  rows.inverse_norms = inspection.inverse_norms;
  if (!check) return;
  uint32_t first_bad = kNoBadRow;
  KITH_CUDA_CHECK(
      cudaMemcpyAsync(&first_bad, inspection.first_bad, sizeof first_bad, cudaMemcpyDeviceToHost, context.stream()));
  context.synchronize();
  if (first_bad != kNoBadRow) throw_not_finite(inspection.what, inspection.first + first_bad);
}

// A base on the device, with its inverse norms for cosine.
class PreparedBaseCuda final : public PreparedBase {
 public:
  PreparedBaseCuda(int device, const MatrixView& base, const PrepareOptions& options, const Resources& resources)
      : context_(std::make_shared<DeviceContext>(device)), device_(device) {
    rows_ = view_of(base);
    if (!lies_on(base, device)) {
      matrix_ =
          DeviceBuffer(base.rows() * base.cols() * size_of(base.dtype()), "the index's vectors", context_, resources);
      copy(base, resources);
      rows_.data = matrix_.data();
      rows_.stride = base.cols();
    }
    const int64_t norm_bytes = options.metric == Metric::cosine ? base.rows() * 8 : 0;
    norms_ = DeviceBuffer(norm_bytes, "the index's norms", context_, resources);
    const DeviceBuffer first_bad(sizeof(uint32_t), "the check for NaN", context_, resources);
    inspect(rows_, base.cols(),
            {"base", options.check_finite, options.first_row, reinterpret_cast<double*>(norms_.data()),
             reinterpret_cast<uint32_t*>(first_bad.data())},
            *context_);
    context_->synchronize();  // searches use it on streams of their own
  }

  int device() const { return device_; }
  const DeviceRowsView& rows() const { return rows_; }

 private:
  // In pieces, between which the copy can be cancelled.
  void copy(const MatrixView& base, const Resources& resources) const {
    constexpr int64_t kPieceBytes = int64_t{256} << 20;
    const int64_t row_bytes = base.cols() * size_of(base.dtype());
    const int64_t piece = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
    for (int64_t first = 0; first < base.rows(); first += piece) {
      resources.check_cancelled();
      upload(base.slice(first, std::min(piece, base.rows() - first)), matrix_.data() + first * row_bytes,
             context_->stream());
      context_->synchronize();
    }
  }

  std::shared_ptr<const DeviceContext> context_;
  int device_;
  DeviceBuffer matrix_;
  DeviceBuffer norms_;
  DeviceRowsView rows_;
};

class KnnCuda final : public KnnBackend {
 public:
  KnnCuda(const KnnProblem& problem, const KnnPlan& plan, const Resources& resources)
      : problem_(problem),
        plan_(plan),
        layout_(problem, plan),
        context_(std::make_shared<DeviceContext>(plan.device.index)),
        workspace_(layout_.bytes, "an exact search", context_, resources) {}

  void begin(const MatrixView& queries, int64_t first_query) override {
    const DeviceGuard guard(context_->device());
    check_input(queries, "query", context_->device());
    queries_ = view_of(queries);
    rows_seen_ = 0;
    if (!lies_on(queries, context_->device())) {
      upload(queries, at<std::byte>(layout_.queries), context_->stream());
      queries_.data = at<std::byte>(layout_.queries);
      queries_.stride = queries.cols();
    }
    inspect(
        queries_, problem_.cols,
        {"query", problem_.check_finite, first_query, norms_at(layout_.query_norms), at<uint32_t>(layout_.first_bad)},
        *context_);
    const size_t list_bytes = static_cast<size_t>(queries.rows() * problem_.k * 8);
    KITH_CUDA_CHECK(cudaMemsetAsync(at<uint64_t>(layout_.lists), 0xFF, list_bytes, context_->stream()));  // padding
    context_->synchronize();
  }

  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    const DeviceGuard guard(context_->device());
    for (int64_t first = 0; first < base.rows(); first += plan_.row_tile) {
      const int64_t count = std::min(plan_.row_tile, base.rows() - first);
      const DeviceRowsView piece =
          ready != nullptr ? prepared(*ready, first, count) : arrive(base.slice(first, count), first_row + first);
      for (int64_t query = 0; query < queries_.count; query += plan_.query_tile) {
        search_tile(query, std::min(plan_.query_tile, queries_.count - query), piece, first_row + first);
        context_->synchronize();  // so that progress is true and a cancelled search ends soon
        meter.add(std::min(plan_.query_tile, queries_.count - query) * count);
        meter.poll();
      }
      rows_seen_ += count;
    }
  }

  void finish(uint64_t* neighbors) override {
    const DeviceGuard guard(context_->device());
    const DeviceLists lists = lists_of(0, queries_.count);
    launch_sort(lists, rows_seen_, context_->stream());
    const size_t bytes = static_cast<size_t>(lists.queries * lists.k * 8);
    if (bytes > 0) {
      KITH_CUDA_CHECK(cudaMemcpyAsync(neighbors, lists.neighbors, bytes, cudaMemcpyDeviceToHost, context_->stream()));
    }
    context_->synchronize();
  }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(workspace_.data() + offset);
  }
  double* norms_at(int64_t offset) const { return problem_.metric == Metric::cosine ? at<double>(offset) : nullptr; }

  DeviceLists lists_of(int64_t first, int64_t count) const {
    return {at<uint64_t>(layout_.lists) + first * problem_.k, at<uint32_t>(layout_.bounds) + first, count, problem_.k};
  }

  DeviceRowsView prepared(const PreparedBase& ready, int64_t first, int64_t count) const {
    const auto* base = dynamic_cast<const PreparedBaseCuda*>(&ready);
    if (base == nullptr || base->device() != context_->device()) {
      throw InvalidState("the index is prepared for another device than cuda:" + std::to_string(context_->device()));
    }
    return slice(base->rows(), first, count);
  }

  // Brings rows to the device, unless they lie there, and checks them.
  DeviceRowsView arrive(const MatrixView& rows, int64_t first_row) const {
    check_input(rows, "base", context_->device());
    if (problem_.base_prepared) throw InvalidState("the search was planned for a prepared base and was given none");
    DeviceRowsView view = view_of(rows);
    if (!lies_on(rows, context_->device())) {
      upload(rows, at<std::byte>(layout_.rows), context_->stream());
      view.data = at<std::byte>(layout_.rows);
      view.stride = rows.cols();
    }
    const bool check = problem_.check_finite && !problem_.base_checked;
    inspect(view, problem_.cols,
            {"base", check, first_row, norms_at(layout_.row_norms), at<uint32_t>(layout_.first_bad)}, *context_);
    return view;
  }

  static DeviceRowsView slice(const DeviceRowsView& rows, int64_t first, int64_t count) {
    DeviceRowsView part = rows;
    part.data = static_cast<const std::byte*>(rows.data) + first * rows.stride * size_of(rows.dtype);
    part.count = count;
    if (rows.inverse_norms != nullptr) part.inverse_norms = rows.inverse_norms + first;
    return part;
  }

  void search_tile(int64_t first_query, int64_t count, const DeviceRowsView& rows, int64_t first_row) const {
    auto* keys = at<uint32_t>(layout_.keys);
    launch_distance(problem_.metric, slice(queries_, first_query, count), rows, problem_.cols, keys, plan_.row_tile,
                    context_->stream());
    launch_select(lists_of(first_query, count), {keys, plan_.row_tile, rows.count, first_row}, rows_seen_,
                  context_->stream());
  }

  const KnnProblem problem_;
  const KnnPlan plan_;
  const KnnWorkspace layout_;
  std::shared_ptr<const DeviceContext> context_;
  DeviceBuffer workspace_;
  DeviceRowsView queries_;
  int64_t rows_seen_ = 0;
};

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cuda(const KnnProblem& problem, const KnnPlan& plan, const Resources& resources) {
  const DeviceGuard guard(plan.device.index);
  return std::make_unique<KnnCuda>(problem, plan, resources);
}

std::shared_ptr<PreparedBase> prepare_base_cuda(int device, const MatrixView& base, const PrepareOptions& options,
                                                const Resources& resources) {
  const DeviceGuard guard(device);
  check_input(base, "base", device);
  return std::make_shared<PreparedBaseCuda>(device, base, options, resources);
}

}  // namespace kith
