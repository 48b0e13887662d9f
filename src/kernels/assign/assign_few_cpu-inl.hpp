// Rows of a matrix multiplied with few rows, a group of rows at a time, for centre_table_cpu.cpp. Included once for
// each instruction set.
//
// A group's sums lie in registers: some rows times some vectors of the few, one value of a row times a vector at each
// column. Rows are widened and moved to the origin first, so that rounding is small beside what tells centres apart.
// Beside all values of a row the least of every step, a vector of them, is kept: whoever looks for values up to a limit
// looks at these alone, mostly.
#if defined(KITH_KERNELS_ASSIGN_ASSIGN_FEW_CPU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KITH_KERNELS_ASSIGN_ASSIGN_FEW_CPU_INL
#undef KITH_KERNELS_ASSIGN_ASSIGN_FEW_CPU_INL
#else
#define KITH_KERNELS_ASSIGN_ASSIGN_FEW_CPU_INL
#endif

#include "core/divide.hpp"
#include "kernels/assign/assign_handful_cpu-inl.hpp"
#include "kernels/assign/compare_task.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows and vectors of the few in registers at a time.
#if HWY_TARGET <= HWY_AVX3
constexpr int kGroup = 8;
constexpr int kMostVectors = 3;
#elif HWY_ARCH_ARM_A64
constexpr int kGroup = 6;
constexpr int kMostVectors = 4;
#else
constexpr int kGroup = 6;
constexpr int kMostVectors = 2;
#endif
static_assert(kGroup <= kRowsTogether);
constexpr int64_t kStepFloats = kMostVectors * kFloats;
constexpr int64_t kMostSteps = divide_up(kMostFewCentres, kStepFloats);

// Rows that are compared at a time.
template <typename T>
struct RowGroup {
  int64_t first = 0;
  int64_t count = 0;
  const T* rows = nullptr;  // as they lie
  int64_t stride = 0;
  const float* values = nullptr;  // of each row for all of the few, task.width apart
  const float* least = nullptr;   // of each row and each step's vectors, lane by lane
  const float* norms = nullptr;   // squared, of rows less the origin
  float* copies = nullptr;        // room for a padded row of each
};

#if HWY_ARCH_ARM_A64
// One of four lanes, in all of them; known where loops are unrolled.
HWY_INLINE Vec lane_of(Vec x, int lane) {
  if (lane == 0) return hn::Broadcast<0>(x);
  if (lane == 1) return hn::Broadcast<1>(x);
  return lane == 2 ? hn::Broadcast<2>(x) : hn::Broadcast<3>(x);
}
#endif

// The products of a group of rows with kVectors vectors of the few, from number `first` on.
template <int kVectors>
HWY_NOINLINE void multiply(const CompareTask& task, const float* rows, int64_t first, float* values, float* least) {
  const F32 d;
  // Sums that nothing waits for: two of the same where a step has few.
  constexpr int kSplit = HWY_ARCH_ARM_A64 && 2 * kVectors <= kMostVectors ? 2 : 1;
  Vec sums[kSplit][kGroup][kVectors];
  const float* tables[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = first + v * kFloats;
    tables[v] = task.table + at / kCentreTile * kCentreTile * task.cols + at % kCentreTile;
    const Vec term = hn::LoadU(d, task.terms + at);
#pragma GCC unroll 8
    for (int r = 0; r < kGroup; ++r) {
      sums[0][r][v] = term;
      if constexpr (kSplit > 1) sums[kSplit - 1][r][v] = hn::Zero(d);
    }
  }
  const float* row[kGroup];
#pragma GCC unroll 8
  for (int r = 0; r < kGroup; ++r) row[r] = rows + r * task.padded;
  const int64_t cols = task.cols;
  int64_t c = 0;
#if HWY_ARCH_ARM_A64
  // Four values of a row in a register, of which a product takes one: a value to all lanes takes as long as a product.
  for (; c + 4 <= cols; c += 4) {
    Vec x[kGroup];
#pragma GCC unroll 8
    for (int r = 0; r < kGroup; ++r) x[r] = hn::LoadU(d, row[r] + c);
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; ++lane) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vec few = hn::LoadU(d, tables[v] + (c + lane) * kCentreTile);
#pragma GCC unroll 8
        for (int r = 0; r < kGroup; ++r) {
          sums[lane % kSplit][r][v] = hn::MulAdd(lane_of(x[r], lane), few, sums[lane % kSplit][r][v]);
          __asm__("" : "+w"(x[r].raw));  // or else a lane is copied to a register of its own, which sums then lack
        }
        __asm__ volatile("" ::: "memory");  // or else all of the few are loaded first
      }
    }
  }
