// Where k-means++ keeps its things in the one block of device memory it takes: the plan counts these bytes, and the
// work lays out by them.
#pragma once

#include "cluster/draw/draw_tree.hpp"
#include "cuda/workspace_layout.hpp"

#include <cstdint>

namespace kith {

struct PlusPlusShape {
  int64_t rows = 0;  // to choose from
  int64_t cols = 0;
  int64_t clusters = 0;
  int64_t trials = 0;     // plus_plus_trials
  bool weighted = false;  // rows have weights
  bool in_place = false;  // they lie on the device as f32, one by one: no copy is made
  bool listed = false;    // else: they are gathered by their numbers from a matrix on the device
};

inline constexpr int kMostTrials = 18;  // of 2^24 centres

// What a round leaves to the next.
struct PlusPlusState {
  uint32_t trials[kMostTrials];  // rows to be tried
  uint32_t best;                 // of the round before: whose distances count
};

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
