// Sums of the rows' weighted distances, and draws in proportion to them, for k-means++: in one order on all devices.
//
// A tree with 32 children for each node. Rows are leaves, 32 rows a segment, 32 segments a block, and so on up to the
// top, with at most 32 nodes. A node's sum adds its children to zero in order. A draw descends from the top, past all
// children whose running sum stays within the target. Chains are short at every level, which suits GPUs; only sums from
// blocks upwards are stored.
#pragma once

#include "core/divide.hpp"
#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kDrawFan = 32;
inline constexpr int64_t kDrawBlock = int64_t{kDrawFan} * kDrawFan;

// Where the sums of each level lie, blocks first.
struct DrawTree {
  static constexpr int kMostLevels = 6;

  int64_t rows = 0;
  int64_t segments = 0;
  int levels = 0;
  int64_t sizes[kMostLevels] = {};
  int64_t offsets[kMostLevels] = {};
  int64_t size = 0;  // of all levels

  KITH_HOST_DEVICE explicit constexpr DrawTree(int64_t row_count)
      : rows(row_count), segments(divide_up(row_count, kDrawFan)) {
    int64_t nodes = segments;
    do {
      nodes = divide_up(nodes, kDrawFan);
      sizes[levels] = nodes;
      offsets[levels++] = size;
      size += nodes;
    } while (nodes > kDrawFan);
  }

  KITH_HOST_DEVICE constexpr int64_t blocks() const { return sizes[0]; }
  KITH_HOST_DEVICE constexpr int top() const { return levels - 1; }
  // How many of `all` nodes are children of the node.
  KITH_HOST_DEVICE static constexpr int children_of(int64_t node, int64_t all) {
    const int64_t children = all - node * kDrawFan;
    return static_cast<int>(children < kDrawFan ? children : kDrawFan);
  }
};

// The sum of up to kDrawFan children; they are read before they are added.
template <typename Load>
KITH_HOST_DEVICE inline double sum_children(const Load& load, int count) {
  double children[kDrawFan];
  for (int i = 0; i < kDrawFan; ++i) children[i] = i < count ? load(i) : 0.0;
  double sum = 0;
  for (int i = 0; i < kDrawFan; ++i) {
    if (i < count) sum += children[i];
  }
  return sum;
}

// The child in which the target falls; adds the sums of the children before it to `before`.
template <typename Load>
KITH_HOST_DEVICE inline int pass_children(const Load& load, int count, double target, double& before) {
  double children[kDrawFan];
  for (int i = 0; i < kDrawFan; ++i) children[i] = i < count ? load(i) : 0.0;
  double reached[kDrawFan];  // before each child
  reached[0] = before;
  for (int i = 1; i < kDrawFan; ++i) reached[i] = reached[i - 1] + children[i - 1];
  int at = 0;
  bool passes = true;
  for (int i = 1; i < kDrawFan; ++i) {
    passes = passes && i < count && reached[i] <= target;  // a NaN ends it
    before = passes ? reached[i] : before;
    at = passes ? i : at;
  }
  return at;
}

// Computes the sums of all levels above the blocks, whose sums are given.
inline void add_up_tree(const DrawTree& tree, double* sums) {
  for (int level = 1; level < tree.levels; ++level) {
    for (int64_t node = 0; node < tree.sizes[level]; ++node) {
      const double* const children = sums + tree.offsets[level - 1] + node * kDrawFan;
      sums[tree.offsets[level] + node] =
          sum_children([&](int i) { return children[i]; }, DrawTree::children_of(node, tree.sizes[level - 1]));
    }
  }
}

KITH_HOST_DEVICE inline double tree_total(const DrawTree& tree, const double* sums) {
  const double* const top = sums + tree.offsets[tree.top()];
  return sum_children([&](int i) { return top[i]; }, DrawTree::children_of(0, tree.sizes[tree.top()]));
}

// Corrects a drawn row: by rounding it may have a weight of zero; then the last row of the block with a positive weight
// is drawn, or else the block's first.
template <typename Step>
KITH_HOST_DEVICE inline uint32_t drawable_row(const DrawTree& tree, int64_t block, int64_t row, const Step& step) {
  if (step(row) > 0) return static_cast<uint32_t>(row);
  const int64_t end = (block + 1) * kDrawBlock < tree.rows ? (block + 1) * kDrawBlock : tree.rows;
  int64_t last = end - 1;
  while (last > block * kDrawBlock && !(step(last) > 0)) --last;
  return static_cast<uint32_t>(last);
}

// The row at `target` of the total. segment(block, i): the sum of a block's segment; step(i): a row's own weight.
template <typename Segment, typename Step>
KITH_HOST_DEVICE inline uint32_t draw_row(const DrawTree& tree, const double* sums, double target,
                                          const Segment& segment, const Step& step) {
  double before = 0;
  int64_t node = 0;
  for (int level = tree.top(); level >= 0; --level) {
    const double* const children = sums + tree.offsets[level] + node * kDrawFan;
    const int count = DrawTree::children_of(node, tree.sizes[level]);
    node = node * kDrawFan + pass_children([&](int i) { return children[i]; }, count, target, before);
  }
  const int64_t block = node;
  node = node * kDrawFan + pass_children([&](int i) { return segment(block, i); },
                                         DrawTree::children_of(block, tree.segments), target, before);
  const int64_t first = node * kDrawFan;
  const int64_t row = first + pass_children([&](int i) { return step(first + i); },
                                            DrawTree::children_of(node, tree.rows), target, before);
  return drawable_row(tree, block, row, step);
}

// The input of a draw: one distance for each row, and weights, or null if each row counts once.
struct DrawSteps {
  const float* distances = nullptr;
  const float* weights = nullptr;

  KITH_HOST_DEVICE double at(int64_t i) const {
    const auto distance = static_cast<double>(distances[i]);
    return weights == nullptr ? distance : static_cast<double>(weights[i]) * distance;
  }
  KITH_HOST_DEVICE double segment(const DrawTree& tree, int64_t segment) const {
    const int64_t first = segment * kDrawFan;
    const int count = DrawTree::children_of(segment, tree.rows);
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += at(first + i);
    return sum;
  }
  KITH_HOST_DEVICE double block(const DrawTree& tree, int64_t block) const {
    double sum = 0;
    for (int i = 0; i < DrawTree::children_of(block, tree.segments); ++i) sum += segment(tree, block * kDrawFan + i);
    return sum;
  }
};

// The row at this share of the total; `sums` are the tree's.
KITH_HOST_DEVICE inline uint32_t draw_by_share(const DrawTree& tree, const double* sums, const DrawSteps& steps,
                                               double share) {
  return draw_row(
      tree, sums, share * tree_total(tree, sums),
      [&](int64_t block, int i) { return steps.segment(tree, block * kDrawFan + i); },
      [&](int64_t i) { return steps.at(i); });
}

// The trial rows of a round of k-means++ on a GPU, and the result of the round before.
inline constexpr int kMostTrials = 18;  // of 2^24 centres

struct PlusPlusState {
  uint32_t trials[kMostTrials];  // rows to be tried
  uint32_t best;                 // of the round before: whose distances count
};

}  // namespace kith
