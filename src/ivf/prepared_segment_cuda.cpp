#include "ivf/prepared_segment_cuda.hpp"

#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/error.hpp"
#include "ivf/repeated_codes_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

// Halves are kept where they leave most of what is free to others; without them each scan decodes.
bool has_room_for_halves(const DeviceListsView& lists, const Resources& resources) {
  constexpr int64_t kShare = 4;
  if (!PreparedLists::wants_halves(lists.codec.format)) return false;
  const int64_t bytes = PreparedListsLayout(lists, true).bytes;
  size_t free = 0;
  size_t all = 0;
  KITH_CUDA_CHECK(cudaMemGetInfo(&free, &all));
  return bytes <= std::min(static_cast<int64_t>(free), resources.device_memory()->available()) / kShare;
}

// Empty where no code is frequent.
DeviceBuffer ranked_repeats(const DeviceListsView& lists, const std::shared_ptr<const DeviceContext>& context,
                            const Resources& resources) {
  const DeviceBuffer most(sizeof(uint32_t), "what a search of the lists keeps", context, resources);
  KITH_CUDA_CHECK(cudaMemsetAsync(most.data(), 0, sizeof(uint32_t), context->stream()));
  launch_count_repeats(lists, reinterpret_cast<uint32_t*>(most.data()), context->stream());
  uint32_t frequent = 0;
  context->copy(&frequent, most.data(), sizeof frequent);
  context->synchronize();
  if (frequent < kLeastRepeats) return {};
  DeviceBuffer ranks(array_bytes<uint16_t>(lists.count), "what a search of the lists keeps", context, resources);
  launch_rank_repeats(lists, reinterpret_cast<uint16_t*>(ranks.data()), context->stream());
  return ranks;
}

}  // namespace

PreparedSegmentCuda::PreparedSegmentCuda(SegmentThere segment, const IvfModel& model,
                                         std::shared_ptr<const GpuModelCuda> there, const Resources& resources)
    : segment_(std::move(segment)), model_(std::move(there)) {
  view_.kind = key_kind(model.metric);
  view_.codec = model_->codec().view();
  view_.residual = model.residual;
  view_.lists = segment_->lists();
  view_.centres = model_->centres() == nullptr ? nullptr : model_->centres()->data();
  view_.offsets = segment_->offsets();
  view_.codes = segment_->codes();
  view_.rows = segment_->rows();
  view_.count = segment_->size();
  const auto context = allocation_context(segment_->device());
  const PreparedListsLayout layout(view_, has_room_for_halves(view_, resources));
  memory_ = DeviceBuffer(layout.bytes, "what a search of the lists keeps", context, resources);
  prepared_ = layout.in(memory_.data(), view_);
  launch_prepare_lists(view_, prepared_, context->stream());
  repeats_ = ranked_repeats(view_, context, resources);
  context->synchronize();
}

std::shared_ptr<const PreparedSegmentCuda> prepared_segment(int device, const SegmentCopies& segment,
                                                            const IvfModel& model,
                                                            const std::shared_ptr<const GpuModelCuda>& there,
                                                            const Resources& resources) {
  const DeviceGuard guard(device);
  const auto make = [&] {
    return std::make_shared<const PreparedSegmentCuda>(segment.on_device(device, resources), model, there, resources);
  };
  return std::static_pointer_cast<const PreparedSegmentCuda>(segment.prepared().get(device, make));
}

}  // namespace kith
