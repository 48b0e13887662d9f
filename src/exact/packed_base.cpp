#include "exact/packed_base.hpp"

#include "exact/finite_check.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/stored_row.hpp"
#include "kernels/select/candidate_list.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kCentreSample = 256;
// A panel's hits come to a candidate list together.
constexpr int64_t kWidestPanel = CandidateList::kLargestGroup;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

std::vector<float> choose_centre(KeyKind kind, const MatrixView& base) {
  const auto cols = static_cast<size_t>(base.cols());
  std::vector<float> centre(cols, 0.0f);
  if (!has_differences(kind) || base.rows() == 0) return centre;
  const int64_t samples = std::min(kCentreSample, base.rows());
  std::vector<double> sums(cols, 0.0);
  std::vector<float> row(cols);
  for (int64_t s = 0; s < samples; ++s) {
    widen_row(base, s * base.rows() / samples, row.data());
    for (size_t c = 0; c < cols; ++c) sums[c] += row[c];
  }
  for (size_t c = 0; c < cols; ++c) {
    const auto mean = static_cast<float>(sums[c] / static_cast<double>(samples));
    if (std::isfinite(mean)) centre[c] = mean;
  }
  return centre;
}

PackedBase::PackedBase(KeyKind kind, std::vector<float> centre, int64_t capacity, const Resources& resources)
    : kind_(kind), shape_(panel_shape()), centre_(std::move(centre)) {
  const int64_t rows = round_up(capacity, shape_.rows_per_panel);
  const auto cols = static_cast<int64_t>(centre_.size());
  constexpr int64_t kFloat = sizeof(float);
  panels_ = HostBuffer(rows * cols * kFloat, "the packed base", resources);
  terms_ = HostBuffer(rows * kFloat, "the packed base's norms", resources);
  norms_ = HostBuffer(rows / shape_.rows_per_panel * kFloat, "the packed base's norms", resources);
}

int64_t PackedBase::bytes_for(int64_t rows, int64_t cols, int threads) {
  return (rows + kWidestPanel * (threads + 1)) * (cols + 2) * static_cast<int64_t>(sizeof(float));
}

PanelBase PackedBase::panels() const {
  return {panels_.as<float>(), terms_.as<float>(), norms_.as<float>(), static_cast<int64_t>(centre_.size())};
}

void PackedBase::pack(const MatrixView& base, bool check_finite, int64_t first_row, int64_t work_per_row,
                      ProgressMeter& meter, const Resources& resources) {
  rows_ = base.rows();
  constexpr int64_t kPanelsPerTask = 16;
  const int64_t tasks = (panel_count() + kPanelsPerTask - 1) / kPanelsPerTask;
  std::atomic<int64_t> first_bad{INT64_MAX};  // the first panel with a value that is not finite
  const int64_t scratch_floats = shape_.rows_per_panel * base.cols();
  const HostBuffer scratch(resources.threads() * scratch_floats * static_cast<int64_t>(sizeof(float)), "packing",
                           resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    float* const unpacked = scratch.as<float>() + slot * scratch_floats;
    const int64_t end = std::min((task + 1) * kPanelsPerTask, panel_count());
    for (int64_t panel = task * kPanelsPerTask; panel < end; ++panel) {
      if (pack_one(base, panel, unpacked)) continue;
      int64_t seen = first_bad.load();
      while (panel < seen && !first_bad.compare_exchange_weak(seen, panel)) {
      }
    }
    meter.add((end - task * kPanelsPerTask) * shape_.rows_per_panel * work_per_row);
  });
  if (!check_finite || first_bad == INT64_MAX) return;
  int64_t row = first_bad * shape_.rows_per_panel;
  while (row_is_finite(base, row)) ++row;
  throw_not_finite("base", first_row + row);
}

bool PackedBase::pack_one(const MatrixView& base, int64_t panel, float* scratch) {
  const int64_t width = shape_.rows_per_panel;
  const int64_t first = panel * width;
  const int64_t count = std::min(width, base.rows() - first);
  const int64_t cols = base.cols();
  float* terms = terms_.as<float>() + first;
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    float* row = scratch + i * cols;
    widen_row(base, first + i, row);
    if (has_differences(kind_)) {
      for (int64_t c = 0; c < cols; ++c) row[c] -= centre_[static_cast<size_t>(c)];
    }
    double squared = canonical_squared_norm_cpu(row, cols);
    if (!std::isfinite(squared)) finite &= row_is_finite(base, first + i);  // else it is the difference that overflows
    if (kind_ == KeyKind::cosine) {
      const double inverse = canonical_inverse_norm(squared);
      for (int64_t c = 0; c < cols; ++c) row[c] = static_cast<float>(row[c] * inverse);
      if (std::isfinite(squared)) squared = 1;
    }
    terms[i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
    const float norm = squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity;
    largest = std::max(largest, norm);
  }
  std::fill(terms + count, terms + width, kInfinity);
  norms_.as<float>()[panel] = largest;
  pack_panel(scratch, count, cols, width, 1.0f, panels_.as<float>() + first * cols);
  return finite;
}

}  // namespace kith
