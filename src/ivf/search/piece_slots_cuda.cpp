#include "ivf/search/piece_slots_cuda.hpp"

#include "cuda/workspace_layout.hpp"

#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr std::string_view kPieces = "lists in pieces";

struct PieceLayout : WorkspaceLayout {
  // `lists`: with as many vectors as a piece may have.
  PieceLayout(const DeviceListsView& lists, const PreparedListsLayout& prepares)
      : offsets(take<int64_t>(lists.lists + 1)),
        codes(take<uint8_t>(lists.count, lists.codec.format.bytes())),
        rows(take<uint32_t>(lists.count)),
        ranks(take<uint16_t>(lists.count)),
        prepared(take_layout(prepares)) {}

  Slot<int64_t> offsets;
  Slot<uint8_t> codes;
  Slot<uint32_t> rows;
  Slot<uint16_t> ranks;
  Slot<std::byte> prepared;
};

}  // namespace

PieceSlots::PieceSlots(const IvfModel& model, const GpuModelCuda& there, const Sizes& sizes,
                       std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : lists_(model.lists()),
      offsets_(sizes.segments * (lists_ + 1), kPieces, context, resources),
      probing_(sizes.pieces, kPieces, context, resources),
      most_repeats_(sizes.segments, kPieces, context, resources) {
  DeviceListsView lists = unprepared_lists(model, there);
  lists.count = sizes.vectors;
  // Halves are what a search can do without, and pieces have no room for it.
  const PreparedListsLayout prepared(lists, false);
  const PieceLayout layout(lists, prepared);
  for (int64_t i = 0; i < sizes.slots; ++i) {
    memory_.emplace_back(layout.bytes, kPieces, context, resources);
    std::byte* const memory = memory_.back().data();
    PieceSlot& slot = slots_.emplace_back();
    slot.offsets = layout.offsets.in(memory);
    slot.codes = layout.codes.in(memory);
    slot.rows = layout.rows.in(memory);
    slot.ranks = layout.ranks.in(memory);
    slot.prepared = prepared.in(layout.prepared.in(memory), lists);
    slot.view = lists;
    slot.view.offsets = slot.offsets;
    slot.view.codes = slot.codes;
    slot.view.rows = slot.rows;
    if (context->counts_only()) continue;
    slot.copied.emplace();
    slot.freed.emplace();
  }
}

}  // namespace kith
