// The form of assignment for up to seven centres and f32 rows, where a SIMD vector of centres would be mostly padding.
// Vectors run along the columns instead, and rows are read in place, once.
//
// A row has kSlots sums: a product with each centre, and its own squares in the last one. Enough rows are processed at
// a time for one sum per lane of a vector (add_lanes_cpu-inl.hpp). Included once per instruction set.
//
// Cost: rows x (centres + 2) x columns operations in f32, and rows x columns in double if keys are wanted.
#if defined(KITH_KERNELS_ASSIGN_ASSIGN_VERY_FEW_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_ASSIGN_ASSIGN_VERY_FEW_CPU_INL
#undef KITH_KERNELS_ASSIGN_ASSIGN_VERY_FEW_CPU_INL
#else
#define KITH_KERNELS_ASSIGN_ASSIGN_VERY_FEW_CPU_INL
#endif

#include <kith/view.hpp>

#include "core/divide.hpp"
#include "kernels/assign/canonical_pair_cpu-inl.hpp"
#include "kernels/assign/compare_task.hpp"
#include "kernels/distance/add_lanes_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBytesAhead = 4096;  // prefetch distance

// Not on ARM, whose cores prefetch consecutive rows by themselves, and faster without hints.
HWY_INLINE void fetch_ahead([[maybe_unused]] const void* row, [[maybe_unused]] int64_t bytes) {
#if !HWY_ARCH_ARM_A64
  for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(static_cast<const char*>(row) + byte);
#endif
}

// Broadcasts the minimum of each group of kSlots lanes.
template <int kSlots>
HWY_INLINE Vec least_of_slots(Vec values) {
  values = hn::Min(values, hn::Shuffle2301(values));
  values = hn::Min(values, hn::Shuffle1032(values));
  if constexpr (kSlots == 8) values = hn::Min(values, hn::SwapAdjacentBlocks(values));
  return values;
}

// Broadcasts the last of each group of kSlots lanes.
template <int kSlots>
HWY_INLINE Vec last_of_slots(Vec values) {
  const Vec last = hn::Broadcast<3>(values);
  if constexpr (kSlots == 8) return hn::OddEvenBlocks(last, hn::SwapAdjacentBlocks(last));
  return last;
}

