// Device memory that lists in pieces pass through (pieced_lists_cuda.hpp): some slots of one size, each for a piece and
// what is prepared of it, taken in turns. Nothing waits here.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/scan/prepared_segment_cuda.hpp"
#include "ivf/search/piece_steps_cuda.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace kith {

struct PieceSlot {
  DeviceListsView view;  // of as many vectors as there is room for
  PreparedLists prepared;
  int64_t* offsets = nullptr;
  uint8_t* codes = nullptr;
  uint32_t* rows = nullptr;
  uint16_t* ranks = nullptr;    // of equal vectors (launch_rank_repeats)
  bool has_codewords = false;   // prepared of these, which all pieces share
  std::optional<Event> copied;  // a piece has come
  std::optional<Event> freed;   // it has been searched
};

class PieceSlots {
 public:
  struct Sizes {
    int64_t segments = 0;  // whose lists these are
    int64_t pieces = 0;
    int64_t slots = 0;
    int64_t vectors = 0;  // of a slot
  };

  // Allocates in the order of the context's stream.
  PieceSlots(const IvfModel& model, const GpuModelCuda& there, const Sizes& sizes,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  size_t count() const { return slots_.size(); }
  PieceSlot& operator[](size_t slot) { return slots_[slot]; }

  int64_t lists() const { return lists_; }
  // The offsets of all lists of a segment, and behind them those of the next one.
  int64_t* offsets_of(size_t segment) const { return offsets_.data() + static_cast<int64_t>(segment) * (lists_ + 1); }
  PieceProbes* probing() const { return probing_.data(); }       // of each piece
  uint32_t* most_repeats() const { return most_repeats_.data(); }  // of each segment (launch_count_repeats)

 private:
  const int64_t lists_;
  const DeviceArray<int64_t> offsets_;
  const DeviceArray<PieceProbes> probing_;
  const DeviceArray<uint32_t> most_repeats_;
  std::vector<DeviceBuffer> memory_;
  std::deque<PieceSlot> slots_;
};

}  // namespace kith
