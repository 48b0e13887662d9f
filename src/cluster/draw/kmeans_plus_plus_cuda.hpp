// kmeans_plus_plus.hpp on a GPU; chooses the same rows.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cluster/draw/draw_tree.hpp"
#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "cuda/workspace_layout.hpp"

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

struct PlusPlusShape {
  int64_t rows = 0;  // to choose from
  int64_t cols = 0;
  int64_t clusters = 0;
  int64_t trials = 0;     // plus_plus_trials
  bool weighted = false;  // rows have weights
  bool in_place = false;  // they are on the device as f32, one by one: no copy is made
  bool listed = false;    // else: they are gathered by their numbers from a matrix on the device
};

// The layout of its single block of device memory. The plan counts these bytes, and the work
// uses them.
struct PlusPlusWorkspace : WorkspaceLayout {
  int64_t stride = 0;  // of distances: whole blocks

  Slot<float> rows;
  Slot<uint32_t> list;
  Slot<float> weights;
  Slot<float> distances;  // trials x stride
  Slot<double> segments;  // trials x stride / kDrawFan
  Slot<double> sums;      // trials x tree
  Slot<double> shares;    // of all draws but the first
  Slot<uint32_t> chosen;
  Slot<PlusPlusState> state;

  explicit PlusPlusWorkspace(const PlusPlusShape& shape) {
    const DrawTree tree(shape.rows);
    stride = tree.blocks() * kDrawBlock;
    rows = take<float>(shape.in_place ? 0 : shape.rows, shape.cols);
    list = take<uint32_t>(shape.listed ? shape.rows : 0);
    weights = take<float>(shape.weighted ? shape.rows : 0);
    distances = take<float>(shape.trials, stride);
    segments = take<double>(shape.trials, stride / kDrawFan);
    sums = take<double>(shape.trials, tree.size);
    shares = take<double>(shape.clusters, shape.trials);
    chosen = take<uint32_t>(shape.clusters);
    state = take<PlusPlusState>(1);
  }
};

}  // namespace kith
