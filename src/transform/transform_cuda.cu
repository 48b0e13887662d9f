#include "transform/transform_cuda.hpp"

#include <kith/pairwise_distances.hpp>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/launch.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace kith {
namespace {

// Rows on a GPU, value by value: widened to f32 with columns behind them, then shifted or scaled. One pass, bound by
// memory; the same operations, and so bits, as on the CPU.
// A warp for each row: neighbouring threads take neighbouring columns.

struct RowMap {
  int64_t in = 0;
  int64_t out = 0;                        // columns; those behind `in` are zero
  float behind = 0;                       // but for the first of them
  const float* offset = nullptr;          // added, one for each column that comes out; device memory
  float sign = 1;                         // 1 or -1, of the offset
  const double* inverse_norms = nullptr;  // what each row is multiplied by in float64; device memory
};

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    map_rows_kernel(DeviceRowsView rows, RowMap map, float* to, int64_t stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= rows.count) return;
  const T* const values = rows.row<T>(row);
  float* const out = to + row * stride;
  const double inverse = map.inverse_norms != nullptr ? map.inverse_norms[row] : 1.0;
  for (int64_t c = threadIdx.x % 32; c < map.out; c += 32) {
    float value = c < map.in ? static_cast<float>(values[c]) : c == map.in ? map.behind : 0.0f;
    if (map.offset != nullptr) value = __fadd_rn(value, map.sign * map.offset[c]);
    if (map.inverse_norms != nullptr) value = static_cast<float>(static_cast<double>(value) * inverse);
    out[c] = value;
  }
}

// Enqueues and returns. `to` is f32, `stride` values from row to row.
void launch_map_rows(const DeviceRowsView& rows, const RowMap& map, float* to, int64_t stride, cudaStream_t stream) {
  visit_dtype(rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    launch(map_rows_kernel<T>, Grid::of(divide_up(rows.count, kWarps), kThreads), stream, rows, map, to, stride);
  });
}

constexpr int64_t kPieceBytes = int64_t{256} << 20;  // of the widest rows
constexpr int64_t kManyRows = 1024;                  // though they are wide
constexpr int64_t kLeastRows = 32;                   // though memory is short

// The parts of a step: a pass over the values, or a product with a matrix in host memory.
struct Pass {
  int64_t in = 0;
  int64_t out = 0;
  HostArray<float> matrix = {};  // out x in, of a product
  RowMap map = {};               // else
  bool scales = false;           // to length 1
  HostArray<float> shift = {};   // what is added, on the host
};

Pass map_pass(int64_t from, int64_t to, float sign, const std::vector<float>* offset, const Resources& resources) {
  Pass pass{.in = from, .out = to, .map = {.in = std::min(from, to), .out = to, .sign = sign}};
  if (offset != nullptr) {
    pass.shift = HostArray<float>(to, "an offset", resources);
    if (!counts_only(resources)) std::copy(offset->begin(), offset->end(), pass.shift.begin());
  }
  return pass;
}

void add_passes(const TransformRun& run, std::vector<Pass>& all, const Resources& resources) {
  const TransformParts& parts = *run.parts;
  const int64_t from = run.forward ? parts.in : parts.out;
  const int64_t to = run.forward ? parts.out : parts.in;
  if (parts.kind != TransformParts::Kind::linear) {
    const bool shifts = parts.kind == TransformParts::Kind::shift;
    all.push_back(map_pass(from, to, run.forward ? 1.0f : -1.0f, shifts ? &parts.offset : nullptr, resources));
    all.back().scales = parts.kind == TransformParts::Kind::unit_length && run.forward;
    return;
  }
  const bool has_offset = !parts.offset.empty();
  if (has_offset && run.forward) {
    all.push_back(map_pass(from, from + 1, 1.0f, nullptr, resources));
    all.back().map.behind = 1.0f;
  } else if (has_offset) {
    all.push_back(map_pass(from, from, -1.0f, &parts.offset, resources));
  }
  const int64_t cols = from + (has_offset && run.forward ? 1 : 0);
  Pass product{.in = cols, .out = to, .matrix = HostArray<float>(cols * to, "a transform", resources)};
  for (int64_t j = 0; j < to && !counts_only(resources); ++j) {
    for (int64_t i = 0; i < from; ++i) {
      product.matrix[j * cols + i] =
          parts.matrix[static_cast<size_t>(run.forward ? j * parts.in + i : i * parts.in + j)];
    }
    if (cols > from) product.matrix[j * cols + from] = parts.offset[static_cast<size_t>(j)];
  }
  all.push_back(std::move(product));
}

MutableMatrixView on_device(const DeviceBuffer& buffer, int64_t rows, int64_t cols, DType dtype, int device) {
  return {buffer.data(), dtype, {rows, cols, cols}, MemorySpace::cuda(device)};
}

