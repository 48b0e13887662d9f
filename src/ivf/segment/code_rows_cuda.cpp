#include "ivf/segment/code_rows_cuda.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/row_upload.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/segment/coding_steps_cuda.hpp"
#include "quantize/additive/code_norms_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace kith {

namespace {

constexpr uint64_t kNothingLost = ~uint64_t{0};
constexpr int64_t kPieceBytes = int64_t{512} << 20;  // of rows as f32
constexpr int64_t kRowBytes = 24;                    // of each row beside its codes, while they are sorted
constexpr int64_t kPieceRowBytes = 160;              // of each row of a piece beside its values

// Of a row of a piece.
int64_t piece_bytes(const MatrixView& rows, int64_t code_bytes) {
  const int64_t as_halves = 2 * rows.cols() + 128;
  const int64_t brought = rows.space().host_readable() ? rows.cols() * size_of(rows.dtype()) : 0;
  return brought + 4 * rows.cols() + as_halves + code_bytes + kPieceRowBytes;
}

int64_t device_room(int device, const Resources& resources) {
  const DeviceInfo gpu = usable_gpu(Device::cuda(device));
  return std::min(gpu.memory_free, resources.device_memory(device)->available());
}

int64_t piece_rows(const MatrixView& rows, int64_t code_bytes, int64_t room) {
  constexpr int64_t kShare = 4;  // of the room
  const int64_t most = std::min(kPieceBytes / (rows.cols() * 4), room / kShare / piece_bytes(rows, code_bytes));
  return std::clamp<int64_t>(most, 1, std::max<int64_t>(rows.rows(), 1));
}

}  // namespace

int64_t rows_coded_together(int device, const IvfModel& model, const Resources& resources) {
  const int64_t code_bytes = model.codec->format().bytes();
  return std::max<int64_t>(1, device_room(device, resources) / 2 / (2 * code_bytes + kRowBytes));
}

Segment code_rows_cuda(int device, const IvfModel& model, const MatrixView& rows, int64_t first_row,
                       const Resources& given) {
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, given.options().stream);
  const Resources resources = given.with_device(Device::cuda(device)).with_stream(context->stream()).with_progress({});
  const int64_t cols = rows.cols();
  const int64_t code_bytes = model.codec->format().bytes();
  const bool here = !rows.space().host_readable();
  const auto buffer = [&](int64_t bytes, std::string_view purpose) {
    return DeviceBuffer(bytes, purpose, context, resources);
  };
  const std::shared_ptr<const GpuModelCuda> there = gpu_model(device, model, resources);
  const DeviceCodec& codec = there->codec();
  const auto segment =
      std::make_shared<ListSegment>(device, model.lists(), rows.rows(), code_bytes, given.with_progress({}));
  const DeviceArray<int32_t> labels(rows.rows(), "the rows' lists", context, resources);
  const DeviceArray<uint8_t> codes(rows.rows() * code_bytes, "codes on the device", context, resources);
  {
    const int64_t piece = piece_rows(rows, code_bytes, device_room(device, resources));
    const int64_t row_bytes = cols * size_of(rows.dtype());
    std::optional<ListLabels> search;
    if (model.has_centres()) search.emplace(model, *there, piece, rows.dtype(), context, resources);
    const DeviceBuffer brought = buffer(here ? 0 : piece * row_bytes, "rows on the device");
    const DeviceArray<float> residuals(piece * cols, "rows on the device", context, resources);
    const DeviceBuffer scratch = buffer(codec.scratch_bytes(DType::f32, piece), "the making of codes");
    const DeviceArray<uint64_t> lost(1, "the making of codes", context, resources);
    const bool pinned = !here && wants_pinned(rows.space(), rows.rows() * row_bytes) &&
                        resources.host_memory()->available() > 2 * kPinnedBytes;
    RowUpload upload(pinned, resources, here ? 0 : row_bytes);
    ProgressMeter meter("encode", rows.rows(), given);
    context->fill(lost.data(), 0xFF, 1);
    if (!model.has_centres()) context->fill(labels.data(), 0, labels.size());
    for (int64_t first = 0; first < rows.rows(); first += piece) {
      const int64_t count = std::min(piece, rows.rows() - first);
      MatrixView some = rows.slice(first, count);
      if (!here) {
        upload.copy(some, brought.data(), context->stream(), meter);
        some = {brought.data(), rows.dtype(), {count, cols, cols}, MemorySpace::cuda(device)};
      }
      if (search) search->find(some, labels.data() + first, meter);
      launch_residuals({{some.data(), some.dtype(), some.row_stride(), count},
                        cols,
                        model.residual ? there->centres()->data() : nullptr,
                        labels.data() + first,
                        model.lists(),
                        residuals.data()},
                       context->stream());
      codec.encode({residuals.data(), DType::f32, cols, count}, codes.data() + first * code_bytes, scratch.data(),
                   lost.data(), context->stream());
      if (model.residual && model.codec->format().has_norm()) {  // norms are of vectors with their centres
        launch_write_code_norms(codec.view(), codes.data() + first * code_bytes, count,
                                {there->centres()->data(), labels.data() + first}, context->stream());
      }
      if (model.codec->format().stores_values()) {
        uint64_t unheld = kNothingLost;
        context->copy_values<uint64_t>(&unheld, lost.data(), 1);
        context->synchronize();
        if (unheld != kNothingLost) {
          const auto at = static_cast<int64_t>(unheld);
          throw InvalidArgument(fmt::format("row {}, column {} of the added vectors is beyond what {} holds",
                                            first + at / cols, at % cols, name_of(model.codec->format().dtype)));
        }
      }
      meter.add(count);
      meter.poll();
    }
    context->synchronize();  // buffers of a piece go before the sort takes its own
    meter.finish();
  }
  SortListsTask sort;
  sort.labels = labels.data();
  sort.codes = codes.data();
  sort.count = rows.rows();
  sort.lists = model.lists();
  sort.code_bytes = code_bytes;
  sort.first_row = static_cast<uint32_t>(first_row);
  sort.offsets = segment->to_fill().offsets;
  sort.sorted_codes = segment->to_fill().codes;
  sort.rows = segment->to_fill().rows;
  const DeviceBuffer memory = buffer(sort_lists_bytes(sort.count, sort.lists), "the sort by list");
  launch_sort_lists(sort, memory.data(), context->stream());
  context->synchronize();
  return segment;
}

