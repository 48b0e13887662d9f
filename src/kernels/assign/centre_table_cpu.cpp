#include "kernels/assign/centre_table_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/assign/centre_table_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "core/typed_row.hpp"
#include "kernels/assign/assign_columns_cpu-inl.hpp"
#include "kernels/assign/assign_very_few_cpu-inl.hpp"
#include "kernels/assign/canonical_pair_cpu-inl.hpp"
#include "kernels/assign/compare_task.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// --- rows multiplied with few centres, a group of rows at a time
//
// A group's sums are in registers: some rows times some vectors of centres; each column multiplies one value of a row
// by a vector. Rows are widened and moved to the origin first, so that rounding errors are small compared with the
// distances between centres. Beside all values of a row, a vector of the minima of each step is kept: a search for
// values up to a limit mostly needs only these.

// Rows and vectors of centres in registers at a time.
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

// A group of rows compared at a time.
template <typename T>
struct RowGroup {
  int64_t first = 0;
  int64_t count = 0;
  const T* rows = nullptr;  // as stored
  int64_t stride = 0;
  const float* values = nullptr;  // of each row for all of the few, task.width apart
  const float* least = nullptr;   // of each row and each step's vectors, lane by lane
  const float* norms = nullptr;   // squared, of rows minus the origin
  float* copies = nullptr;        // room for one padded copy per row
};

#if HWY_ARCH_ARM_A64
// sum + one of x's four lanes times y. In assembly: compilers copy lanes, or x, to registers that sums then lack. The
// lane is known where loops are unrolled.
HWY_INLINE void add_lane_product(Vec x, int lane, Vec y, Vec& sum) {
  if (lane == 0) __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(sum.raw) : "w"(y.raw), "w"(x.raw));
  if (lane == 1) __asm__("fmla %0.4s, %1.4s, %2.s[1]" : "+w"(sum.raw) : "w"(y.raw), "w"(x.raw));
  if (lane == 2) __asm__("fmla %0.4s, %1.4s, %2.s[2]" : "+w"(sum.raw) : "w"(y.raw), "w"(x.raw));
  if (lane == 3) __asm__("fmla %0.4s, %1.4s, %2.s[3]" : "+w"(sum.raw) : "w"(y.raw), "w"(x.raw));
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
        for (int r = 0; r < kGroup; ++r) add_lane_product(x[r], lane, few, sums[lane % kSplit][r][v]);
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

// Widens a row, subtracts the origin and pads with zeros. Returns its squared norm. `past_end` permits reads past the
// end of the row.
template <typename T>
HWY_INLINE float bring(const CompareTask& task, const T* from, bool past_end, float* moved) {
  const F32 d;
  const int64_t whole = task.cols / kFloats * kFloats;
  Vec squares = hn::Zero(d);
  Vec other_squares = hn::Zero(d);
  const float* const origin = task.origin;  // does not alias the stores below
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
  const int64_t most_groups = groups_together(task.width, task.cols);
  float* const copies = scratch;
  float* const moved = copies + kRowsTogether * task.padded;
  float* const values = moved + most_groups * kGroup * task.padded;
  std::fill_n(copies, kRowsTogether * task.padded, 0.0f);
  for (int64_t r = 0; r < most_groups * kGroup; ++r) {
    std::fill(moved + r * task.padded + task.cols, moved + (r + 1) * task.padded, 0.0f);
  }
  // Rows followed by at least a vector of values of the same matrix.
  const int64_t behind = rows.row_stride() > 0 ? divide_up(kFloats, rows.row_stride()) : rows.rows();
  const int64_t readable = rows.rows() - behind;
  float norms[kGroupsTogether * kGroup] = {};
  constexpr int64_t kLeastFloats = kGroup * kMostSteps * kFloats;  // step minima of a group
  HWY_ALIGN float least[kGroupsTogether * kLeastFloats];
  const int64_t row_bytes = task.cols * static_cast<int64_t>(sizeof(T));
  const int64_t ahead = std::max<int64_t>(kBytesAhead / row_bytes, kGroup);
  const int64_t end = computed_values(task);
  for (int64_t first = 0; first < rows.rows(); first += most_groups * kGroup) {
    const int64_t count = std::min(most_groups * kGroup, rows.rows() - first);
    const int64_t groups = divide_up(count, int64_t{kGroup});
    for (int64_t r = 0; r < count; ++r) {
      if (first + r + ahead < rows.rows()) {
        fetch_ahead(data + (first + r + ahead) * rows.row_stride(), row_bytes);
      }
      norms[r] = bring(task, data + (first + r) * rows.row_stride(), first + r < readable, moved + r * task.padded);
    }
    // Missing rows of the last group are compared too, and ignored.
    std::fill(moved + count * task.padded, moved + groups * kGroup * task.padded, 0.0f);
    float* step_least = least;
    for (int64_t at = 0; at < end; at += kStepFloats, step_least += kFloats) {
      for (int64_t g = 0; g < groups; ++g) {
        const float* const some = moved + g * kGroup * task.padded;
        float* const own = values + g * kGroup * task.width;
        float* const own_least = step_least + g * kLeastFloats;
        switch (std::min<int64_t>((end - at) / kFloats, kMostVectors)) {
          case 1: multiply<1>(task, some, at, own, own_least); break;
          case 2: multiply<2>(task, some, at, own, own_least); break;
          case 3: multiply<std::min(3, kMostVectors)>(task, some, at, own, own_least); break;
          default: multiply<kMostVectors>(task, some, at, own, own_least); break;
        }
      }
    }
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = first + g * kGroup;
      use(RowGroup<T>{at, std::min<int64_t>(kGroup, rows.rows() - at), data + at * rows.row_stride(), rows.row_stride(),
                      values + g * kGroup * task.width, least + g * kLeastFloats, norms + g * kGroup, copies});
    }
  }
}

