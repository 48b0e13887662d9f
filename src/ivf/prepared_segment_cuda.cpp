#include "ivf/prepared_segment_cuda.hpp"

#include "cuda/device_guard.hpp"

namespace kith {

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
  const PreparedListsLayout layout(view_);
  memory_ = DeviceBuffer(layout.bytes, "what a search of the lists keeps", context, resources);
  prepared_ = layout.in(memory_.data(), view_);
  launch_prepare_lists(view_, prepared_, context->stream());
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
