#include "cluster/draw/candidate_draws.hpp"

#include "cluster/draw/weighted_draw.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kRowsPerDrawTask = 8192;

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
    rows_.bring_pass();
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
