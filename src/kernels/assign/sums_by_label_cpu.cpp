#include "kernels/assign/sums_by_label_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/assign/sums_by_label_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/dtype_visit.hpp"
#include "rows/load_cpu-inl.hpp"

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
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
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

}  // namespace kith
#endif