template <int kCount>
bool nearest_of(const CompareTask& task, const MatrixView& rows, int32_t* labels, float* keys, float* scratch) {
  constexpr int kSlots = kCount < 4 ? 4 : 8;
  constexpr int kRows = kFloats / kSlots;
  constexpr uint32_t kAllSlots = (1u << kSlots) - 1;
  const bool is_product = task.kind == KeyKind::inner_product;
  const F32 d;
  const int64_t whole = task.cols / kFloats * kFloats;
  const auto real = hn::FirstN(d, static_cast<size_t>(task.cols - whole));
  const int64_t whole_lanes = task.cols / kCanonicalLanes * kCanonicalLanes;
  HWY_ALIGN float start[kFloats];
  HWY_ALIGN float squares_lanes[kFloats];
  for (int64_t lane = 0; lane < kFloats; ++lane) {
    const int64_t slot = lane % kSlots;
    start[lane] = slot < task.count ? task.terms[slot] : slot == kSlots - 1 ? 0.0f : HUGE_VALF;
    squares_lanes[lane] = slot == kSlots - 1 ? 1.0f : 0.0f;
  }
  const Vec terms = hn::Load(d, start);
  const auto of_squares = hn::Gt(hn::Load(d, squares_lanes), hn::Zero(d));
  const Vec infinite = hn::Set(d, HUGE_VALF);

  // Rows followed by at least a vector of values of the same matrix are read in place, others from a padded copy.
  const auto* const data = static_cast<const float*>(rows.data());
  const int64_t behind = rows.row_stride() > 0 ? divide_up(kFloats, rows.row_stride()) : rows.rows();
  std::fill_n(scratch, kRows * task.padded, 0.0f);
  const int64_t row_bytes = task.cols * static_cast<int64_t>(sizeof(float));
  const int64_t ahead = std::max<int64_t>(kBytesAhead / row_bytes, kRows);

  bool bounded = true;
  for (int64_t first = 0; first < rows.rows(); first += kRows) {
    const float* row[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t i = std::min(first + r, rows.rows() - 1);
      row[r] = data + i * rows.row_stride();
      if (i + ahead < rows.rows()) fetch_ahead(row[r] + ahead * rows.row_stride(), row_bytes);
      if (i + behind < rows.rows()) continue;
      row[r] = std::copy_n(row[r], task.cols, scratch + r * task.padded) - task.cols;
    }
    Vec sums[kFloats];
#pragma GCC unroll 16
    for (auto& sum : sums) sum = hn::Zero(d);
    const auto step = [&](int64_t c, int r, Vec value) HWY_ATTR {
      sums[r * kSlots + kSlots - 1] = hn::MulAdd(value, value, sums[r * kSlots + kSlots - 1]);
#pragma GCC unroll 8
      for (int j = 0; j < kCount; ++j) {
        sums[r * kSlots + j] = hn::MulAdd(value, hn::LoadU(d, task.lines + j * task.padded + c), sums[r * kSlots + j]);
      }
    };
    for (int64_t c = 0; c < whole; c += kFloats) {
      const Vec origin = hn::LoadU(d, task.origin + c);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) step(c, r, hn::Sub(hn::LoadU(d, row[r] + c), origin));
    }
    if (whole < task.cols) {
      const Vec origin = hn::LoadU(d, task.origin + whole);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        step(whole, r, hn::IfThenElseZero(real, hn::Sub(hn::LoadU(d, row[r] + whole), origin)));
      }
    }
    const Vec all = hn::Add(add_lanes(sums), terms);
    // CompareTask::slack, one row per kSlots lanes; infinite for values that are not finite or nearly so.
    const Vec squares = last_of_slots<kSlots>(all);
    const Vec norm = hn::Mul(hn::Sqrt(squares), hn::Set(d, 1.001f));
    const Vec inner = hn::MulAdd(norm, hn::Set(d, task.bound.quadratic), hn::Set(d, task.bound.linear));
    const Vec slack = hn::Mul(hn::Set(d, 2.0f), hn::MulAdd(norm, inner, hn::Set(d, task.bound.constant)));
    const auto is_bounded =
        hn::And(hn::Lt(squares, hn::Set(d, static_cast<float>(kLargestSquaredNorm))), hn::Lt(slack, infinite));
    const Vec values = hn::IfThenElse(of_squares, infinite, all);
    const Vec limits = hn::Add(least_of_slots<kSlots>(values), slack);
    const uint32_t near = bits_of(hn::And(hn::Le(values, limits), is_bounded));

    const int64_t count = std::min<int64_t>(kRows, rows.rows() - first);
    // The last columns, zero-padded to a multiple of the canonical lanes.
    HWY_ALIGN float rests[kRows * kCanonicalLanes];
    CanonicalPair pairs[kRows];
    bool all_sure = true;
    for (int64_t r = 0; r < count; ++r) {
      const uint32_t candidates = (near >> (r * kSlots)) & kAllSlots;
      const bool is_sure = std::has_single_bit(candidates);
      all_sure &= is_sure;
      if (is_sure) labels[first + r] = std::countr_zero(candidates);
      if (is_sure && keys == nullptr) continue;
      pairs[r].row = row[r];
      pairs[r].few = task.wide + (is_sure ? std::countr_zero(candidates) : 0) * task.padded;
      if (whole_lanes == task.cols) continue;
      pairs[r].rest = rests + r * kCanonicalLanes;
      for (int64_t v = 0; v < kCanonicalLanes; v += kFloats) {
        const int64_t left = task.cols - whole_lanes - v;
        const auto filled = hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(left, 0)));
        const Vec value = left > 0 ? hn::LoadU(d, row[r] + whole_lanes + v) : hn::Zero(d);
        hn::Store(hn::IfThenElseZero(filled, value), d, rests + r * kCanonicalLanes + v);
      }
    }
    if (HWY_LIKELY(all_sure)) {
      if (keys == nullptr) continue;
      is_product ? canonical_of_all<KeyKind::inner_product>(pairs, count, whole_lanes, keys + first)
                 : canonical_of_all<KeyKind::squared_l2>(pairs, count, whole_lanes, keys + first);
      continue;
    }
    for (int64_t r = 0; r < count; ++r) {
      uint32_t candidates = (near >> (r * kSlots)) & kAllSlots;
      if (keys == nullptr && std::has_single_bit(candidates)) continue;
      if (candidates == 0) {
        candidates = (1u << task.count) - 1;
        bounded = false;
      }
      uint64_t best = kPadding;
      for (; candidates != 0; candidates &= candidates - 1) {
        const auto few = static_cast<uint32_t>(std::countr_zero(candidates));
        pairs[r].few = task.wide + few * task.padded;
        const float key = is_product ? canonical_of<KeyKind::inner_product>(pairs[r], whole_lanes)
                                     : canonical_of<KeyKind::squared_l2>(pairs[r], whole_lanes);
        best = std::min(best, pack_neighbor(ordered_key(key), few));
      }
      labels[first + r] = static_cast<int32_t>(row_of(best));
      if (keys != nullptr) keys[first + r] = key_of_ordered(ordered_of(best));
    }
  }
  return bounded;
}

// Whether this form is faster for so few centres: short vectors are filled by columns as well.
constexpr bool is_very_few(int64_t count) { return kFloats >= 8 && count <= kVeryFewCentres; }

// As NearestOfFew.
HWY_INLINE bool nearest_of_very_few(const CompareTask& task, const MatrixView& rows, int32_t* labels, float* keys,
                                   float* scratch) {
  if constexpr (kFloats >= 8) {
    switch (task.count) {
      case 3: return nearest_of<3>(task, rows, labels, keys, scratch);
      case 4: return nearest_of<4>(task, rows, labels, keys, scratch);
      case 5: return nearest_of<5>(task, rows, labels, keys, scratch);
      case 6: return nearest_of<6>(task, rows, labels, keys, scratch);
      case 7: return nearest_of<7>(task, rows, labels, keys, scratch);
      default: return nearest_of<2>(task, rows, labels, keys, scratch);
    }
  }
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
