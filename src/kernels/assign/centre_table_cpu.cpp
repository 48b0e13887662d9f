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
#include "kernels/assign/assign_few_cpu-inl.hpp"
#include "kernels/assign/assign_handful_cpu-inl.hpp"
#include "kernels/assign/canonical_pair_cpu-inl.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Columns of a row that canonical sums take from where it lies, or from its copy.
template <typename T>
HWY_INLINE int64_t whole_columns(const CompareTask& task) {
  return std::is_same_v<T, float> ? task.cols / kCanonicalLanes * kCanonicalLanes : task.padded;
}

// A row of a group for canonical sums. Rows of f32 are read where they lie but for their last columns; others are
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

// Which of the few are near enough to be a row's.
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
  } else {  // whatever is not finite, or close to it
    for (int64_t few = 0; few < task.count; ++few) score(few);
  }
  *label = static_cast<int32_t>(row_of(best));
  *key = key_of_ordered(ordered_of(best));
  return found > 0 ? Settled::best_of_some : Settled::best_of_all;
}

// A group's labels, and keys unless they are null. False where values were beyond what bounds hold for.
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
  if (rows.dtype() == DType::f32 && is_handful(task.count)) {
    return nearest_of_handful(task, rows, labels, keys, scratch);
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

constexpr int64_t kPad = kCentreTile;  // a multiple of every vector's floats and of the canonical lanes
static_assert(kPad % kCanonicalLanes == 0);

int64_t padded(int64_t count) { return round_up(count, kPad); }
int64_t short_columns(int64_t cols) { return cols <= kShortColumns ? cols : 0; }
int64_t short_group_floats(int64_t count, int64_t cols) {
  return cols <= kShortColumns ? group_floats(count, cols) : 0;
}

}  // namespace

int64_t CentreTable::scratch_floats(int64_t cols) {
  return kRowsTogether * (2 * padded(cols) + padded(kMostFewCentres));
}

CentreTable::CentreTable(KeyKind kind, std::vector<float> origin, int64_t capacity, const Resources& resources)
    : kind_(kind),
      origin_(std::move(origin)),
      cols_(static_cast<int64_t>(origin_.size())),
      table_(cols_ * padded(capacity), "the centres", resources),
      terms_(padded(capacity), "the centres", resources),
      columns_(short_columns(cols_) * padded(capacity), "the centres", resources),
      groups_(short_group_floats(capacity, cols_), "the centres", resources),
      lines_(kHandful * padded(cols_), "the centres", resources),
      wide_(capacity * padded(cols_), "the centres", resources) {
  if (kind == KeyKind::inner_product) std::fill(origin_.begin(), origin_.end(), 0.0f);
  origin_.resize(static_cast<size_t>(padded(cols_)), 0.0f);
}

// Tile by tile and some columns at a time, which change places with the rows while they are in the cache.
void CentreTable::set(const MatrixView& rows) {
  constexpr int64_t kChunk = 64;
  constexpr int64_t kSums = 8;  // that do not wait for each other
  const int64_t count = rows.rows();
  const int64_t width = padded(count);
  const bool differences = kind_ != KeyKind::inner_product;
  const float factor = differences ? -2.0f : -1.0f;
  std::fill_n(terms_.data(), width, HUGE_VALF);
  std::fill(columns_.begin(), columns_.end(), 0.0f);
  for (int64_t i = 0; i < groups_.size(); ++i) groups_[i] = i / kCentreGroup % (cols_ + 1) == 0 ? HUGE_VALF : 0.0f;
  std::fill_n(lines_.data(), kHandful * padded(cols_), 0.0f);
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
        if (count <= kHandful) std::copy_n(moved, some, lines_.data() + (tile + r) * padded(cols_) + first);
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
  // Among values that are not numbers the nearest might be overlooked.
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