#endif
  for (; c < cols; ++c) {
    Vec few[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) few[v] = hn::LoadU(d, tables[v] + c * kCentreTile);
#pragma GCC unroll 8
    for (int r = 0; r < kGroup; ++r) {
      const Vec value = hn::Set(d, row[r][c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[0][r][v] = hn::MulAdd(value, few[v], sums[0][r][v]);
#if HWY_ARCH_ARM_A64
      __asm__ volatile("" ::: "memory");
#endif
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kGroup; ++r) {
    Vec smallest;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vec sum = sums[0][r][v];
      if constexpr (kSplit > 1) sum = hn::Add(sum, sums[kSplit - 1][r][v]);
      hn::StoreU(sum, d, values + r * task.width + first + v * kFloats);
      smallest = v == 0 ? sum : hn::Min(smallest, sum);
    }
    hn::StoreU(smallest, d, least + r * kMostSteps * kFloats);
  }
}

// Values of the few that are computed: whole vectors. Those past the last are infinite.
HWY_INLINE int64_t computed_values(const CompareTask& task) { return round_up(task.count, kFloats); }

HWY_INLINE float least_of(const CompareTask& task, const float* least) {
  const F32 d;
  Vec smallest = hn::LoadU(d, least);
  for (int64_t first = kStepFloats; first < task.count; first += kStepFloats) {
    least += kFloats;
    smallest = hn::Min(smallest, hn::LoadU(d, least));
  }
  return hn::GetLane(hn::MinOfLanes(d, smallest));
}

// Calls use(number), in ascending order, for a row's values up to a limit, and returns how many there were. A NaN is
// none.
template <typename Use>
HWY_INLINE int64_t for_up_to(const CompareTask& task, const float* values, const float* least, float limit,
                             const Use& use) {
  const F32 d;
  const Vec most = hn::Set(d, limit);
  const int64_t end = computed_values(task);
  int64_t found = 0;
  for (int64_t step = 0; step < end; step += kStepFloats, least += kFloats) {
    if (HWY_LIKELY(hn::AllFalse(d, hn::Le(hn::LoadU(d, least), most)))) continue;
    const int64_t step_end = std::min(step + kStepFloats, end);
    for (int64_t first = step; first < step_end; first += kFloats) {
      for (uint32_t bits = bits_of(hn::Le(hn::LoadU(d, values + first), most)); bits != 0; bits &= bits - 1) {
        use(first + std::countr_zero(bits));
        ++found;
      }
    }
  }
  return found;
}

// A row, widened, less the origin, padded with zeros. Returns its squared norm. Where `past_end`, what lies behind the
// row may be read.
template <typename T>
HWY_INLINE float bring(const CompareTask& task, const T* from, bool past_end, float* moved) {
  const F32 d;
  const int64_t whole = task.cols / kFloats * kFloats;
  Vec squares = hn::Zero(d);
  Vec other_squares = hn::Zero(d);
  const float* const origin = task.origin;  // which the stores below leave as it is
  const auto take = [&](Vec value, int64_t c, Vec& sum) HWY_ATTR {
    const Vec apart = hn::Sub(value, hn::LoadU(d, origin + c));
    hn::StoreU(apart, d, moved + c);
    sum = hn::MulAdd(apart, apart, sum);
  };
  int64_t c = 0;
  for (; c + 2 * kFloats <= whole; c += 2 * kFloats) {
    take(load_floats(from + c), c, squares);
    take(load_floats(from + c + kFloats), c + kFloats, other_squares);
  }
  if (c < whole) take(load_floats(from + c), c, squares);
  if (whole < task.cols) {
    if (past_end) {
      const auto real = hn::FirstN(d, static_cast<size_t>(task.cols - whole));
      take(hn::IfThenElseZero(real, load_floats(from + whole)), whole, other_squares);
    } else {
      HWY_ALIGN T tail[kFloats] = {};
      std::copy(from + whole, from + task.cols, tail);
      take(load_floats(tail), whole, other_squares);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(squares, other_squares)));
}

// Goes over the rows, a group at a time: use(group).
template <typename T, typename Use>
HWY_INLINE void for_rows(const CompareTask& task, const MatrixView& rows, float* scratch, const Use& use) {
  const auto* const data = static_cast<const T*>(rows.data());
  float* const moved = scratch;
  float* const copies = moved + kRowsTogether * task.padded;
  float* const values = copies + kRowsTogether * task.padded;
  std::fill_n(moved, 2 * kRowsTogether * task.padded, 0.0f);
  // Rows behind which a vector of values of the same matrix lies.
  const int64_t behind = rows.row_stride() > 0 ? divide_up(kFloats, rows.row_stride()) : rows.rows();
  const int64_t readable = rows.rows() - behind;
  float norms[kGroup] = {};
  HWY_ALIGN float least[kGroup * kMostSteps * kFloats];
  const int64_t row_bytes = task.cols * static_cast<int64_t>(sizeof(T));
  const int64_t ahead = std::max<int64_t>(kBytesAhead / row_bytes, kGroup);
  const int64_t end = computed_values(task);
  for (int64_t first = 0; first < rows.rows(); first += kGroup) {
    const int64_t count = std::min<int64_t>(kGroup, rows.rows() - first);
    for (int64_t r = 0; r < count; ++r) {
      if (first + r + ahead < rows.rows()) {
        fetch_ahead(data + (first + r + ahead) * rows.row_stride(), row_bytes);
      }
      norms[r] = bring(task, data + (first + r) * rows.row_stride(), first + r < readable, moved + r * task.padded);
    }
    float* step_least = least;
    for (int64_t at = 0; at < end; at += kStepFloats, step_least += kFloats) {
      switch (std::min<int64_t>((end - at) / kFloats, kMostVectors)) {
        case 1: multiply<1>(task, moved, at, values, step_least); break;
        case 2: multiply<2>(task, moved, at, values, step_least); break;
        case 3: multiply<std::min(3, kMostVectors)>(task, moved, at, values, step_least); break;
        default: multiply<kMostVectors>(task, moved, at, values, step_least); break;
      }
    }
    use(RowGroup<T>{first, count, data + first * rows.row_stride(), rows.row_stride(), values, least, norms, copies});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#endif
