#include "cluster/draw/candidate_draws.hpp"

#include "cluster/draw/draw_tree.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kRowsPerDrawTask = 8192;

// The sums of all rows' steps. Cost: one pass over the distances, then some hundred additions for a draw; 8 bytes for
// each 1,024 rows.
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

class DrawsOnHost final : public CandidateDraws {
 public:
  DrawsOnHost(const RowsDrawnFrom& rows, const Resources& resources)
      : rows_(rows),
        resources_(resources),
        nearest_(rows.count, "drawing candidates", resources),
        owner_(rows.count, "drawing candidates", resources),
        steps_{nearest_.data(), rows.weights},
        tree_(rows.count) {
    std::fill(nearest_.begin(), nearest_.end(), INFINITY);
    std::fill(owner_.begin(), owner_.end(), 0);
  }

  void take_nearer(int64_t first, ProgressMeter& meter) override {
    parallel_for(divide_up(rows_.count, kRowsPerDrawTask), meter, resources_, [&](int64_t task, int) {
      for (int64_t i = task * kRowsPerDrawTask; i < std::min((task + 1) * kRowsPerDrawTask, rows_.count); ++i) {
        if (!(rows_.keys[i] < nearest_[i])) continue;
        nearest_[i] = rows_.keys[i];
        owner_[i] = static_cast<int32_t>(first) + rows_.labels[i];
      }
    });
  }

  double add_up(ProgressMeter& meter) override {
    tree_.add_up(steps_, meter, resources_);
    return tree_.total();
  }

  std::vector<uint32_t> draw(const std::vector<double>& shares) override {
    std::vector<uint32_t> drawn;
    drawn.reserve(shares.size());
    for (const double share : shares) drawn.push_back(tree_.draw(steps_, share));
    return drawn;
  }

  std::vector<float> weights(int64_t candidates) override {
    std::vector<double> sums(static_cast<size_t>(candidates), 0.0);
    for (int64_t i = 0; i < rows_.count; ++i) {
      sums[static_cast<size_t>(owner_[i])] += rows_.weights == nullptr ? 1.0 : static_cast<double>(rows_.weights[i]);
    }
    return {sums.begin(), sums.end()};
  }

 private:
  const RowsDrawnFrom rows_;
  const Resources& resources_;
  const HostArray<float> nearest_;  // each row's squared distance to the nearest candidate
  const HostArray<int32_t> owner_;  // which one
  const DrawSteps steps_;
  WeightedDraw tree_;
};

}  // namespace

std::unique_ptr<CandidateDraws> make_draws_on_host(const RowsDrawnFrom& rows, const Resources& resources) {
  return std::make_unique<DrawsOnHost>(rows, resources);
}

}  // namespace kith
