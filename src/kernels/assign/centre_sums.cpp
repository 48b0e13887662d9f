#include "kernels/assign/centre_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/assign/centre_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "rows/load_cpu-inl.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cassert>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kSumDoubles = hn::MaxLanes(F64());

// A weight times a value is exact in double, so that a fused step would round as two do.
template <bool kWeighted, typename T, typename Label>
void add_type(const MatrixView& rows, const Label* labels, const float* weights, double* sums, double* weight_sums) {
  const F64 d;
  const int64_t cols = rows.cols();
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const T* const row = static_cast<const T*>(rows.data()) + i * rows.row_stride();
    double* const sum = sums + labels[i] * cols;
    const double weight = kWeighted ? static_cast<double>(weights[i]) : 1.0;
    int64_t c = 0;
#pragma GCC unroll 4
    for (; c + kSumDoubles <= cols; c += kSumDoubles) {
      auto value = load_doubles(row + c);
      if constexpr (kWeighted) value = hn::Mul(hn::Set(d, weight), value);
      hn::StoreU(hn::Add(hn::LoadU(d, sum + c), value), d, sum + c);
    }
    for (; c < cols; ++c) sum[c] += weight * static_cast<double>(static_cast<float>(row[c]));
    weight_sums[labels[i]] += weight;
  }
}

void AddRows(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums, double* weight_sums) {
  visit_dtype(rows.dtype(), [&]<typename T>(StoredAs<T>) {
    weights == nullptr ? add_type<false, T>(rows, labels, weights, sums, weight_sums)
                       : add_type<true, T>(rows, labels, weights, sums, weight_sums);
  });
}

void AddCodedRows(const MatrixView& rows, const uint8_t* labels, double* sums, double* counts) {
  add_type<false, float>(rows, labels, nullptr, sums, counts);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(AddRows);
HWY_EXPORT(AddCodedRows);

void add_rows_cpu(const MatrixView& rows, const int32_t* labels, const float* weights, double* sums,
                  double* weight_sums) {
  HWY_DYNAMIC_DISPATCH(AddRows)(rows, labels, weights, sums, weight_sums);
}

void add_rows_cpu(const MatrixView& rows, const uint8_t* labels, double* sums, double* counts) {
  HWY_DYNAMIC_DISPATCH(AddCodedRows)(rows, labels, sums, counts);
}

namespace {

constexpr int64_t kTasksPerThread = 16;
constexpr int64_t kRowsAhead = 4;
constexpr int64_t kRowsBytes = 32 << 10;  // assigned and summed while in the L1 cache

// Scratch floats per thread, rounded up so that threads never share a cache line.
int64_t scratch_floats(int64_t cols) { return round_up(cols + 16, 16); }

// The rows from `first` on.
void assign_some(CentreAssigner& assigner, const MatrixView& rows, int64_t first, int64_t count, int32_t* labels,
                 float* keys, int slot, ProgressMeter& meter) {
  assigner.assign(rows.slice(first, count), labels + first, keys == nullptr ? nullptr : keys + first, slot);
  meter.add(count);
}

}  // namespace

CentreSums::CentreSums(int64_t centres, int64_t cols, int64_t largest_piece, const Resources& resources)
    : CentreSums(centres, cols, largest_piece, CentreAssigner::has_few(centres), resources) {}

CentreSums::CentreSums(int64_t centres, int64_t cols, int64_t largest_piece, ByCentre, const Resources& resources)
    : CentreSums(centres, cols, largest_piece, false, resources) {}

CentreSums::CentreSums(int64_t centres, int64_t cols, int64_t largest_piece, bool few, const Resources& resources)
    : centres_(centres),
      cols_(cols),
      block_(sum_block(centres)),
      few_(few),
      totals_(size(), "the centres' sums", resources),
      open_(few_ ? size() : centres * (cols + 2), "the centres' sums", resources),
      blocks_(few_ ? resources.threads() * size() : 0, "the centres' sums", resources),
      starts_(few_ ? 0 : centres + 1, "sorting rows by centre", resources),
      order_(few_ ? 0 : largest_piece, "sorting rows by centre", resources),
      scratch_(few_ ? 0 : resources.threads() * scratch_floats(cols), "the centres' sums", resources) {}

void CentreSums::clear() {
  std::fill(totals_.begin(), totals_.end(), 0.0);
  open_block_ = -1;
  for (int64_t c = 0; !few_ && c < centres_; ++c) open_[c * (cols_ + 2) + cols_ + 1] = -1;  // no block
}

void CentreSums::add_to_totals(const double* block) {
  for (int64_t i = 0; i < size(); ++i) totals_[i] += block[i];
}

void CentreSums::add_by_block(CentreAssigner& assigner, const MatrixView& rows, int64_t first, int32_t* labels,
                              float* keys, const float* weights, ProgressMeter& meter, const Resources& resources) {
  const int64_t end = first + rows.rows();
  const int64_t together = std::max<int64_t>(kRowsBytes / (cols_ * size_of(rows.dtype())) / 48 * 48, 48);
  const int64_t at_once = resources.threads();
  if (open_block_ >= 0 && first / block_ != open_block_) {
    add_to_totals(open_.data());
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
        assign_some(assigner, rows, at, some, labels, keys, slot, meter);
        add_rows_cpu(rows.slice(at, some), labels + at, weights == nullptr ? nullptr : weights + at, sums,
                     sums + centres_ * cols_);
      }
    });
    for (int64_t task = 0; task < count; ++task) {
      const double* const sums = blocks_.data() + task * size();
      if ((wave + task + 1) * block_ > end) {  // continues in the next piece
        std::copy_n(sums, size(), open_.data());
        open_block_ = wave + task;
      } else {
        if (wave + task == open_block_) open_block_ = -1;
        add_to_totals(sums);
      }
    }
  }
}