// Runs all passes on a piece of rows, which stays on the device from the first to the last.
class PieceRun {
 public:
  PieceRun(std::vector<Pass> passes, const MatrixView& rows, const MutableMatrixView& out, int device,
           const Resources& resources)
      : passes_(std::move(passes)),
        rows_(rows),
        out_(out),
        device_(device),
        resources_(resources),
        context_(std::make_shared<const DeviceContext>(device, resources.options().stream)) {
    int64_t widest = std::max(rows.cols(), out.cols());
    int64_t offsets = 0;
    for (const Pass& pass : passes_) {
      widest = std::max({widest, pass.in, pass.out});
      offsets += pass.shift.size();
    }
    // Rows of a host, two buffers in turn, and what products take beside.
    const int64_t left = std::min(resources.device_memory(device)->available(), SpareDeviceMemory::of(resources));
    const int64_t most = std::min(rows.rows(), std::max(kManyRows, kPieceBytes / (4 * widest)));
    piece_ = std::clamp(left / (8 * 4 * widest), std::min(most, kLeastRows), most);
    if (!lies_on(rows, device)) given_ = make(piece_ * rows.cols() * size_of(rows.dtype()));
    const bool lands = lies_on(out, device);
    const size_t between = passes_.size() - (lands ? 1 : 0);
    for (size_t b = 0; b < std::min<size_t>(between, 2); ++b) between_[b] = make(piece_ * widest * 4);
    const bool scales = std::any_of(passes_.begin(), passes_.end(), [](const Pass& pass) { return pass.scales; });
    inverses_ = DeviceArray<double>(scales ? piece_ : 0, kPurpose, context_, resources_);
    offsets_ = DeviceArray<float>(offsets, kPurpose, context_, resources_);
    float* at = offsets_.data();
    for (Pass& pass : passes_) {
      if (pass.shift.size() == 0) continue;
      context_->copy_values(at, pass.shift.data(), pass.shift.size());
      pass.map.offset = at;
      at += pass.shift.size();
    }
  }

  void run() {
    const int64_t all = counts_only(resources_) ? piece_ : rows_.rows();  // each piece takes the same
    ProgressMeter meter("transform", all, resources_);
    for (int64_t first = 0; first < all; first += piece_) {
      const int64_t count = std::min(piece_, all - first);
      run_piece(first, count);
      meter.add(count);
      meter.poll();
    }
    meter.finish();
  }

 private:
  static constexpr auto kPurpose = "rows between transforms";

  DeviceBuffer make(int64_t bytes) const { return {bytes, kPurpose, context_, resources_}; }

  void run_piece(int64_t first, int64_t count) {
    MatrixView from = rows_.slice(first, count);
    if (!lies_on(rows_, device_)) {
      copy_to_device(from, given_.data(), device_, quiet());
      from = on_device(given_, count, rows_.cols(), rows_.dtype(), device_);
    }
    for (size_t p = 0; p < passes_.size(); ++p) {
      const Pass& pass = passes_[p];
      const bool last = p + 1 == passes_.size() && lies_on(out_, device_);
      const MutableMatrixView to =
          last ? out_.slice(first, count) : on_device(between_[p % 2], count, pass.out, DType::f32, device_);
      if (pass.matrix.size() > 0) {
        const MatrixView matrix(pass.matrix.data(), pass.out, pass.in);
        call_or_count(quiet(), [&](const Resources& used) {
          pairwise_distances(from, matrix, to, {Metric::inner_product, false}, used);
        });
      } else {
        map_piece(pass, from, to);
      }
      from = to;
    }
    if (!lies_on(out_, device_)) {
      context_->copy_rows(out_.slice(first, count), from);
      context_->synchronize();
    }
  }

  void map_piece(const Pass& pass, const MatrixView& from, const MutableMatrixView& to) {
    DeviceRowsView rows = device_rows(from);
    RowMap map = pass.map;
    if (pass.scales) {
      launch_inspect_rows(rows, from.cols(), {.inverse_norms = inverses_.data()}, context_->stream());
      map.inverse_norms = inverses_.data();
    }
    launch_map_rows(rows, map, static_cast<float*>(to.data()), to.row_stride(), context_->stream());
    context_->synchronize();  // a product may use another stream
  }

  Resources quiet() const { return resources_.with_progress({}).with_device(Device::cuda(device_)); }

  std::vector<Pass> passes_;
  const MatrixView& rows_;
  const MutableMatrixView& out_;
  int device_;
  const Resources& resources_;
  std::shared_ptr<const DeviceContext> context_;
  int64_t piece_ = 0;
  DeviceBuffer given_;
  DeviceBuffer between_[2];
  DeviceArray<double> inverses_;
  DeviceArray<float> offsets_;
};

}  // namespace

void transform_cuda(const std::vector<TransformRun>& steps, const MatrixView& rows, const MutableMatrixView& out,
                    int device, const Resources& resources) {
  if (rows.rows() == 0) return;
  const DeviceGuard guard(device);
  std::vector<Pass> passes;
  for (const TransformRun& step : steps) add_passes(step, passes, resources);
  PieceRun(std::move(passes), rows, out, device, resources).run();
}

}  // namespace kith