// --- labels of rows

// Columns of a row that canonical sums read in place, or from its copy.
template <typename T>
HWY_INLINE int64_t whole_columns(const CompareTask& task) {
  return std::is_same_v<T, float> ? task.cols / kCanonicalLanes * kCanonicalLanes : task.padded;
}

// A row of a group for canonical sums. f32 rows are read in place except for their last columns; others are
// widened.
template <typename T>
HWY_INLINE CanonicalPair pair_of(const CompareTask& task, const RowGroup<T>& group, int64_t r) {
  const T* const from = group.rows + r * group.stride;
  float* const copy = group.copies + r * task.padded;
  if constexpr (std::is_same_v<T, float>) {
    const int64_t whole = whole_columns<T>(task);
    if (whole == task.cols) return {from, nullptr, nullptr};
    std::copy(from + whole, from + task.cols, copy);
    return {from, copy, nullptr};
  } else {
    const int64_t whole = task.cols / kFloats * kFloats;
    for (int64_t c = 0; c < whole; c += kFloats) hn::StoreU(load_floats(from + c), F32(), copy + c);
    for (int64_t c = whole; c < task.cols; ++c) copy[c] = static_cast<float>(from[c]);
    return {copy, nullptr, nullptr};
  }
}

// How a row's label was decided: by bounds, or by exact keys of some or all centres.
enum class Settled : uint8_t { one, best_of_some, best_of_all };

// The row's label, of canonical keys where several are within the slack or values are beyond what bounds hold for;
// then its key too.
template <KeyKind kKind, typename T>
HWY_INLINE Settled settle(const CompareTask& task, const RowGroup<T>& group, int64_t r, int32_t* label, float* key) {
  const float slack = task.slack(group.norms[r]);
  const float* const values = group.values + r * task.width;
  const float* const least = group.least + r * kMostSteps * kFloats;
  const float limit = least_of(task, least) + slack;
  int64_t found = 0;
  if (slack < HUGE_VALF) {
    int64_t last = 0;
    found = for_up_to(task, values, least, limit, [&](int64_t few) HWY_ATTR { last = few; });
    *label = static_cast<int32_t>(last);
    if (HWY_LIKELY(found == 1)) return Settled::one;
  }
  CanonicalPair pair = pair_of(task, group, r);
  uint64_t best = kPadding;
  const auto score = [&](int64_t few) HWY_ATTR {
    pair.few = task.wide + few * task.padded;
    const float own = canonical_of<kKind>(pair, whole_columns<T>(task));
    best = std::min(best, pack_neighbor(ordered_key(own), static_cast<uint32_t>(few)));
  };
  if (found > 0) {
    for_up_to(task, values, least, limit, score);
  } else {  // not finite, or nearly so
    for (int64_t few = 0; few < task.count; ++few) score(few);
  }
  *label = static_cast<int32_t>(row_of(best));
  *key = key_of_ordered(ordered_of(best));
  return found > 0 ? Settled::best_of_some : Settled::best_of_all;
}