void CentreSums::add(CentreAssigner& assigner, const MatrixView& rows, int64_t first, int32_t* labels, float* keys,
                     const float* weights, ProgressMeter& meter, const Resources& resources) {
  if (few_) return add_by_block(assigner, rows, first, labels, keys, weights, meter, resources);
  const int64_t together = assigner.block_rows();
  parallel_for(divide_up(rows.rows(), together), meter, resources, [&](int64_t task, int slot) {
    const int64_t at = task * together;
    assign_some(assigner, rows, at, std::min(together, rows.rows() - at), labels, keys, slot, meter);
  });
  order_by_centre(labels, rows.rows());
  add_centres(0, centres_, rows, first, weights, meter, resources);
}

void CentreSums::add_centres(int64_t begin, int64_t end, const MatrixView& rows, int64_t first, const float* weights,
                             ProgressMeter& meter, const Resources& resources) {
  const int64_t count = end - begin;
  const int64_t tasks = std::min<int64_t>(count, kTasksPerThread * resources.threads());
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    float* const row = scratch_.data() + slot * scratch_floats(cols_);
    for (int64_t c = begin + count * task / tasks; c < begin + count * (task + 1) / tasks; ++c) {
      add_centre(c, rows, first, weights, row);
    }
  });
}

// Afterwards starts_[c] is where the rows of centre c end, and starts_[c - 1] where they begin.
void CentreSums::order_by_centre(const int32_t* labels, int64_t count) {
  assert(count <= order_.size());
  int64_t* const starts = starts_.data();
  std::fill_n(starts, centres_ + 1, int64_t{0});
  for (int64_t i = 0; i < count; ++i) ++starts[labels[i] + 1];
  for (int64_t c = 0; c < centres_; ++c) starts[c + 1] += starts[c];
  uint32_t* const order = order_.data();
  for (int64_t i = 0; i < count; ++i) order[starts[labels[i]]++] = static_cast<uint32_t>(i);
}

// Adds the block's sums to the total.
void CentreSums::close_block(int64_t centre) const {
  const double* const partial = open_.data() + centre * (cols_ + 2);
  if (partial[cols_ + 1] < 0) return;
  double* const sum = totals_.data() + centre * cols_;
  for (int64_t c = 0; c < cols_; ++c) sum[c] += partial[c];
  totals_[centres_ * cols_ + centre] += partial[cols_];
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

void CentreSums::write_state(int64_t begin, int64_t end, double* out) const {
  out = std::copy(totals_.data() + begin * cols_, totals_.data() + end * cols_, out);
  out = std::copy(totals_.data() + centres_ * cols_ + begin, totals_.data() + centres_ * cols_ + end, out);
  std::copy(open_.data() + begin * (cols_ + 2), open_.data() + end * (cols_ + 2), out);
}

void CentreSums::read_state(int64_t begin, int64_t end, const double* in) {
  const int64_t count = end - begin;
  std::copy_n(in, count * cols_, totals_.data() + begin * cols_);
  in += count * cols_;
  std::copy_n(in, count, totals_.data() + centres_ * cols_ + begin);
  std::copy_n(in + count, count * (cols_ + 2), open_.data() + begin * (cols_ + 2));
}

SumsView CentreSums::finish() {
  if (few_ && open_block_ >= 0) add_to_totals(open_.data());
  open_block_ = -1;
  for (int64_t c = 0; !few_ && c < centres_; ++c) {
    close_block(c);
    open_[c * (cols_ + 2) + cols_ + 1] = -1;
  }
  return {totals_.data(), totals_.data() + centres_ * cols_};
}

}  // namespace kith
#endif
