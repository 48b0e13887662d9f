// Merging indexes, and clones on other devices.
#include <kith/index.hpp>

#include "core/dispatch.hpp"
#include "cuda/device_info.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_impl.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

// The shape of a state's rows.
RowsInfo info_of(const IndexContent& content) {
  RowsInfo info(content.rows, content.cols, content.dtype);
  info.space = content.space;
  return info;
}

// The most memory of merging two versions: the other one without its dead rows, the segments that are merged, and the
// ids. Rows on a GPU are merged there or copied to the host, depending on the kind.
Footprint merged_footprint(const IndexKind& kind, const IndexVersion* mine, const IndexVersion* other,
                           const Resources& resources) {
  if (state_of(other) == nullptr) return {};
  const auto held = [&](const IndexVersion* version) {
    if (state_of(version) == nullptr) return Footprint();
    const IndexBytes bytes = version->state->bytes();
    const MemorySpace space = version->state->content().space;
    const Footprint ids = array_footprint<int64_t>(version->ids.live().stored(), 4);
    // Rows that must be copied to the host: the copy, and what is built from it.
    if (!space.host_readable() && !kind.merges_in_place()) return ids.beside({2 * bytes.device});
    return ids.beside({bytes.host}).beside(Footprint::in(space, bytes.device));
  };
  RowsInfo all = info_of(other->state->content());
  if (state_of(mine) != nullptr) all.rows += mine->state->content().rows;
  return compacted_footprint(kind, other, resources)
      .beside(held(mine))
      .beside(held(other).times(2))
      .beside(kind.completion_footprint(state_of(mine), all, resources));
}

bool same_offset(const Offset& a, const Offset& b) { return a == nullptr || b == nullptr ? a == b : *a == *b; }

std::string name_of_place(const MemorySpace& space) {
  return space.host_readable() ? "host memory" : fmt::format("the memory of cuda:{}", space.device);
}

// An index that keeps all rows in one memory space can share only rows in that space.
void refuse_other_place(const IndexState* state, const IndexContent& other) {
  if (state == nullptr || state->content().rows == 0 || state->content().any_place) return;
  const MemorySpace& space = state->content().space;
  if (space.host_readable() ? other.space.host_readable() : space == other.space) return;
  throw InvalidArgument(fmt::format(
      "the index holds vectors in {}, and the other in {}; an index keeps all in one place: merge it with a copy that "
      "to() made there",
      name_of_place(space), name_of_place(other.space)));
}

template <typename Impl>
void publish_merged(Impl& impl, const Impl& other, const IndexPublisher::Writer& writer, const IndexVersion* version,
                    const MergeParams& params, const Resources& resources) {
  const IndexVersion more = version == nullptr ? IndexVersion() : without_dead_rows(*other.kind, *version, resources);
  const IndexState* const state = more.state.get();
  impl.versions.publish(
      writer,
      [&](const IndexVersion* current) {
        impl.refuse_untrained(current, "another is merged with it");
        IndexVersion after = current == nullptr ? IndexVersion() : *current;
        if (state == nullptr) return after;
        if (after.state == nullptr && state->content().rows == 0) return after;
        if (after.state == nullptr) after.offset = more.offset;
        if (!same_offset(after.offset, more.offset)) {
          throw InvalidArgument(
              "the indexes subtract different offsets from float64 vectors, and cannot be merged; fill both from "
              "copies of one "
              "index that has seen such vectors, or with float32 vectors");
        }
        check_added(after.state.get(), info_of(state->content()), impl.params.metric);
        refuse_other_place(after.state.get(), state->content());
        after.state = impl.kind->merged(after.state.get(), *state, resources);
        after.state = impl.kind->completed(after.state, resources);
        after.ids = after.ids.joined(more.ids, params.shift_ids, resources);
        return after;
      },
      resources);
}

}  // namespace

void Index::merge(const Index& other, const MergeParams& params, const Resources& given) {
  impl_->refuse_on_disk("merge()");
  const Resources resources = impl_->on_device(given);
  if (other.impl_->params.metric != impl_->params.metric) {
    throw_not_alike(fmt::format("one is searched by {}, the other by {}", name_of(impl_->params.metric),
                                name_of(other.impl_->params.metric)));
  }
  const IndexPublisher::Writer writer(impl_->versions);
  const std::shared_ptr<const IndexVersion> version = other.impl_->versions.current();
  other.impl_->refuse_untrained(version.get(), "it is merged");
  const std::shared_ptr<const IndexVersion> before = impl_->versions.current();
  const auto least = [&] { return merged_footprint(*impl_->kind, before.get(), version.get(), resources); };
  within_limits("the merged index", resources, least,
                [&] { publish_merged(*impl_, *other.impl_, writer, version.get(), params, resources); });
}

std::pair<Index, Offset> IndexAccess::without_offset(const Index& index, const Resources& resources) {
  const Index copy = index.clone(resources);
  const Offset offset = offset_of(copy.impl_->versions.current().get());
  if (offset == nullptr) return {copy, nullptr};
  copy.impl_->versions.publish(
      [&](const IndexVersion* current) {
        return IndexVersion{current->state, current->ids, nullptr, current->tuned};
      },
      resources);
  return {copy, offset};
}

