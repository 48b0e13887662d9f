// Where k-means++ keeps its things in the one block of device memory it takes: the plan counts these bytes, and the
// work lays out by them.
#pragma once

#include "cluster/draw_tree.hpp"
#include "core/byte_size.hpp"
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

  int64_t rows = 0;       // f32
  int64_t list = 0;       // u32
  int64_t weights = 0;    // f32
  int64_t distances = 0;  // trials x stride, f32
  int64_t segments = 0;   // trials x stride / kDrawFan, f64
  int64_t sums = 0;       // trials x tree, f64
  int64_t shares = 0;     // of all draws but the first, f64
  int64_t chosen = 0;     // u32
  int64_t state = 0;      // PlusPlusState

  explicit PlusPlusWorkspace(const PlusPlusShape& shape) {
    const DrawTree tree(shape.rows);
    stride = tree.blocks() * kDrawBlock;
    rows = take(shape.in_place ? 0 : shape.rows, saturating_multiply(shape.cols, 4));
    list = take(shape.listed ? shape.rows : 0, 4);
    weights = take(shape.weighted ? shape.rows : 0, 4);
    distances = take(shape.trials, saturating_multiply(stride, 4));
    segments = take(shape.trials, saturating_multiply(stride / kDrawFan, 8));
    sums = take(shape.trials, saturating_multiply(tree.size, 8));
    shares = take(shape.clusters, saturating_multiply(shape.trials, 8));
    chosen = take(shape.clusters, 4);
    state = take(1, sizeof(PlusPlusState));
  }
};

}  // namespace kith
