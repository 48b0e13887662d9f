// The direct engine's selection where k is no larger than 2,048: the k nearest of a tile of f32 keys are selected as
// from any matrix (select_rows_cuda.hpp), packed, and merged with those of the tiles before. Larger lists are kept in
// row order by select_cuda.hpp instead.
//
// Cost: one read of the keys; memory for three lists of k and what selection takes.
#pragma once

#include "exact/tile_select_layout.hpp"
#include "kernels/select/pack_selected_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct SelectedTile {
  const float* keys = nullptr;
  int64_t stride = 0;
  int64_t queries = 0;
  int64_t rows = 0;
  int64_t first_row = 0;
  const uint32_t* numbers = nullptr;
};

class TileSelect {
 public:
  TileSelect(const TileSelectShape& shape, std::byte* memory, cudaStream_t stream)
      : shape_(shape), layout_(shape), memory_(memory), stream_(stream) {}

  // Sorted lists of k, padded: of this tile, or where it is not the first merged with those that are there. Enqueues.
  void run(const SelectedTile& tile, bool first, uint64_t* lists) const;
  // Of the one tile there is, not yet as lists. Enqueues.
  PackSelectedTask select(const SelectedTile& tile) const;

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_);
  }

  TileSelectShape shape_;
  TileSelectLayout layout_;
  std::byte* memory_;
  cudaStream_t stream_;
};

}  // namespace kith
