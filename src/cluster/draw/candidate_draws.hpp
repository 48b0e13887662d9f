// What the rounds of oversampled_start.hpp keep of every row: its distance to the nearest candidate so far, and which
// that is; and draws of rows by weight x distance (draw_tree.hpp). On the host, or where a backend has its rows.
//
// Cost of a round: one pass over the distances. Memory: 8 bytes a row.
#pragma once

#include <kith/resources.hpp>

#include "core/parallel_for.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class CandidateDraws {
 public:
  virtual ~CandidateDraws() = default;
  // After a pass whose centres are candidates first, first + 1, ...: rows that are nearer to one of these become
  // theirs.
  virtual void take_nearer(int64_t first, ProgressMeter& meter) = 0;
  // The sum of weight x distance as it is now, by which rows are drawn.
  virtual double add_up(ProgressMeter& meter) = 0;
  // The rows at these shares of the sum.
  virtual std::vector<uint32_t> draw(const std::vector<double>& shares) = 0;
  // The weight of the rows of each of so many candidates, added up in their order.
  virtual std::vector<float> weights(int64_t candidates) = 0;
};

// In host memory, one value for each row: passes write labels and keys.
struct RowsDrawnFrom {
  int64_t count = 0;
  const int32_t* labels = nullptr;
  const float* keys = nullptr;
  const float* weights = nullptr;  // or null
};
std::unique_ptr<CandidateDraws> make_draws_on_host(const RowsDrawnFrom& rows, const Resources& resources);

}  // namespace kith
