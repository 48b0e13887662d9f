#include "cluster/centre_sums.hpp"

#include "kernels/distance/stored_row.hpp"

#include <algorithm>
#include <cassert>

namespace kith {
namespace {

constexpr int64_t kTasksPerThread = 16;
constexpr int64_t kDouble = sizeof(double);
constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kRowsAhead = 4;

int64_t scratch_bytes(int64_t cols) { return (cols * (kDouble + kFloat) + 127) / 64 * 64; }

}  // namespace

int64_t CentreSums::bytes_for(int64_t clusters, int64_t cols, int64_t largest_piece, int threads) {
  return clusters * (cols + 1) * kDouble + (clusters + 1) * static_cast<int64_t>(sizeof(int64_t)) +
         largest_piece * static_cast<int64_t>(sizeof(uint32_t)) + threads * scratch_bytes(cols);
}

CentreSums::CentreSums(int64_t clusters, int64_t cols, int64_t largest_piece, const Resources& resources)
    : clusters_(clusters),
      cols_(cols),
      sums_(clusters * cols * kDouble, "the centres' sums", resources),
      weights_(clusters * kDouble, "the centres' weights", resources),
      starts_((clusters + 1) * static_cast<int64_t>(sizeof(int64_t)), "sorting rows by centre", resources),
      order_(largest_piece * static_cast<int64_t>(sizeof(uint32_t)), "sorting rows by centre", resources),
      scratch_(resources.threads() * scratch_bytes(cols), "the centres' sums", resources) {
  clear();
}

void CentreSums::clear() {
  std::fill_n(sums_.as<double>(), clusters_ * cols_, 0.0);
  std::fill_n(weights_.as<double>(), clusters_, 0.0);
}

// Afterwards starts_[c] is where the rows of centre c end, and starts_[c - 1] where they begin.
void CentreSums::sort(const int32_t* labels, int64_t count) {
  assert(count * static_cast<int64_t>(sizeof(uint32_t)) <= order_.bytes());
  int64_t* const starts = starts_.as<int64_t>();
  std::fill_n(starts, clusters_ + 1, int64_t{0});
  for (int64_t i = 0; i < count; ++i) ++starts[labels[i] + 1];
  for (int64_t c = 0; c < clusters_; ++c) starts[c + 1] += starts[c];
  uint32_t* const order = order_.as<uint32_t>();
  for (int64_t i = 0; i < count; ++i) order[starts[labels[i]]++] = static_cast<uint32_t>(i);
}

void CentreSums::add(const MatrixView& rows, const int32_t* labels, const float* weights, ProgressMeter& meter,
                     const Resources& resources) {
  sort(labels, rows.rows());
  const int64_t tasks = std::min<int64_t>(clusters_, kTasksPerThread * resources.threads());
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    auto* const partial = reinterpret_cast<double*>(scratch_.data() + slot * scratch_bytes(cols_));
    auto* const row = reinterpret_cast<float*>(partial + cols_);
    for (int64_t c = clusters_ * task / tasks; c < clusters_ * (task + 1) / tasks; ++c) {
      add_centre(c, rows, weights, partial, row);
    }
  });
}

void CentreSums::add_centre(int64_t centre, const MatrixView& rows, const float* weights, double* partial,
                            float* row) const {
  const int64_t* const ends = starts_.as<int64_t>();
  const uint32_t* const order = order_.as<uint32_t>();
  const int64_t end = ends[centre];
  double* const sum = sums_.as<double>() + centre * cols_;
  double weight = 0;
  int64_t block = -1;
  const auto flush = [&] {
    for (int64_t c = 0; c < cols_; ++c) sum[c] += partial[c];
    weights_.as<double>()[centre] += weight;
  };
  for (int64_t at = centre == 0 ? 0 : ends[centre - 1]; at < end; ++at) {
    const int64_t i = order[at];
    const std::byte* ahead = rows.row(order[std::min(at + kRowsAhead, end - 1)]);
    for (int64_t byte = 0; byte < std::min<int64_t>(cols_ * size_of(rows.dtype()), 1024); byte += 64) {
      __builtin_prefetch(ahead + byte);
    }
    if (i / kSumBlock != block) {
      if (block >= 0) flush();
      block = i / kSumBlock;
      std::fill_n(partial, cols_, 0.0);
      weight = 0;
    }
    widen_row(rows, i, row);
    if (weights == nullptr) {
      for (int64_t c = 0; c < cols_; ++c) partial[c] += static_cast<double>(row[c]);
      weight += 1;
    } else {
      const auto w = static_cast<double>(weights[i]);
      for (int64_t c = 0; c < cols_; ++c) partial[c] += w * static_cast<double>(row[c]);
      weight += w;
    }
  }
  if (block >= 0) flush();
}

}  // namespace kith
