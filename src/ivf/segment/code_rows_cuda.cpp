#include "ivf/segment/code_rows_cuda.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
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
constexpr int64_t kCodedPieceBytes = int64_t{512} << 20;  // of rows as f32
constexpr int64_t kLeastPiece = 256;                 // least rows of a piece, however little memory is free
constexpr int64_t kLeastTogether = 65536;            // least rows coded together, likewise

// Device memory for encoding a piece of rows.
struct PieceMemory {
  PieceMemory(const IvfModel& model, const GpuModelCuda& there, const RowsInfo& rows, int64_t piece,
              const std::shared_ptr<const DeviceContext>& context, const Resources& resources)
      : brought(rows.space.host_readable() ? piece * rows.row_bytes() : 0, "rows on the device", context, resources),
        residuals(piece * rows.cols, "rows on the device", context, resources),
        scratch(there.codec().scratch_bytes(DType::f32, piece), "the making of codes", context, resources),
        lost(1, "the making of codes", context, resources) {
    if (model.has_centres()) labels.emplace(model, there, piece, rows.dtype, context, resources);
    if (labels && counts_only(resources)) labels->count_finding();
  }

  DeviceBuffer brought;
  DeviceArray<float> residuals;
  DeviceBuffer scratch;
  DeviceArray<uint64_t> lost;
  std::optional<ListLabels> labels;
};

}  // namespace

int64_t rows_coded_together(int device, const IvfModel& model, const MatrixView& rows, const Resources& resources) {
  const int64_t least = std::clamp<int64_t>(rows.rows(), 1, kLeastTogether);
  if (rows.rows() <= least || counts_only(resources)) return least;
  constexpr int64_t kShare = 2;                                            // of the free memory; the rest is for pieces
  if (!counts_only(resources)) (void)gpu_model(device, model, resources);  // kept, so not counted every time
  return most_rows(least, rows.rows(), device_memory_left(device, resources) / kShare, [&](int64_t together) {
    const auto code = [&](const Resources& counting) {
      (void)code_rows_cuda(device, model, rows.slice(0, together), 0, counting);
    };
    return footprint_of_call(resources, code).device;
  });
}