// Labels of a group, and keys unless null. Returns false if values exceed the range of the bounds.
template <KeyKind kKind, typename T>
HWY_INLINE bool settle_group(const CompareTask& task, const RowGroup<T>& group, int32_t* labels, float* keys) {
  bool bounded = true;
  bool each_one = true;
  float own_keys[kGroup];
  Settled settled[kGroup];
  for (int64_t r = 0; r < group.count; ++r) {
    settled[r] = settle<kKind>(task, group, r, labels + r, own_keys + r);
    bounded &= settled[r] != Settled::best_of_all;
    each_one &= settled[r] == Settled::one;
  }
  if (keys == nullptr) return bounded;
  CanonicalPair pairs[kGroup];
  const int64_t whole = whole_columns<T>(task);
  for (int64_t r = 0; r < group.count; ++r) {
    pairs[r] = pair_of(task, group, r);
    pairs[r].few = task.wide + labels[r] * task.padded;
  }
  if (HWY_LIKELY(each_one)) {
    canonical_of_all<kKind>(pairs, group.count, whole, keys);
    return true;
  }
  for (int64_t r = 0; r < group.count; ++r) {
    if (settled[r] == Settled::one) own_keys[r] = key_of_ordered(ordered_key(canonical_of<kKind>(pairs[r], whole)));
    keys[r] = own_keys[r];
  }
  return bounded;
}

