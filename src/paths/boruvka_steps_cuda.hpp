// The kernels of Boruvka's rounds on a GPU, on plain arrays in its memory. They enqueue and do not wait.
//
// An edge is kept with the row that names it, and offered to the parts of both its ends: by a minimum of keys, then by one
// of the pairs of rows among edges with that key. Neither depends on who comes first. Most offers lose against a plain
// read of what is there, and need no atomic. A thread has a row; the rows' first edges lie side by side, then their second
// ones, so that a warp reads them together. What no longer leaves a row's part is dropped, and what is left moves up.
#pragma once

#include "core/host_device.hpp"
#include "cuda/workspace_layout.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// A graph's edges, k x rows: the j-th of a row at [j * rows + row]. A row has `count` of them left.
struct DeviceEdges {
  uint32_t* to = nullptr;
  uint32_t* key = nullptr;    // core/ordered_key.hpp
  uint32_t* other = nullptr;  // the part of `to`, in this round
  uint32_t* count = nullptr;
  int64_t rows = 0;
  int64_t k = 0;
};

// What a round works on.
struct BoruvkaArrays {
  uint32_t* part = nullptr;    // of each row, or kNoPart
  uint64_t* pair = nullptr;    // of each part, as all that follows: the rows of its least edge, the smaller one above
  uint32_t* near = nullptr;    // as in MergeLevel
  uint32_t* far = nullptr;
  uint32_t* next = nullptr;    // the part that its edge leads to
  uint32_t* above[2] = {};     // by doubling: a part farther on its way, and how far
  uint32_t* depth[2] = {};
  uint32_t* stays = nullptr;   // 1, or 0 also where nothing leaves it
  uint32_t* number = nullptr;  // of the parts that stay, in their order
  void* scan = nullptr;        // memory for that
  size_t scan_bytes = 0;
  uint32_t* flag = nullptr;    // one value, for the host
};

// Where they lie in one block of memory.
struct BoruvkaLayout : WorkspaceLayout {
  BoruvkaLayout(int64_t rows, int64_t k);
  DeviceEdges edges(std::byte* memory) const;
  BoruvkaArrays arrays(std::byte* memory) const;

  int64_t rows, k;
  Slot<uint32_t> to, key, other, count, part;
  Slot<uint64_t> pair;
  Slot<uint32_t> near, far, next, above[2], depth[2], stays, number;
  Slot<std::byte> scan;
  Slot<uint32_t> flag;
};

// Turns the ids and distances of a graph that was checked, rows x k, into edges.
void launch_take_edges(const int64_t* ids, const float* distances, const DeviceEdges& edges, cudaStream_t stream);
// Every row is a part.
void launch_begin(const DeviceEdges& edges, const BoruvkaArrays& arrays, cudaStream_t stream);
// Fills `key`, and near, far and next, of so many parts.
void launch_find_least_edges(const DeviceEdges& edges, const BoruvkaArrays& arrays, uint32_t* key, int64_t parts,
                             cudaStream_t stream);
// Fills above[0] and depth[0], where no part stands before itself but those that stay.
void launch_break_circles(const BoruvkaArrays& arrays, int64_t parts, cudaStream_t stream);
// From above[from] and depth[from] to the others; the flag becomes 1 where one has farther to go.
void launch_shorten_ways(const BoruvkaArrays& arrays, int from, int64_t parts, cudaStream_t stream);
// Numbers the parts that stay, fills `parent`, gives the rows their new parts, and puts the count in the flag.
void launch_number_parts(const BoruvkaArrays& arrays, int from, uint32_t* parent, int64_t parts, int64_t rows,
                         cudaStream_t stream);

// A level of the tree, for widths.
struct DeviceLevelRef {
  const uint32_t* parent = nullptr;
  const uint32_t* key = nullptr;
};
// pairs of rows that are there, count x 2.
void launch_widths(const DeviceLevelRef* levels, int64_t level_count, const int64_t* pairs, int64_t count, float* widths,
                   cudaStream_t stream);

}  // namespace kith
