#include "exact/prepared_base_cuda.hpp"

#include <kith/error.hpp>

#include "core/footprint.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/rerank/few_nearest_plan.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

struct FactsLayout : WorkspaceLayout {
  Slot<BaseBounds> bounds;
  Slot<float> centre;
  Slot<uint32_t> terms;

  FactsLayout(int64_t rows, int64_t cols) {
    bounds = take<BaseBounds>(1);
    centre = take<float>(cols);
    terms = take<uint32_t>(operand_tiles(rows) * kOperandTile);
  }
};

}  // namespace

bool lies_on(const MatrixView& matrix, int device) { return matrix.space() == MemorySpace::cuda(device); }

void check_on_device(const MatrixView& matrix, std::string_view what, int device) {
  if (matrix.space().kind == MemoryKind::cuda && !lies_on(matrix, device)) {
    throw InvalidArgument("the " + std::string(what) + " is on cuda:" + std::to_string(matrix.space().device) +
                          " and the search runs on cuda:" + std::to_string(device) +
                          "; search there, or hand it over in host memory");
  }
}

bool can_be_infinite(DType dtype) { return dtype != DType::u8 && dtype != DType::i8; }

void inspect_rows(DeviceRowsView& rows, int64_t cols, const RowFindings& findings, cudaStream_t stream) {
  if (!findings.wanted()) return;
  launch_inspect_rows(rows, cols, findings, stream);
  rows.inverse_norms = findings.inverse_norms;
}

PreparedBaseCuda::PreparedBaseCuda(int device, const MatrixView& base, const PrepareOptions& options,
                                   const Resources& resources)
    : context_(work_context(device, resources)), device_(device), metric_(options.metric), cols_(base.cols()) {
  rows_ = device_rows(base);
  if (!lies_on(base, device)) bring(base, resources);
  const int64_t norms = options.metric == Metric::cosine ? base.rows() : 0;
  norms_ = DeviceArray<double>(norms, "the index's norms", context_, resources);
  const DeviceArray<uint32_t> bad_rows(2, "the check of values", context_, resources);  // not finite, below zero
  context_->fill(bad_rows.data(), 0xFF, 2);
  const bool check = options.check_finite && can_be_infinite(base.dtype());
  // Rows in host memory were checked there.
  const bool signs = options.metric == Metric::chi_square && !base.space().host_readable() && base.dtype() != DType::u8;
  inspect_rows(rows_, base.cols(),
               {check ? bad_rows.data() : nullptr, signs ? bad_rows.data() + 1 : nullptr, norms_.data()},
               context_->stream());
  if (has_operands(options.metric, base.cols()) && base.rows() > 0) prepare_operands(base, options.metric, resources);
  uint32_t bad[2] = {kNoBadRow, kNoBadRow};
  context_->copy_values(bad, bad_rows.data(), 2);
  context_->synchronize();  // searches use it on streams of their own
  if (bad[1] != kNoBadRow) throw_negative("base", options.first_row + bad[1]);
  if (bad[0] != kNoBadRow) throw_not_finite("base", options.first_row + bad[0]);
  // Callers' streams may read them.
  for (DeviceBuffer* const buffer : {&matrix_, &operand_memory_, &terms_memory_}) {
    buffer->free_in_order_of(freeing_context(device));
  }
  norms_.free_in_order_of(freeing_context(device));
  context_ = nullptr;  // its stream is of use to others
}

ByteScreenView PreparedBaseCuda::byte_screen() const {
  const std::lock_guard lock(mutex_);
  return screen_ == nullptr ? ByteScreenView() : screen_->view;
}

int64_t PreparedBaseCuda::bytes() const {
  const std::lock_guard lock(mutex_);
  return matrix_.bytes() + norms_.bytes() + operand_memory_.bytes() + terms_memory_.bytes() +
         (screen_ == nullptr ? 0 : screen_->memory.bytes());
}

// Uses up to a quarter of the available memory. After a failure it asks for free memory again only now and then: asking
// takes longer than many searches.
void PreparedBaseCuda::expect_one(int64_t k, const Resources& resources) const {
  constexpr uint32_t kSearchesBetween = 256;
  const KeyKind kind = key_kind(metric_);
  const bool floats = rows_.dtype != DType::u8 && rows_.dtype != DType::i8;
  if (!floats || operands_.centre == nullptr || counts_only(resources) || !suits_byte_screen(kind, cols_, k)) return;
  if (byte_screen().codes != nullptr || screens_wanted_++ % kSearchesBetween != 0) return;
  const ByteScreenLayout layout(rows_.count, cols_, has_differences(kind));
  const int64_t spare = SpareDeviceMemory::of(resources);
  const int64_t beside = spare == kNoLimit ? kNoLimit : spare - bytes();
  if (layout.bytes > std::min(device_memory_left(device_, resources) / 4, beside)) return;
  const DeviceGuard guard(device_);
  auto made = std::make_shared<Screen>();
  try {
    const auto context = work_context(device_, resources);
    made->memory = DeviceBuffer(layout.bytes, "the index's copy in bytes", context, resources);
    made->view = layout.in(made->memory.data());
    if (made->view.centre != nullptr) context->copy_values(made->view.centre, operands_.centre, cols_);
    launch_byte_screen(kind, rows_, cols_, made->view, context->stream());
    context->synchronize();
    made->memory.free_in_order_of(freeing_context(device_));
  } catch (const OutOfMemory&) {
    return;  // others have taken it
  }
  const std::lock_guard lock(mutex_);
  if (screen_ == nullptr) screen_ = std::move(made);  // else another thread was first
}

// Copies in pieces; the copy can be cancelled between two of them.
void PreparedBaseCuda::bring(const MatrixView& base, const Resources& resources) {
  constexpr int64_t kPieceBytes = int64_t{256} << 20;
  const int64_t row_bytes = base.cols() * size_of(base.dtype());
  matrix_ = DeviceBuffer(base.rows() * row_bytes, "the index's vectors", context_, resources);
  rows_.data = matrix_.data();
  rows_.stride = base.cols();
  const int64_t piece = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
  RowUpload upload(wants_pinned(base.space(), base.rows() * row_bytes, resources), resources);
  ProgressMeter meter("copy", base.rows(), resources);
  for (int64_t first = 0; first < base.rows(); first += piece) {
    const MatrixView part = base.slice(first, std::min(piece, base.rows() - first));
    upload.copy(part, matrix_.data() + first * row_bytes, context_->stream(), meter);
    context_->synchronize();
    meter.add(part.rows());
    meter.poll();
  }
  meter.finish();
}

// For queries of the base's own dtype.
void PreparedBaseCuda::prepare_operands(const MatrixView& base, Metric metric, const Resources& resources) {
  const OperandType type = operand_type(key_kind(metric), base.dtype(), base.dtype(), base.cols());
  const int64_t chunks = operand_chunks(base.cols(), operand_value_bytes(type));
  operand_memory_ = DeviceBuffer(operand_bytes(base.rows(), chunks), "the index's operands", context_, resources);
  const FactsLayout layout(base.rows(), base.cols());
  terms_memory_ = DeviceBuffer(layout.bytes, "the index's operands", context_, resources);
  std::byte* const memory = terms_memory_.data();
  operands_ = {operand_memory_.data(), layout.terms.in(memory), layout.centre.in(memory), layout.bounds.in(memory)};
  make_operands(metric, type, rows_, base.cols(), operands_, nullptr, context_->stream());
}

}  // namespace kith
