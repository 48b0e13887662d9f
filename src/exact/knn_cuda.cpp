// Exact search on a GPU: the steps of knn_backend.hpp.
//
// Rows go to the device in pieces (or lie there already: a prepared base, a matrix in device memory). The product
// engine (product_search_cuda.hpp) searches a piece for a batch of queries at a time and its lists are merged. The
// direct engine computes, for each piece and tile of queries, all keys in canonical arithmetic and keeps every query's
// k best: queries x rows x cols on the double-precision units. Memory is the plan's workspace.
#include "exact/knn_backend.hpp"

#include <kith/error.hpp>

#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "exact/finite_check.hpp"
#include "exact/knn_workspace_cuda.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/product_search_cuda.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

// Whether a matrix holds values below zero is looked at on the host.
void check_signs(const MatrixView& matrix, std::string_view what, int64_t first_row, const Resources& resources) {
  if (!matrix.space().host_readable()) {
    throw Unsupported("chi_square looks for values below zero on the host; hand the " + std::string(what) +
                      " over in host memory");
  }
  refuse_negative(what, matrix, {first_row}, resources);
}

class KnnCuda final : public KnnBackend {
 public:
  KnnCuda(const KnnProblem& problem, const KnnPlan& plan, const Resources& resources)
      : problem_(problem),
        plan_(plan),
        layout_(problem, plan),
        resources_(resources),
        context_(std::make_shared<DeviceContext>(plan.device.index, resources.options().stream)),
        workspace_(layout_.bytes, "an exact search", context_, resources),
        upload_(plan.pinned_bytes > 0, resources),
        products_(problem_, plan_, layout_, workspace_.data(), context_->stream()) {}

