#include "ivf/scan/prepared_segment_cuda.hpp"

#include <kith/error.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "ivf/scan/distinct_lists_cuda.hpp"
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

DeviceListsView unprepared_lists(const IvfModel& model, const GpuModelCuda& there) {
  DeviceListsView view;
  view.kind = key_kind(model.metric);
  view.codec = there.codec().view();
  view.residual = model.residual;
  view.lists = model.lists();
  view.centres = there.centres() == nullptr ? nullptr : there.centres()->data();
  return view;
}

PreparedSegmentCuda::PreparedSegmentCuda(Segment segment, const IvfModel& model,
                                         std::shared_ptr<const GpuModelCuda> there, const Resources& resources)
    : segment_(std::move(segment)), model_(std::move(there)), view_(unprepared_lists(model, *model_)) {
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
  view_.inverse_norms = prepared_.inverse_norms;
  launch_prepare_lists(view_, prepared_, work->stream());
  work->synchronize();
  repeats_ = ranked_repeats(view_, memory, *work, resources);
  shape_ = measured_shape(view_, prepared_, memory, *work, resources);
  const int64_t taken = layout.has_halves ? layout.bytes : 0;  // of the same room
  if (layout.has_halves && !shape_.wants_row_terms(view_.count)) {
    distinct_ = make_distinct(taken, memory, *work, resources);
  }
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

std::unique_ptr<const PreparedSegmentCuda::Distinct> PreparedSegmentCuda::make_distinct(
    int64_t taken, const std::shared_ptr<const DeviceContext>& memory, const DeviceContext& work,
    const Resources& resources) const {
  constexpr std::string_view kPurpose = "vectors without those that repeat others";
  if (repeats_.size() == 0 || memory->counts_only()) return nullptr;
  const DistinctLists from{view_, repeats_.data(), kLeastRepeats};
  try {
    const HostArray<uint32_t> counts(view_.lists, kPurpose, resources);
    {
      const DeviceArray<uint32_t> there(view_.lists, kPurpose, memory, resources);
      memory->synchronize();
      launch_count_distinct(from, there.data(), work.stream());
      work.copy_values(counts.data(), there.data(), view_.lists);
      work.synchronize();
    }
    const HostArray<int64_t> offsets(view_.lists + 1, kPurpose, resources);
    offsets[0] = 0;
    for (int64_t list = 0; list < view_.lists; ++list) offsets[list + 1] = offsets[list] + counts[list];
    const int64_t count = offsets[view_.lists];
    if (2 * count > view_.count) return nullptr;

    auto made = std::make_unique<Distinct>();
    made->view = view_;
    made->view.count = count;
    const DistinctLayout lists(view_.lists, count, view_.codec.format.bytes());
    const PreparedListsLayout layout(made->view);
    if (lists.bytes + layout.bytes + taken > room_beside(segment_->space().device, resources)) return nullptr;
    made->lists_memory = DeviceBuffer(lists.bytes, kPurpose, memory, resources);
    made->memory = DeviceBuffer(layout.bytes, kPurpose, memory, resources);
    memory->synchronize();
    const DistinctTarget to = lists.in(made->lists_memory.data());
    work.copy_values(to.offsets, offsets.data(), view_.lists + 1);
    launch_gather_distinct(from, to, work.stream());
    made->view.offsets = to.offsets;
    made->view.codes = to.codes;
    made->view.rows = to.rows;
    made->repeats = to.ranks;
    made->prepared = layout.in(made->memory.data(), made->view);
    made->view.inverse_norms = made->prepared.inverse_norms;
    launch_prepare_lists(made->view, made->prepared, work.stream());
    made->shape = measured_shape(made->view, made->prepared, memory, work, resources);  // waits
    return made;
  } catch (const OutOfMemory&) {  // others have taken the room meanwhile; a search does without
    return nullptr;
  }
}

PreparedSegmentCuda::Scanned PreparedSegmentCuda::scanned(int64_t k, bool filtered) const {
  if (distinct_ == nullptr || filtered || k < 1 || k > int64_t{kLeastRepeats}) {
    return {view_, prepared_, repeats_.data(), shape_.longest};
  }
  return {distinct_->view, distinct_->prepared, distinct_->repeats, distinct_->shape.longest};
}

std::shared_ptr<const PreparedSegmentCuda::KeptTerms> PreparedSegmentCuda::kept_terms() const {
  const std::lock_guard lock(mutex_);
  return terms_;
}

int64_t PreparedSegmentCuda::bytes() const {
  const auto terms = kept_terms();
  const int64_t distinct = distinct_ == nullptr ? 0 : distinct_->lists_memory.bytes() + distinct_->memory.bytes();
  return memory_.bytes() + repeats_.bytes() + row_terms_.bytes() + distinct +
         (terms == nullptr ? 0 : terms->memory.bytes());
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
  const PreparedAs<PreparedSegmentCuda> prepared;  // not what is kept of lists on the host for this device
  std::shared_ptr<const PreparedSegment> kept = segment.prepared().find(Device::cuda(device), prepared);
  if (kept == nullptr) {
    auto made =
        std::make_shared<const PreparedSegmentCuda>(segment.on(Device::cuda(device), resources), model, there, resources);
    if (counts_only(resources)) return made;
    kept = segment.prepared().keep(Device::cuda(device), std::move(made), prepared);
  }
  return std::static_pointer_cast<const PreparedSegmentCuda>(kept);
}

}  // namespace kith
