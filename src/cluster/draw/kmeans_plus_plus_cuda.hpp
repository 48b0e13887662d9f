// kmeans_plus_plus.hpp on a GPU: the same rows are chosen. Device memory: plus_plus_workspace_cuda.hpp.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/draw/plus_plus_workspace_cuda.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// What is chosen from: f32 rows in host memory, one after the other, or rows listed, ascending, of a matrix of any
// dtype on the device.
struct PlusPlusInput {
  MatrixView rows;
  std::vector<uint32_t> list;      // empty: all
  const float* weights = nullptr;  // one for each of these, or none
  int64_t clusters = 0;
  bool pinned = false;  // rows from the host may pass through kPinnedBytes of pinned memory
};

// Numbers among the rows of the input, in the order they were chosen.
std::vector<uint32_t> choose_plus_plus_cuda(int device, const PlusPlusInput& input, const CounterRng& rng,
                                            ProgressMeter& meter, const Resources& resources);

}  // namespace kith
