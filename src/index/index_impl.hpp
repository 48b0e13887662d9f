// The object behind Index handles: a kind, the publisher of its versions, and the parameters of its creation.
#pragma once

#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "index/index_publisher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

inline const IndexState* state_of(const IndexVersion* version) {
  return version == nullptr ? nullptr : version->state.get();
}

inline Offset offset_of(const IndexVersion* version) { return version == nullptr ? nullptr : version->offset; }

// The number of live rows.
inline int64_t rows_of(const IndexVersion* version) { return version == nullptr ? 0 : version->ids.live().count(); }

// The version without its dead rows; the others close up. Its state has yet to be completed.
inline IndexVersion without_dead_rows(const IndexKind& kind, const IndexVersion& version, const Resources& resources) {
  const LiveRows& live = version.ids.live();
  if (live.all()) return version;
  const KeptRows kept(live.filter(), live.stored(), resources);
  return {kind.compacted(*version.state, kept, resources), version.ids.kept(kept, resources), version.offset,
          version.tuned};
}
// An empty state with the same training.
inline SharedState without_rows(const IndexKind& kind, const SharedState& state, const Resources& resources) {
  const int64_t rows = state->content().rows;
  if (rows == 0) return state;
  const HostArray<uint8_t> none((rows + 7) / 8, "no rows", resources);
  std::fill(none.begin(), none.end(), uint8_t{0});
  return kind.compacted(*state, KeptRows(RowFilter::bits(none.data(), rows), rows, resources), resources);
}
inline IndexVersion compacted(const IndexKind& kind, const IndexVersion& version, const Resources& resources) {
  IndexVersion after = without_dead_rows(kind, version, resources);
  after.state = kind.completed(after.state, resources);
  return after;
}
// The most memory that compaction takes: bits and numbers of the remaining rows, ids, and as much as the state takes
// now, in the same place.
inline Footprint compacted_footprint(const IndexKind& kind, const IndexVersion* version, const Resources& resources) {
  if (version == nullptr || version->ids.live().all()) return {};
  constexpr int64_t kRow = 2 * sizeof(uint32_t) + 2 * sizeof(int64_t) + 1;
  const IndexBytes held = version->state->bytes();
  const IndexContent& content = version->state->content();
  return Footprint{held.host + version->ids.live().stored() * kRow}
      .beside(Footprint::in(content.space, held.device))
      .beside(kind.compaction_footprint(*version->state, version->ids.live().dead(), resources));
}

// How to treat added ids that exist already.
enum class KnownIds : uint8_t { refused, replaced };

struct Index::Impl {
  Impl(std::shared_ptr<const IndexKind> made, std::string_view name, const IndexParams& given,
       IndexPlacement where = {{{Device::automatic()}}, 1})
      : factory(name), params(given), placement(std::move(where)), kind(std::move(made)) {
    KnnParams{.metric = given.metric}.validate();
  }

  Device device() const { return placement.devices.front().device; }

  // With this index's devices, unless the call names some.
  Resources on_device(const Resources& given) const {
    if (names_device(given)) return given;
    return is_several() ? given.with_devices(placement.devices) : given.with_device(device());
  }
  // The number of copies that the parts of such resources search; devices that the call itself names each hold a copy.
  int copies(const Resources& on_device) const {
    return is_several() && on_device.devices() == placement.devices ? placement.copies : on_device.parts();
  }

  // InvalidState for an index on disk, whose files are read-only.
  void refuse_on_disk(std::string_view what) const {
    if (files.empty()) return;
    throw InvalidState(fmt::format(
        "the index lies on disk ('{}'{}) and cannot be changed by {}: load it into memory, or write another "
        "file with save_added()",
        files.front(), files.size() > 1 ? ", ..." : "", what));
  }

  void refuse_untrained(const IndexVersion* current, std::string_view before_what) const {
    if (!kind->needs_training() || state_of(current) != nullptr) return;
    throw InvalidState(fmt::format("the index {} must be trained before {}: call train() first", factory, before_what));
  }

  // `start`: the graph of the rows, in host memory, or null. Both return the number of replaced vectors.
  int64_t add(const MatrixView& rows, VectorView<const int64_t> ids, KnownIds known, Ownership ownership,
              const KnnGraph* start, const Resources& given);
  int64_t add(const VectorFile& file, VectorView<const int64_t> ids, KnownIds known, const Resources& given);

  const std::string factory;
  const IndexParams params;
  const IndexPlacement placement;  // where calls run; automatic: each call chooses
  const std::shared_ptr<const IndexKind> kind;
  std::vector<std::string> files;  // the mapped files of its lists or vectors, in the order of their rows
  IndexPublisher versions;

 private:
  bool names_device(const Resources& given) const {
    return given.device().kind != DeviceKind::automatic || device().kind == DeviceKind::automatic;
  }
  bool is_several() const { return placement.devices.size() > 1 || placement.devices.front().parts > 1; }
};

}  // namespace kith
