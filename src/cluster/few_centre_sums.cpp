#include "cluster/few_centre_sums.hpp"

#include "kernels/distance/add_rows_cpu.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kRowsBytes = 32 << 10;  // assigned and added up while they are in the nearest cache

}  // namespace

int64_t FewCentreSums::bytes_for(int64_t clusters, int64_t cols, int threads) {
  return array_bytes<double>((2 + threads) * clusters * (cols + 1));
}

FewCentreSums::FewCentreSums(int64_t clusters, int64_t cols, const Resources& resources)
    : clusters_(clusters),
      cols_(cols),
      block_(sum_block(clusters)),
      totals_(size(), "the centres' sums", resources),
      open_(size(), "the centres' sums", resources),
      blocks_(resources.threads() * size(), "the centres' sums", resources) {
  clear();
}

void FewCentreSums::clear() {
  std::fill(totals_.begin(), totals_.end(), 0.0);
  open_block_ = -1;
}

void FewCentreSums::add_block(const double* block) {
  for (int64_t i = 0; i < size(); ++i) totals_[i] += block[i];
}

void FewCentreSums::add(const MatrixView& rows, int64_t first, const int32_t* labels, const float* weights,
                        const Assign& assign, ProgressMeter& meter, const Resources& resources) {
  const int64_t end = first + rows.rows();
  const int64_t together = std::max<int64_t>(kRowsBytes / (cols_ * size_of(rows.dtype())) / 48 * 48, 48);
  const int64_t at_once = resources.threads();
  if (open_block_ >= 0 && first / block_ != open_block_) {
    add_block(open_.data());
    open_block_ = -1;
  }
  for (int64_t wave = first / block_; wave * block_ < end; wave += at_once) {
    const int64_t count = std::min(at_once, (end + block_ - 1) / block_ - wave);
    parallel_for(count, meter, resources, [&](int64_t task, int slot) {
      const int64_t block = wave + task;
      double* const sums = blocks_.data() + task * size();
      if (block == open_block_) {
        std::copy_n(open_.data(), size(), sums);
      } else {
        std::fill_n(sums, size(), 0.0);
      }
      const int64_t last = std::min((block + 1) * block_, end) - first;
      for (int64_t at = std::max(block * block_, first) - first; at < last; at += together) {
        const int64_t some = std::min(together, last - at);
        assign(at, some, slot);
        add_rows_cpu(rows.slice(at, some), labels + at, clusters_, weights == nullptr ? nullptr : weights + at, sums,
                     sums + clusters_ * cols_);
      }
    });
    for (int64_t task = 0; task < count; ++task) {
      const double* const sums = blocks_.data() + task * size();
      if ((wave + task + 1) * block_ > end) {  // goes on in the next piece
        std::copy_n(sums, size(), open_.data());
        open_block_ = wave + task;
      } else {
        if (wave + task == open_block_) open_block_ = -1;
        add_block(sums);
      }
    }
  }
}

SumsView FewCentreSums::finish() {
  if (open_block_ >= 0) add_block(open_.data());
  open_block_ = -1;
  return {totals_.data(), totals_.data() + clusters_ * cols_};
}

}  // namespace kith
