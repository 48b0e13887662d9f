// Rows drawn with a likelihood in proportion to weight x distance, in the one order of draw_tree.hpp.
//
// The distances and weights are the caller's; sums of blocks and what lies above them are kept here. Cost: one pass
// over the distances for the sums, some hundred additions for a draw; 8 bytes for each 1,024 rows.
#pragma once

#include "cluster/draw/draw_tree.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

// What a draw looks at: one distance for each row, and a weight, or null where each counts once.
struct DrawSteps {
  const float* distances = nullptr;
  const float* weights = nullptr;

  double at(int64_t i) const {
    const auto distance = static_cast<double>(distances[i]);
    return weights == nullptr ? distance : static_cast<double>(weights[i]) * distance;
  }
  double segment(const DrawTree& tree, int64_t segment) const {
    const int64_t first = segment * kDrawFan;
    const int count = DrawTree::children_of(segment, tree.rows);
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += at(first + i);
    return sum;
  }
  double block(const DrawTree& tree, int64_t block) const {
    double sum = 0;
    for (int i = 0; i < DrawTree::children_of(block, tree.segments); ++i) sum += segment(tree, block * kDrawFan + i);
    return sum;
  }
};

// The row at this share of the total; `sums` are the tree's.
inline uint32_t draw_by_share(const DrawTree& tree, const double* sums, const DrawSteps& steps, double share) {
  return draw_row(
      tree, sums, share * tree_total(tree, sums),
      [&](int64_t block, int i) { return steps.segment(tree, block * kDrawFan + i); },
      [&](int64_t i) { return steps.at(i); });
}

class WeightedDraw {
 public:
  explicit WeightedDraw(int64_t rows) : tree_(rows), sums_(static_cast<size_t>(tree_.size)) {}

  // Adds up the steps as they are now.
  void add_up(const DrawSteps& steps, ProgressMeter& meter, const Resources& resources) {
    constexpr int64_t kBlocks = 64;  // of a task
    parallel_for(divide_up(tree_.blocks(), kBlocks), meter, resources, [&](int64_t task, int) {
      const int64_t end = std::min((task + 1) * kBlocks, tree_.blocks());
      for (int64_t b = task * kBlocks; b < end; ++b) sums_[static_cast<size_t>(b)] = steps.block(tree_, b);
    });
    add_up_tree(tree_, sums_.data());
  }
  double total() const { return tree_total(tree_, sums_.data()); }
  uint32_t draw(const DrawSteps& steps, double share) const { return draw_by_share(tree_, sums_.data(), steps, share); }

 private:
  DrawTree tree_;
  std::vector<double> sums_;
};

}  // namespace kith