bool NearestOfFew(const CompareTask& task, const MatrixView& rows, int32_t* labels, float* keys, float* scratch) {
  if (rows.dtype() == DType::f32 && task.groups != nullptr) {
    HWY_ALIGN float own_scratch[3 * kTileRows * kShortColumns + 2 * kCentreTile];  // which nothing else points to
    const ColumnRows<int32_t> all{
        static_cast<const float*>(rows.data()), rows.row_stride(), rows.rows(), labels, 1, keys, own_scratch};
    return keys == nullptr ? assign_columns<Columns::labels>(task, task.wide, all)
                           : assign_columns<Columns::keys>(task, task.wide, all);
  }
  if (rows.dtype() == DType::f32 && is_very_few(task.count)) {
    return nearest_of_very_few(task, rows, labels, keys, scratch);
  }
  bool bounded = true;
  visit_dtype(rows.dtype(), [&](auto stored) {
    using T = typename decltype(stored)::type;
    const auto keys_of = [&](const RowGroup<T>& group) { return keys == nullptr ? nullptr : keys + group.first; };
    if (task.kind == KeyKind::inner_product) {
      for_rows<T>(task, rows, scratch, [&](const RowGroup<T>& group) HWY_ATTR {
        bounded &= settle_group<KeyKind::inner_product>(task, group, labels + group.first, keys_of(group));
      });
    } else {
      for_rows<T>(task, rows, scratch, [&](const RowGroup<T>& group) HWY_ATTR {
        bounded &= settle_group<KeyKind::squared_l2>(task, group, labels + group.first, keys_of(group));
      });
    }
  });
  return bounded;
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(NearestOfFew);

namespace {

constexpr int64_t kPad = kCentreTile;  // a multiple of every vector length and of the canonical lanes
static_assert(kPad % kCanonicalLanes == 0);

int64_t padded(int64_t count) { return round_up(count, kPad); }
int64_t short_columns(int64_t cols) { return cols <= kShortColumns ? cols : 0; }
int64_t short_group_floats(int64_t count, int64_t cols) {
  return cols <= kShortColumns ? group_floats(count, cols) : 0;
}

}  // namespace

int64_t CentreTable::scratch_floats(int64_t capacity, int64_t cols) {
  const int64_t width = padded(capacity);
  const int64_t rows = groups_together(width, cols) * kRowsTogether;
  return (kRowsTogether + rows) * padded(cols) + rows * width;
}

CentreTable::CentreTable(KeyKind kind, std::vector<float> origin, int64_t capacity, const Resources& resources)
    : kind_(kind),
      origin_(std::move(origin)),
      cols_(static_cast<int64_t>(origin_.size())),
      table_(cols_ * padded(capacity), "the centres", resources),
      terms_(padded(capacity), "the centres", resources),
      columns_(short_columns(cols_) * padded(capacity), "the centres", resources),
      groups_(short_group_floats(capacity, cols_), "the centres", resources),
      lines_(kVeryFewCentres * padded(cols_), "the centres", resources),
      wide_(capacity * padded(cols_), "the centres", resources) {
  if (kind == KeyKind::inner_product) std::fill(origin_.begin(), origin_.end(), 0.0f);
  origin_.resize(static_cast<size_t>(padded(cols_)), 0.0f);
}

// Transposes tile by tile, a few columns at a time, so that both stay in the cache.
void CentreTable::set(const MatrixView& rows) {
  constexpr int64_t kChunk = 64;
  constexpr int64_t kSums = 8;  // independent sums
  const int64_t count = rows.rows();
  const int64_t width = padded(count);
  const bool differences = kind_ != KeyKind::inner_product;
  const float factor = differences ? -2.0f : -1.0f;
  std::fill_n(terms_.data(), width, HUGE_VALF);
  std::fill(columns_.begin(), columns_.end(), 0.0f);
  for (int64_t i = 0; i < groups_.size(); ++i) groups_[i] = i / kCentreGroup % (cols_ + 1) == 0 ? HUGE_VALF : 0.0f;
  std::fill_n(lines_.data(), kVeryFewCentres * padded(cols_), 0.0f);
  double largest = 0;
  for (int64_t tile = 0; tile < width; tile += kCentreTile) {
    const int64_t here = std::min(kCentreTile, count - tile);
    double squares[kCentreTile][kSums] = {};
    for (int64_t first = 0; first < cols_; first += kChunk) {
      const int64_t some = std::min(kChunk, cols_ - first);
      float block[kCentreTile][kChunk] = {};
      for (int64_t r = 0; r < here; ++r) {
        const auto* const row = typed_row<float>(rows, tile + r) + first;
        const float* const origin = origin_.data() + first;
        double* const wide = wide_.data() + (tile + r) * padded(cols_) + first;
        float* const moved = block[r];
        for (int64_t c = 0; c < some; ++c) moved[c] = row[c] - origin[c];
        for (int64_t c = 0; c < kChunk; c += kSums) {
          for (int64_t j = 0; j < kSums; ++j) {
            squares[r][j] += static_cast<double>(moved[c + j]) * static_cast<double>(moved[c + j]);
          }
        }
        for (int64_t c = 0; c < some; ++c) moved[c] *= factor;
        for (int64_t c = 0; c < some; ++c) wide[c] = static_cast<double>(row[c]);
        if (count <= kVeryFewCentres) std::copy_n(moved, some, lines_.data() + (tile + r) * padded(cols_) + first);
        for (int64_t c = 0; cols_ <= kShortColumns && c < some; ++c) {
          columns_[(first + c) * width + tile + r] = row[c];
          group_of(groups_.data(), tile + r, cols_)[(first + c + 1) * kCentreGroup] = moved[c];
        }
      }
      float* const table = table_.data() + tile * cols_ + first * kCentreTile;
      for (int64_t c = 0; c < some; ++c) {
        for (int64_t r = 0; r < kCentreTile; ++r) table[c * kCentreTile + r] = block[r][c];
      }
    }
    for (int64_t r = 0; r < here; ++r) {
      std::fill(wide_.data() + (tile + r) * padded(cols_) + cols_, wide_.data() + (tile + r + 1) * padded(cols_), 0.0);
      const double all = std::accumulate(squares[r], squares[r] + kSums, 0.0);
      terms_[tile + r] = differences ? static_cast<float>(all) : 0.0f;
      if (cols_ <= kShortColumns) *group_of(groups_.data(), tile + r, cols_) = terms_[tile + r];
      largest = std::max(largest, all);
      if (std::isnan(all)) largest = HUGE_VAL;
    }
  }
  task_ = {kind_, cols_, padded(cols_), count, width, origin_.data(), table_.data(), terms_.data()};
  // With NaN among the values the nearest could be missed.
  if (has_short_rows() && largest < kLargestSquaredNorm) task_.groups = groups_.data();
  task_.columns = columns_.data();
  task_.lines = lines_.data();
  task_.wide = wide_.data();
  task_.bound = assign_bound(kind_, cols_, largest);
}

bool CentreTable::nearest(const MatrixView& rows, int32_t* labels, float* keys, float* scratch) const {
  return HWY_DYNAMIC_DISPATCH(NearestOfFew)(task_, rows, labels, keys, scratch);
}

}  // namespace kith
#endif