Index IndexAccess::without_rows(const Index& index, const Resources& given) {
  index.impl_->refuse_on_disk("add()");
  const Resources resources = index.impl_->on_device(given);
  const auto version = index.impl_->versions.current();
  index.impl_->refuse_untrained(version.get(), "vectors are added");
  const Index::Impl& from = *index.impl_;
  auto impl = std::make_shared<Index::Impl>(from.kind, from.factory, from.params, from.placement);
  if (version == nullptr) return Index(std::move(impl));
  impl->versions.publish(
      [&](const IndexVersion*) {
        return IndexVersion{kith::without_rows(*from.kind, version->state, resources), IdTable(), version->offset,
                            nullptr};
      },
      resources);
  return Index(std::move(impl));
}

void IndexAccess::check_new_ids(const Index& index, VectorView<const int64_t> ids, const Resources& resources) {
  const auto version = index.impl_->versions.current();
  const IdTable known = version == nullptr ? IdTable() : version->ids;
  if (ids.size > 0) (void)known.added(ids.data, ids.size, resources);
}

namespace {

int parts_of(const IndexPlacement& placement) {
  int parts = 0;
  for (const DeviceParts& one : placement.devices) parts += one.parts;
  return parts;
}

// The number of copies that fit in the GPUs' memory. Parts of a CPU share what is on the host.
int copies_that_fit(const IndexPlacement& placement, int64_t bytes, const Resources& resources) {
  const int parts = parts_of(placement);
  int64_t room = kNoLimit;  // free memory of the part that has the least
  for (const DeviceParts& one : placement.devices) {
    if (one.device.kind != DeviceKind::cuda) continue;
    room = std::min(room, device_memory_left(one.device.index, resources) / one.parts);
  }
  const int64_t usable = room - room / 4;  // the rest is for searches
  for (int copies = parts; copies > 1; --copies) {
    if (parts % copies == 0 && bytes / (parts / copies) <= usable) return copies;
  }
  return 1;
}

// The placement with its number of copies filled in. InvalidArgument if the parts cannot be divided so, Unsupported if
// the index cannot be split into shards.
IndexPlacement resolved(const IndexPlacement& given, const std::string& factory, const IndexState* state,
                       const Resources& resources) {
  IndexPlacement placement = given;
  if (placement.devices.empty()) placement.devices = {{Device::automatic()}};
  ResourceOptions options;
  options.devices = placement.devices;
  options.validate();
  const int parts = parts_of(placement);
  const bool walks = factory.find("Graph") != std::string::npos;
  if (placement.copies < 0 || placement.copies > parts || (placement.copies > 0 && parts % placement.copies != 0)) {
    throw InvalidArgument(
        fmt::format("copies = {} on {} ({} in all); the number of parts must be a multiple of the "
                    "copies, as 1 (shards) and {} (a copy for each) are",
                    placement.copies, name_of(placement.devices), parts, parts));
  }
  if (walks && placement.copies > 0 && placement.copies < parts) {
    throw Unsupported(
        fmt::format("copies = {} of an index '{}' on {} devices: a graph is walked over as a whole and "
                    "has no shards; give copies = {}",
                    placement.copies, factory, parts, parts));
  }
  if (placement.copies > 0) return placement;
  const IndexBytes held = state == nullptr ? IndexBytes() : state->bytes();
  placement.copies = walks ? parts : copies_that_fit(placement, held.host + held.device, resources);
  return placement;
}

// Whether all of it can be searched without copies to the host.
bool can_stay(const MemorySpace& space, const IndexPlacement& placement) {
  if (space.host_readable() || placement.devices.front().device.kind == DeviceKind::automatic) return true;
  return std::all_of(placement.devices.begin(), placement.devices.end(),
                     [&](const DeviceParts& one) { return one.device == Device::cuda(space.device); });
}

}  // namespace

Index Index::to(Device device, const Resources& resources) const { return to({{{device}}, 1}, resources); }

Index Index::to(const IndexPlacement& given, const Resources& resources) const {
  for (const DeviceParts& one : given.devices) {
    if (one.device.kind == DeviceKind::cuda && !built_with_cuda()) throw_no_cuda();
  }
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const IndexState* const state = state_of(version.get());
  const IndexPlacement placement = resolved(given, impl_->factory, state, resources);
  for (const DeviceParts& one : placement.devices) {
    if (one.device.kind == DeviceKind::cuda) static_cast<void>(usable_gpu_when_idle(one.device));
  }
  auto impl = std::make_shared<Impl>(impl_->kind, impl_->factory, impl_->params, placement);
  impl->files = impl_->files;
  if (version == nullptr) return Index(std::move(impl));
  IndexVersion shared = *version;
  const MemorySpace space = state == nullptr ? MemorySpace() : state->content().space;
  if (!can_stay(space, placement)) {
    IndexParts parts;
    parts.cols = state->content().cols;
    parts.rows = state->content().rows;
    parts.dtype = state->content().dtype;
    state->give_parts(parts, resources);
    shared.state = impl->kind->restored(parts, resources.with_device(placement.devices.front().device));
  }
  impl->versions.publish([&](const IndexVersion*) { return shared; }, resources);
  return Index(std::move(impl));
}

Device Index::runs_on() const { return impl_->device(); }
IndexPlacement Index::placement() const { return impl_->placement; }

}  // namespace kith
