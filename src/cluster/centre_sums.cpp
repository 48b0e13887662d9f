#include "cluster/centre_sums.hpp"

#include "core/divide.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cassert>

namespace kith {
namespace {

constexpr int64_t kTasksPerThread = 16;
constexpr int64_t kRowsAhead = 4;

// Of one thread; no two share a cache line.
int64_t scratch_floats(int64_t cols) { return round_up(cols + 16, 16); }

}  // namespace

int64_t CentreSums::bytes_for(int64_t clusters, int64_t cols, int64_t largest_piece, int threads) {
  return array_bytes<double>(clusters * (2 * cols + 3)) + array_bytes<int64_t>(clusters + 1) +
         array_bytes<uint32_t>(largest_piece) + array_bytes<float>(threads * scratch_floats(cols));
}

CentreSums::CentreSums(int64_t clusters, int64_t cols, int64_t largest_piece, const Resources& resources)
    : clusters_(clusters),
      cols_(cols),
      block_(sum_block(clusters)),
      sums_(clusters * cols, "the centres' sums", resources),
      weights_(clusters, "the centres' weights", resources),
      open_(clusters * (cols + 2), "the centres' sums", resources),
      starts_(clusters + 1, "sorting rows by centre", resources),
      order_(largest_piece, "sorting rows by centre", resources),
      scratch_(resources.threads() * scratch_floats(cols), "the centres' sums", resources) {
  clear();
}

void CentreSums::clear() {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(weights_.begin(), weights_.end(), 0.0);
  for (int64_t c = 0; c < clusters_; ++c) open_[c * (cols_ + 2) + cols_ + 1] = -1;  // no block
}

// Afterwards starts_[c] is where the rows of centre c end, and starts_[c - 1] where they begin.
void CentreSums::sort(const int32_t* labels, int64_t count) {
  assert(count <= order_.size());
  int64_t* const starts = starts_.data();
  std::fill_n(starts, clusters_ + 1, int64_t{0});
  for (int64_t i = 0; i < count; ++i) ++starts[labels[i] + 1];
  for (int64_t c = 0; c < clusters_; ++c) starts[c + 1] += starts[c];
  uint32_t* const order = order_.data();
  for (int64_t i = 0; i < count; ++i) order[starts[labels[i]]++] = static_cast<uint32_t>(i);
}

void CentreSums::add(const MatrixView& rows, int64_t first, const int32_t* labels, const float* weights,
                     ProgressMeter& meter, const Resources& resources) {
  sort(labels, rows.rows());
  const int64_t tasks = std::min<int64_t>(clusters_, kTasksPerThread * resources.threads());
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    float* const row = scratch_.data() + slot * scratch_floats(cols_);
    for (int64_t c = clusters_ * task / tasks; c < clusters_ * (task + 1) / tasks; ++c) {
      add_centre(c, rows, first, weights, row);
    }
  });
}

// Adds the block's sums to the total.
void CentreSums::close_block(int64_t centre) const {
  const double* const partial = open_.data() + centre * (cols_ + 2);
  if (partial[cols_ + 1] < 0) return;
  double* const sum = sums_.data() + centre * cols_;
  for (int64_t c = 0; c < cols_; ++c) sum[c] += partial[c];
  weights_[centre] += partial[cols_];
}

void CentreSums::add_centre(int64_t centre, const MatrixView& rows, int64_t first, const float* weights,
                            float* row) const {
  const int64_t* const ends = starts_.data();
  const uint32_t* const order = order_.data();
  const int64_t end = ends[centre];
  double* const partial = open_.data() + centre * (cols_ + 2);
  auto block = static_cast<int64_t>(partial[cols_ + 1]);
  for (int64_t at = centre == 0 ? 0 : ends[centre - 1]; at < end; ++at) {
    const int64_t i = order[at];
    const std::byte* ahead = rows.row(order[std::min(at + kRowsAhead, end - 1)]);
    for (int64_t byte = 0; byte < std::min<int64_t>(cols_ * size_of(rows.dtype()), 1024); byte += 64) {
      __builtin_prefetch(ahead + byte);
    }
    if ((first + i) / block_ != block) {
      close_block(centre);
      block = (first + i) / block_;
      std::fill_n(partial, cols_ + 1, 0.0);
      partial[cols_ + 1] = static_cast<double>(block);
    }
    widen_row(rows, i, row);
    if (weights == nullptr) {
      for (int64_t c = 0; c < cols_; ++c) partial[c] += static_cast<double>(row[c]);
      partial[cols_] += 1;
    } else {
      const auto w = static_cast<double>(weights[i]);
      for (int64_t c = 0; c < cols_; ++c) partial[c] += w * static_cast<double>(row[c]);
      partial[cols_] += w;
    }
  }
}

SumsView CentreSums::finish() {
  for (int64_t c = 0; c < clusters_; ++c) {
    close_block(c);
    open_[c * (cols_ + 2) + cols_ + 1] = -1;
  }
  return {sums_.data(), weights_.data()};
}

}  // namespace kith