Segment code_rows_cuda(int device, const IvfModel& model, const MatrixView& rows, int64_t first_row,
                       const Resources& given) {
  const DeviceGuard guard(device);
  const auto context = std::make_shared<const DeviceContext>(device, given.options().stream);
  const Resources resources = given.with_device(Device::cuda(device)).with_stream(context->stream()).with_progress({});
  const int64_t cols = rows.cols();
  const int64_t code_bytes = model.codec->format().bytes();
  const bool here = !rows.space().host_readable();
  const std::shared_ptr<const GpuModelCuda> there = gpu_model(device, model, resources);
  const DeviceCodec& codec = there->codec();
  const auto segment =
      std::make_shared<ListSegment>(device, model.lists(), rows.rows(), code_bytes, given.with_progress({}));
  const DeviceArray<int32_t> labels(rows.rows(), "the rows' lists", context, resources);
  const DeviceArray<uint8_t> codes(rows.rows() * code_bytes, "codes on the device", context, resources);
  {
    const RowsInfo info(rows);
    const auto piece_bytes = [&](int64_t piece) {
      const auto make = [&](const Resources& counting) {
        const PieceMemory counted_piece(model, *there, info, piece, work_context(device, counting), counting);
      };
      return counted(resources, make).device;
    };
    const int64_t least = std::clamp<int64_t>(rows.rows(), 1, kLeastPiece);
    const int64_t good =
        std::clamp<int64_t>(kCodedPieceBytes / array_bytes<float>(cols), least, std::max(least, rows.rows()));
    constexpr int64_t kShare = 4;  // of the free memory
    int64_t piece = least;
    Resources beside = resources;
    if (!counts_only(resources)) {
      const int64_t room = device_memory_left(device, resources);
      piece = most_rows(least, good, room / kShare, piece_bytes);
      beside = SpareDeviceMemory::with(resources, std::max<int64_t>(0, room - piece_bytes(piece)));
    }
    PieceMemory memory(model, *there, info, piece, context, beside);
    RowUpload upload(wants_pinned(rows.space(), rows.rows() * info.row_bytes(), resources), resources);
    ProgressMeter meter("encode", rows.rows(), given);
    context->fill(memory.lost.data(), 0xFF, 1);
    if (!model.has_centres()) context->fill(labels.data(), 0, labels.size());
    for (int64_t first = 0; first < rows.rows() && !counts_only(resources); first += piece) {
      const int64_t count = std::min(piece, rows.rows() - first);
      MatrixView some = rows.slice(first, count);
      if (!here) {
        upload.copy(some, memory.brought.data(), context->stream(), meter);
        some = {memory.brought.data(), rows.dtype(), {count, cols, cols}, MemorySpace::cuda(device)};
      }
      if (memory.labels) memory.labels->find(some, labels.data() + first, meter);
      launch_residuals({{some.data(), some.dtype(), some.row_stride(), count},
                        cols,
                        model.residual ? there->centres()->data() : nullptr,
                        labels.data() + first,
                        model.lists(),
                        memory.residuals.data()},
                       context->stream());
      codec.encode({memory.residuals.data(), DType::f32, cols, count}, codes.data() + first * code_bytes,
                   memory.scratch.data(), memory.lost.data(), context->stream());
      if (model.residual && model.codec->format().has_norm()) {  // norms are of vectors with their centres
        launch_write_code_norms(codec.view(), codes.data() + first * code_bytes, count,
                                {there->centres()->data(), labels.data() + first}, context->stream());
      }
      if (model.codec->format().stores_values()) {
        uint64_t unheld = kNothingLost;
        context->copy_values<uint64_t>(&unheld, memory.lost.data(), 1);
        context->synchronize();
        if (unheld != kNothingLost) {
          const auto lost = static_cast<int64_t>(unheld);
          throw InvalidArgument(fmt::format("row {}, column {} of the added vectors is beyond what {} holds",
                                            first + lost / cols, lost % cols, name_of(model.codec->format().dtype)));
        }
      }
      meter.add(count);
      meter.poll();
    }
    context->synchronize();  // the buffers of a piece are freed before the sort allocates its own
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
  const DeviceBuffer sorting(sort_lists_bytes(sort.count), "the sort by list", context, resources);
  if (!counts_only(resources)) launch_sort_lists(sort, sorting.data(), context->stream());
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
    if (counts_only(resources)) finding_ = there.centres()->nearest_footprint(most, dtype, resources);
    return;
  }
  CentreSearchShape shape;
  shape.rows = most;
  shape.centres = model.lists();
  shape.cols = model.cols();
  shape.dtype = dtype;
  shape.kind = kind;
  const int device = context_->device();
  PlanBudget budget{0, 0, resources.threads()};  // for rows that fall back to exact search
  if (!counts_only(resources)) {                 // counting assumes the smallest plan, whatever memory is free
    budget.host = resources.host_memory()->available();
    budget.device = std::min(device_memory_left(device, resources) / 4, SpareDeviceMemory::of(resources));
  }
  const CentreSearchPlan plan = plan_centre_search(shape, usable_gpu_when_idle(Device::cuda(device)), budget);
  finding_ = {plan.exact.host_bytes, plan.exact.device_bytes};
  memory_ = DeviceBuffer(CentreSearchLayout(shape, plan).bytes, "the search for the rows' lists", context_, resources);
  if (counts_only(resources)) return;
  search_.emplace(shape, plan, there.sample(), memory_.data(), context_, resources_);
  search_->set_centres(there.centres()->data(), model.lists());
}

void ListLabels::count_finding() const { count_work(finding_, resources_); }

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