ListLabels::ListLabels(const IvfModel& model, const GpuModelCuda& there, int64_t most, DType dtype,
                       std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : there_(there), context_(std::move(context)), resources_(resources.with_progress({})) {
  const KeyKind kind = key_kind(model.metric);
  keys_ = DeviceArray<float>(most, "the rows' lists", context_, resources);
  if (kind == KeyKind::cosine) {
    lists_ = DeviceArray<int64_t>(most, "the rows' lists", context_, resources);
    return;
  }
  CentreSearchShape shape;
  shape.rows = most;
  shape.centres = model.lists();
  shape.cols = model.cols();
  shape.dtype = dtype;
  shape.kind = kind;
  const DeviceInfo gpu = usable_gpu(Device::cuda(context_->device()));
  PlanBudget budget;
  budget.host = resources.host_memory()->available();
  budget.device = std::min(gpu.memory_free, resources.device_memory(context_->device())->available()) /
                  4;  // of the rows left to exact search
  budget.threads = resources.threads();
  const CentreSearchPlan plan = plan_centre_search(shape, gpu, budget);
  memory_ = DeviceBuffer(CentreSearchLayout(shape, plan).bytes, "the search for the rows' lists", context_, resources);
  search_.emplace(shape, plan, there.sample(), memory_.data(), context_, resources_);
  search_->set_centres(there.centres()->data(), model.lists());
}

void ListLabels::find(const MatrixView& rows, int32_t* labels, ProgressMeter& meter) {
  if (!search_) {
    there_.centres()->nearest(rows, 1, false, lists_.data(), keys_.data(), resources_);
    return launch_narrow_lists(lists_.data(), rows.rows(), labels, context_->stream());
  }
  CentreSearchTask task;
  task.rows = {rows.data(), rows.dtype(), rows.row_stride(), rows.rows()};
  task.labels = labels;
  task.keys = keys_.data();
  task.wants_keys = false;
  search_->run(task, meter);
}

}  // namespace kith
