#include "kernels/assign/sums_by_label_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/assign/sums_by_label_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>

#ifndef KITH_KERNELS_ASSIGN_SUMS_BY_LABEL_CPU_ONCE
#define KITH_KERNELS_ASSIGN_SUMS_BY_LABEL_CPU_ONCE
namespace kith {
namespace {

constexpr int64_t kMostSorted = 1024;       // rows whose numbers are sorted at a time
constexpr int64_t kMostLabels = 256;        // that rows are sorted by
constexpr int64_t kRowsPerLabel = 3;        // from so many on it pays,
constexpr int64_t kSortedBytes = 64 << 10;  // where rows lie so close that the nearest cache holds them

// The numbers of rows by label, in their order.
struct LabelOrder {
  uint16_t starts[kMostLabels + 1];
  uint16_t rows[kMostSorted];

  template <typename Label>
  LabelOrder(const Label* labels, int64_t count, int64_t labels_end) {
    std::fill_n(starts, labels_end + 1, uint16_t{0});
    for (int64_t i = 0; i < count; ++i) ++starts[labels[i] + 1];
    for (int64_t label = 0; label < labels_end; ++label) starts[label + 1] += starts[label];
    for (int64_t i = 0; i < count; ++i) rows[starts[labels[i]]++] = static_cast<uint16_t>(i);
    for (int64_t label = labels_end; label > 0; --label) starts[label] = starts[label - 1];
    starts[0] = 0;
  }
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kSumDoubles = hn::MaxLanes(F64());
constexpr int kSumVectors = 8;  // of a sum, in registers

// Rows that belong to one label, or one row.
template <typename T>
struct RowsOfLabel {
  const T* data = nullptr;
  int64_t stride = 0;
  const uint16_t* numbers = nullptr;
  int64_t count = 0;
  const float* weights = nullptr;
};

// kVectors vectors of a sum over all rows of the label. A weight times a value is exact in double, so that a fused step
// would round as two do.
template <bool kWeighted, int kVectors, typename T>
HWY_INLINE void add_columns(const RowsOfLabel<T>& rows, int64_t first, double* sum) {
  const F64 d;
  hn::Vec<F64> sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, sum + first + v * kSumDoubles);
  for (int64_t i = 0; i < rows.count; ++i) {
    const T* const from = rows.data + rows.numbers[i] * rows.stride + first;
    const auto weight = hn::Set(d, kWeighted ? static_cast<double>(rows.weights[rows.numbers[i]]) : 1.0);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      auto value = load_doubles(from + v * kSumDoubles);
      if constexpr (kWeighted) value = hn::Mul(weight, value);
      sums[v] = hn::Add(sums[v], value);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, sum + first + v * kSumDoubles);
}

template <bool kWeighted, typename T>
HWY_INLINE void add_label(const RowsOfLabel<T>& rows, int64_t cols, double* sum, double& weight_sum) {
  int64_t c = 0;
  for (; c + kSumVectors * kSumDoubles <= cols; c += kSumVectors * kSumDoubles) {
    add_columns<kWeighted, kSumVectors>(rows, c, sum);
  }
  for (; c + kSumDoubles <= cols; c += kSumDoubles) add_columns<kWeighted, 1>(rows, c, sum);
  for (int64_t i = 0; i < rows.count; ++i) {
    const T* const from = rows.data + rows.numbers[i] * rows.stride;
    const double weight = kWeighted ? static_cast<double>(rows.weights[rows.numbers[i]]) : 1.0;
    for (int64_t tail = c; tail < cols; ++tail) {
      sum[tail] += weight * static_cast<double>(static_cast<float>(from[tail]));
    }
    weight_sum += weight;
  }
}

template <bool kWeighted, typename T, typename Label>
void add_type(const MatrixView& rows, const Label* labels, int64_t labels_end, const float* weights, double* sums,
              double* weight_sums) {
  const int64_t cols = rows.cols();
  const auto* data = static_cast<const T*>(rows.data());
  const int64_t span = std::min(kMostSorted, rows.rows()) * rows.row_stride() * static_cast<int64_t>(sizeof(T));
  const bool sorts = labels_end <= kMostLabels && rows.rows() >= kRowsPerLabel * labels_end && span <= kSortedBytes;
  if (!sorts) {
    constexpr uint16_t kItself = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const RowsOfLabel<T> one{data + i * rows.row_stride(), 0, &kItself, 1, kWeighted ? weights + i : nullptr};
      add_label<kWeighted>(one, cols, sums + labels[i] * cols, weight_sums[labels[i]]);
    }
    return;
  }
  for (int64_t first = 0; first < rows.rows(); first += kMostSorted) {
    const LabelOrder order(labels + first, std::min(kMostSorted, rows.rows() - first), labels_end);
    const float* const own = kWeighted ? weights + first : nullptr;
    for (int64_t label = 0; label < labels_end; ++label) {
      const int64_t count = order.starts[label + 1] - order.starts[label];
      if (count == 0) continue;
      add_label<kWeighted>(RowsOfLabel<T>{data + first * rows.row_stride(), rows.row_stride(),
                                          order.rows + order.starts[label], count, own},
                           cols, sums + label * cols, weight_sums[label]);
    }
  }
}

void AddRows(const MatrixView& rows, const int32_t* labels, int64_t labels_end, const float* weights, double* sums,
             double* weight_sums) {
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    weights == nullptr ? add_type<false, T>(rows, labels, labels_end, weights, sums, weight_sums)
                       : add_type<true, T>(rows, labels, labels_end, weights, sums, weight_sums);
  });
}

void AddCodedRows(const MatrixView& rows, const uint8_t* labels, int64_t labels_end, double* sums, double* counts) {
  add_type<false, float>(rows, labels, labels_end, nullptr, sums, counts);
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(AddRows);
HWY_EXPORT(AddCodedRows);

void add_rows_cpu(const MatrixView& rows, const int32_t* labels, int64_t labels_end, const float* weights, double* sums,
                  double* weight_sums) {
  HWY_DYNAMIC_DISPATCH(AddRows)(rows, labels, labels_end, weights, sums, weight_sums);
}

void add_rows_cpu(const MatrixView& rows, const uint8_t* labels, int64_t labels_end, double* sums, double* counts) {
  HWY_DYNAMIC_DISPATCH(AddCodedRows)(rows, labels, labels_end, sums, counts);
}

}  // namespace kith
#endif
