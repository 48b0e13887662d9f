#include "ivf/scan/prepared_segment_cuda.hpp"

#include <kith/error.hpp>

#include "core/footprint.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "ivf/scan/prepare_lists_cuda.hpp"

#include <algorithm>
#include <string_view>

namespace kith {
namespace {

// What may be kept that a search can do without: nothing that it needs, and it leaves most of what is free to others.
int64_t room_beside(int device, const Resources& resources) {
  constexpr int64_t kShare = 4;
  return std::min(device_memory_left(device, resources) / kShare, SpareDeviceMemory::of(resources));
}

// Without halves each scan decodes.
bool has_room_for_halves(const DeviceListsView& lists, int device, const Resources& resources) {
  return PreparedLists::wants_halves(lists.codec.format) &&
         PreparedListsLayout(lists, true).bytes <= room_beside(device, resources);
}

// Empty where no code is frequent. Memory is of the context that memory outliving a call is taken from, work is of the other.
DeviceArray<uint16_t> ranked_repeats(const DeviceListsView& lists, const std::shared_ptr<const DeviceContext>& memory,
                                     const DeviceContext& work, const Resources& resources) {
  constexpr std::string_view kPurpose = "what a search of the lists keeps";
  const DeviceArray<uint32_t> most(1, kPurpose, memory, resources);
  memory->synchronize();
  work.fill(most.data(), 0, 1);
  launch_count_repeats(lists, most.data(), work.stream());
  uint32_t frequent = kLeastRepeats;
  work.copy_values(&frequent, most.data(), 1);
  work.synchronize();
  if (frequent < kLeastRepeats) return {};
  DeviceArray<uint16_t> ranks(lists.count, kPurpose, memory, resources);
  memory->synchronize();
  launch_rank_repeats(lists, ranks.data(), work.stream());
  work.synchronize();
  return ranks;
}

SegmentShape measured_shape(const DeviceListsView& lists, const PreparedLists& prepared,
                            const std::shared_ptr<const DeviceContext>& memory, const DeviceContext& work,
                            const Resources& resources) {
  const DeviceArray<SegmentShape> there(1, "what a search of the lists keeps", memory, resources);
  memory->synchronize();
  launch_segment_shape(lists, prepared, there.data(), work.stream());
  SegmentShape shape{};
  work.copy_values(&shape, there.data(), 1);
  work.synchronize();
  return shape;
}

}  // namespace

PreparedSegmentCuda::PreparedSegmentCuda(Segment segment, const IvfModel& model,
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
  const int device = segment_->space().device;
  const auto memory = allocation_context(device, resources);
  const auto work = work_context(device, resources);
  const PreparedListsLayout layout(view_, has_room_for_halves(view_, device, resources));
  memory_ = DeviceBuffer(layout.bytes, "what a search of the lists keeps", memory, resources);
  memory->synchronize();
  prepared_ = layout.in(memory_.data(), view_);
  view_.unit = layout.takes_unit_vectors(view_.kind);
  launch_prepare_lists(view_, prepared_, work->stream());
  work->synchronize();
  repeats_ = ranked_repeats(view_, memory, *work, resources);
  shape_ = measured_shape(view_, prepared_, memory, *work, resources);
  const int64_t taken = layout.has_halves ? layout.bytes : 0;  // of the same room
  if (!shape_.wants_row_terms(view_.count) || 8 * view_.count + taken > room_beside(device, resources)) return;
  try {
    row_terms_ = DeviceArray<float>(2 * view_.count, "what a search of the lists keeps", memory, resources);
  } catch (const OutOfMemory&) {  // others have taken the room meanwhile; a search does without
    return;
  }
  memory->synchronize();
  prepared_.upper_terms = row_terms_.data();
  prepared_.lower_terms = row_terms_.data() + view_.count;
  launch_row_terms(view_, prepared_, work->stream());
  work->synchronize();
}

std::shared_ptr<const PreparedSegmentCuda::KeptTerms> PreparedSegmentCuda::kept_terms() const {
  const std::lock_guard lock(mutex_);
  return terms_;
}

int64_t PreparedSegmentCuda::bytes() const {
  const auto terms = kept_terms();
  return memory_.bytes() + repeats_.bytes() + row_terms_.bytes() + (terms == nullptr ? 0 : terms->memory.bytes());
}

ScanTerm PreparedSegmentCuda::scan_term(const Resources& resources) const {
  if (const auto terms = kept_terms()) return terms->terms.term;
  const int64_t room = room_beside(segment_->space().device, resources);
  return scan_term_within(room, view_.codec.format, view_.lists, view_.count);
}

ScanTerms PreparedSegmentCuda::scan_terms(const Resources& resources) const {
  if (const auto terms = kept_terms()) return terms->terms;
  const ScanTerm term = scan_term(resources);
  if (term == ScanTerm::none) return {};
  const DeviceGuard guard(segment_->space().device);
  const auto memory = allocation_context(segment_->space().device, resources);
  const auto work = work_context(segment_->space().device, resources);
  const ScanTermsLayout layout(view_, term);
  auto made = std::make_shared<KeptTerms>();
  try {
    made->memory = DeviceBuffer(layout.bytes, "what lookups keep beside the lists", memory, resources);
  } catch (const OutOfMemory&) {  // others have taken the room meanwhile; a search does without
    return {};
  }
  memory->synchronize();
  made->terms = layout.in(made->memory.data());
  launch_scan_terms(view_, prepared_, made->terms, work->stream());
  work->synchronize();
  const std::lock_guard lock(mutex_);
  if (terms_ == nullptr) terms_ = std::move(made);
  return terms_->terms;
}

std::shared_ptr<const PreparedSegmentCuda> prepared_segment(int device, const SegmentCopies& segment,
                                                            const IvfModel& model,
                                                            const std::shared_ptr<const GpuModelCuda>& there,
                                                            const Resources& resources) {
  const DeviceGuard guard(device);
  const auto make = [&] {
    return std::make_shared<const PreparedSegmentCuda>(segment.on(Device::cuda(device), resources), model, there, resources);
  };
  return std::static_pointer_cast<const PreparedSegmentCuda>(
      segment.prepared().get(Device::cuda(device), resources, make));
}

}  // namespace kith