  void begin(const MatrixView& queries, int64_t first_query) override {
    const DeviceGuard guard(context_->device());
    check_on_device(queries, "query", context_->device());
    if (problem_.metric == Metric::chi_square) check_signs(queries, "query", first_query, resources_);
    queries_ = device_rows(queries);
    first_query_ = first_query;
    rows_seen_ = 0;
    if (!lies_on(queries, context_->device())) {
      ProgressMeter meter("copy", queries.rows(), resources_);
      upload_.copy(queries, at<std::byte>(layout_.queries), context_->stream(), meter);
      queries_.data = at<std::byte>(layout_.queries);
      queries_.stride = queries.cols();
    }
    KITH_CUDA_CHECK(cudaMemsetAsync(status(), 0xFF, sizeof(KnnStatus), context_->stream()));
    // Products look for queries that are not finite where they round them, and write every list.
    const bool products = plan_.cuda_engine == CudaEngine::product;
    const bool check = problem_.check_finite && can_be_infinite(queries_.dtype) && !products;
    inspect_rows(queries_, problem_.cols, norms_at(layout_.query_norms), check ? &status()->bad_query : nullptr,
                 context_->stream());
    if (products) return;
    const size_t list_bytes = static_cast<size_t>(queries.rows() * problem_.k * 8);
    KITH_CUDA_CHECK(cudaMemsetAsync(at<uint64_t>(layout_.lists), 0xFF, list_bytes, context_->stream()));  // padding
  }

  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    const DeviceGuard guard(context_->device());
    const bool products = plan_.cuda_engine == CudaEngine::product;
    const int64_t step = products ? plan_.product.rows : plan_.row_tile;
    for (int64_t first = 0; first < base.rows(); first += step) {
      const int64_t count = std::min(step, base.rows() - first);
      ProductBase piece;
      piece.first_row = first_row + first;
      if (ready != nullptr) {
        take_prepared(*ready, first, count, piece);
      } else {
        piece.rows = arrive(base.slice(first, count), piece.first_row, meter);
      }
      if (products) {
        search_products(piece, ready != nullptr, meter);
      } else {
        search_direct(piece, meter);
      }
      rows_seen_ += count;
    }
  }

  void finish(uint64_t* neighbors) override {
    const DeviceGuard guard(context_->device());
    const DeviceLists lists = sorted_lists();
    const size_t bytes = static_cast<size_t>(lists.queries * lists.k * 8);
    if (bytes > 0) {
      KITH_CUDA_CHECK(cudaMemcpyAsync(neighbors, lists.neighbors, bytes, cudaMemcpyDeviceToHost, context_->stream()));
    }
    context_->synchronize();
  }

  void finish_on_device(const NeighborsView& out) override {
    const DeviceGuard guard(context_->device());
    launch_write_neighbors(problem_.metric, sorted_lists(), out, context_->stream());
    if (rows_seen_ == 0) (void)read_status(0);  // a search of nothing has looked at its queries all the same
  }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(workspace_.data() + offset);
  }

  DeviceLists sorted_lists() const {
    const DeviceLists lists = lists_of(0, queries_.count);
    if (plan_.cuda_engine == CudaEngine::direct) launch_sort(lists, rows_seen_, context_->stream());
    return lists;
  }
  KnnStatus* status() const { return at<KnnStatus>(layout_.status); }
  double* norms_at(int64_t offset) const { return problem_.metric == Metric::cosine ? at<double>(offset) : nullptr; }

  DeviceLists lists_of(int64_t first, int64_t count) const {
    return {at<uint64_t>(layout_.lists) + first * problem_.k, at<uint32_t>(layout_.bounds) + first, count, problem_.k};
  }

  void take_prepared(const PreparedBase& ready, int64_t first, int64_t count, ProductBase& piece) const {
    const auto* base = dynamic_cast<const PreparedBaseCuda*>(&ready);
    if (base == nullptr || base->device() != context_->device()) {
      throw InvalidState("the index is prepared for another device than cuda:" + std::to_string(context_->device()));
    }
    piece.rows = slice_rows(base->rows(), first, count);
    if (plan_.product.operands_ready) {
      const int64_t chunks = operand_chunks(problem_.cols, operand_value_bytes(plan_.product.operands));
      piece.operands = base->operands().from(first, chunks);
    }
  }

  bool checks_base() const {
    return problem_.check_finite && !problem_.base_checked && can_be_infinite(problem_.base_dtype);
  }

  // Brings rows to the device, unless they lie there, and looks at them.
  DeviceRowsView arrive(const MatrixView& rows, int64_t first_row, ProgressMeter& meter) {
    check_on_device(rows, "base", context_->device());
    if (problem_.metric == Metric::chi_square && !problem_.base_checked)
      check_signs(rows, "base", first_row, resources_);
    if (problem_.base_prepared) throw InvalidState("the search was planned for a prepared base and was given none");
    DeviceRowsView view = device_rows(rows);
    if (!lies_on(rows, context_->device())) {
      upload_.copy(rows, at<std::byte>(layout_.rows), context_->stream(), meter);
      view.data = at<std::byte>(layout_.rows);
      view.stride = rows.cols();
    }
    // Products look for rows that are not finite where they round them.
    const bool check = checks_base() && plan_.cuda_engine == CudaEngine::direct;
    inspect_rows(view, problem_.cols, norms_at(layout_.row_norms), check ? &status()->bad_row : nullptr,
                 context_->stream());
    if (check) (void)read_status(first_row);
    return view;
  }

  // Waits, and refuses what is not finite.
  KnnStatus read_status(int64_t first_row) const {
    KnnStatus read;
    KITH_CUDA_CHECK(cudaMemcpyAsync(&read, status(), sizeof read, cudaMemcpyDeviceToHost, context_->stream()));
    context_->synchronize();
    if (read.bad_query != kNoBadRow) throw_not_finite("query", first_query_ + read.bad_query);
    if (read.bad_row != kNoBadRow) throw_not_finite("base", first_row + read.bad_row);
    return read;
  }

  void search_products(ProductBase& piece, bool prepared, ProgressMeter& meter) const {
    if (!prepared || !plan_.product.operands_ready) {
      piece.operands = products_.staged_operands();
      make_operands(problem_.metric, plan_.product.operands, piece.rows, problem_.cols, piece.operands,
                    checks_base() ? &status()->bad_row : nullptr, context_->stream());
    }
    for (int64_t first = 0; first < queries_.count; first += plan_.product.queries) {
      const DeviceRowsView batch = slice_rows(queries_, first, std::min(plan_.product.queries, queries_.count - first));
      uint64_t* const lists = lists_of(first, batch.count).neighbors;
      uint64_t* const found = rows_seen_ == 0 ? lists : at<uint64_t>(layout_.found);
      products_.search(batch, first, piece, found);
      const KnnStatus done = read_status(piece.first_row);
      if (done.failed > 0) {
        const int64_t directly = products_.search_failed(done.failed, batch, piece, found);
        resources_.log(LogLevel::info, std::to_string(done.failed) + " of " + std::to_string(batch.count) +
                                           " queries have many rows that are about as near: " +
                                           std::to_string(directly) + " were searched directly");
      }
      if (found != lists) launch_merge_lists(found, lists, batch.count, problem_.k, context_->stream());
      meter.add(batch.count * piece.rows.count);
      meter.poll();
    }
  }

  void search_direct(const ProductBase& piece, ProgressMeter& meter) const {
    auto* keys = at<uint32_t>(layout_.keys);
    for (int64_t first = 0; first < queries_.count; first += plan_.query_tile) {
      const DeviceRowsView tile = slice_rows(queries_, first, std::min(plan_.query_tile, queries_.count - first));
      launch_distance(problem_.metric, tile, piece.rows, problem_.cols, keys, plan_.row_tile, context_->stream());
      launch_select(lists_of(first, tile.count), {keys, plan_.row_tile, piece.rows.count, piece.first_row}, rows_seen_,
                    context_->stream());
      (void)read_status(piece.first_row);  // so that progress is true and a cancelled search ends soon
      meter.add(tile.count * piece.rows.count);
      meter.poll();
    }
  }

  const KnnProblem problem_;
  const KnnPlan plan_;
  const KnnWorkspace layout_;
  const Resources resources_;
  std::shared_ptr<const DeviceContext> context_;
  DeviceBuffer workspace_;
  RowUpload upload_;
  ProductSearch products_;
  DeviceRowsView queries_;
  int64_t first_query_ = 0;
  int64_t rows_seen_ = 0;
};

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cuda(const KnnProblem& problem, const KnnPlan& plan, const Resources& resources) {
  const DeviceGuard guard(plan.device.index);
  return std::make_unique<KnnCuda>(problem, plan, resources);
}

void write_nothing_cuda(Metric metric, const NeighborsView& out, const Resources& resources) {
  const DeviceGuard guard(out.space.device);
  const DeviceContext context(out.space.device, resources.options().stream);
  launch_write_neighbors(metric, DeviceLists(), out, context.stream());
}

std::shared_ptr<PreparedBase> prepare_base_cuda(int device, const MatrixView& base, const PrepareOptions& options,
                                                const Resources& resources) {
  const DeviceGuard guard(device);
  check_on_device(base, "base", device);
  return std::make_shared<PreparedBaseCuda>(device, base, options, resources);
}

}  // namespace kith
