#include "quantize/additive/least_scores.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/additive/least_scores.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I16 = hn::CappedTag<int16_t, 32>;
using Shorts = hn::Vec<I16>;
constexpr int64_t kShorts = hn::MaxLanes(I16());
static_assert(kShorts >= 8);         // masks of whole bytes
constexpr int64_t kLineShorts = 32;  // of a cache line
constexpr int64_t kUnaryAhead = 4;   // rows
constexpr int64_t kTogether = 16;    // rows
// Tables come from the second-level cache. Prefetching makes a Neoverse V1 a tenth faster, but a Sapphire Rapids, which
// looks further ahead by itself, a fifth slower.
constexpr bool kPrefetchesTables = HWY_ARCH_ARM_A64;
constexpr int kGroupVectors = 8;  // whose sums are in registers together
constexpr int64_t kGroup = kGroupVectors * kShorts;
constexpr int kGroups = static_cast<int>(kMostScoredWords / kGroup);  // of a whole book

// The rows of tables that are added to the unary terms of one row.
struct Terms {
  const int16_t* unary;
  const int16_t* added[kMostScoredBooks];
  int64_t count;
};

// kVectors vectors of sums from `at` on, and the minimum of each lane.
template <int kVectors>
HWY_INLINE Shorts add_up(const Terms& terms, int64_t at, int16_t* scores) {
  const I16 d;
  Shorts sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, terms.unary + at + v * kShorts);
  for (int64_t t = 0; t < terms.count; ++t) {
    const int16_t* const from = terms.added[t] + at;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], hn::LoadU(d, from + v * kShorts));
  }
  Shorts least = sums[0];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    hn::Store(sums[v], d, scores + at + v * kShorts);
    least = hn::Min(least, sums[v]);
  }
  return least;
}

// The codes within the window above the minimum: the first one, and their number.
struct Least {
  int64_t first;
  int64_t count;
  int16_t limit;
};

HWY_INLINE int16_t limit_of(Shorts least, int16_t window) {
  return static_cast<int16_t>(std::min(32766, hn::GetLane(hn::MinOfLanes(I16(), least)) + window));
}

// The sums of a row of 256, and the minimum of each lane in each group.
HWY_INLINE void add_groups(const Terms& terms, int16_t* scores, int16_t* lows) {
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g)
    hn::Store(add_up<kGroupVectors>(terms, g * kGroup, scores), I16(), lows + g * kShorts);
}

// Adds the codes of a group with sums below `above`.
HWY_INLINE void look_through(const int16_t* scores, int64_t from, Shorts above, Least& found) {
  const I16 d;
#if HWY_TARGET <= HWY_AVX2  // masks are at hand as numbers
#pragma GCC unroll 8
  for (int v = 0; v < kGroupVectors; ++v) {
    const auto within = hn::Lt(hn::Load(d, scores + from + v * kShorts), above);
    const auto bit = static_cast<int64_t>(hn::FindFirstTrue(d, within));
    found.count += static_cast<int64_t>(hn::CountTrue(d, within));
    found.first = std::min(found.first, bit < 0 ? kMostScoredWords : from + v * kShorts + bit);
  }
#else
  constexpr int kWords = static_cast<int>(kGroup / 64);
  HWY_ALIGN uint64_t bits[kWords];
#pragma GCC unroll 8
  for (int v = 0; v < kGroupVectors; ++v) {
    const auto within = hn::Lt(hn::Load(d, scores + from + v * kShorts), above);
    hn::StoreMaskBits(d, within, reinterpret_cast<uint8_t*>(bits) + v * kShorts / 8);
  }
#pragma GCC unroll 4
  for (int w = 0; w < kWords; ++w) {
    found.count += static_cast<int64_t>(hwy::PopCount(bits[w]));
    const auto bit = static_cast<int64_t>(hwy::Num0BitsBelowLS1Bit_Nonzero64(bits[w] | uint64_t{1} << 63));
    found.first = std::min(found.first, bits[w] == 0 ? kMostScoredWords : from + w * 64 + bit);
  }
#endif
}

// The minimum of 256 sums. Most groups have no sum near it, so it first finds the groups that do, without branches that
// depend on where the minimum is.
HWY_INLINE Least find_least(const int16_t* scores, const int16_t* lows, int16_t window) {
  const I16 d;
  Shorts least = hn::Load(d, lows);
#pragma GCC unroll 4
  for (int g = 1; g < kGroups; ++g) least = hn::Min(least, hn::Load(d, lows + g * kShorts));
  Least found{kMostScoredWords, 0, limit_of(least, window)};
  const Shorts above = hn::Set(d, static_cast<int16_t>(found.limit + 1));
  uint32_t groups = kGroups == 1 ? 1 : 0;
#pragma GCC unroll 4
  for (int g = 0; kGroups > 1 && g < kGroups; ++g) {
    groups |= static_cast<uint32_t>(!hn::AllFalse(d, hn::Lt(hn::Load(d, lows + g * kShorts), above))) << g;
  }
  for (; groups != 0; groups &= groups - 1) {
    look_through(scores, static_cast<int64_t>(hwy::Num0BitsBelowLS1Bit_Nonzero32(groups)) * kGroup, above, found);
  }
  return found;
}

// The same for fewer codewords: all sums up to the limit.
HWY_INLINE Least find_least_of_few(const Terms& terms, int64_t width, int16_t window, int16_t* scores) {
  const I16 d;
  Shorts least = hn::Set(d, int16_t{32767});
  for (int64_t at = 0; at < width; at += kShorts) least = hn::Min(least, add_up<1>(terms, at, scores));
  Least found{kMostScoredWords, 0, limit_of(least, window)};
  const Shorts above = hn::Set(d, static_cast<int16_t>(found.limit + 1));
  for (int64_t at = 0; at < width; at += kShorts) {
    const auto within = hn::Lt(hn::Load(d, scores + at), above);
    if (hn::AllFalse(d, within)) continue;
    if (found.count == 0) found.first = at + static_cast<int64_t>(hn::FindKnownFirstTrue(d, within));
    found.count += static_cast<int64_t>(hn::CountTrue(d, within));
  }
  return found;
}

HWY_INLINE void prefetch(const int16_t* from, int64_t width) {
  if (HWY_LIKELY(width == kMostScoredWords)) {
#pragma GCC unroll 8
    for (int64_t at = 0; at < kMostScoredWords; at += kLineShorts) __builtin_prefetch(from + at);
  } else {
    for (int64_t at = 0; at < width; at += kLineShorts) __builtin_prefetch(from + at);
  }
}

HWY_INLINE void find_terms(const ScoreTask& task, int64_t row, Terms& terms) {
  const uint8_t* const chosen = task.codes + row * task.books;
  terms.unary = task.unary + row * task.width;
  terms.count = 0;
  for (int64_t k = 0; k < task.end_book; ++k) {
    terms.added[terms.count] = task.tables + (k * task.table_words + chosen[k]) * task.width;
    terms.count += k != task.skipped_book;
  }
}

HWY_INLINE void report(const Least& found, const int16_t* scores, int64_t width, uint8_t* code, uint16_t* count,
                       uint32_t* doubtful) {
  *code = static_cast<uint8_t>(found.first);
  *count = static_cast<uint16_t>(found.count);
  if (HWY_LIKELY(found.count == 1)) return;
  for (int64_t j = found.first; j < width; ++j) {
    if (scores[j] <= found.limit) *doubtful++ = static_cast<uint32_t>(j);
  }
}

// Sums several rows first, then finds their minima: the minimum of one row is a chain of dependent operations, but
// those of several rows are independent.
void LeastScores(const ScoreTask& task, const uint32_t* rows, int64_t count, uint8_t* codes, uint16_t* counts,
                 uint32_t* doubtful) {
  HWY_ALIGN int16_t scores[kTogether * kMostScoredWords];
  HWY_ALIGN int16_t lows[kTogether * kGroups * kShorts];
  Terms terms[2];  // of this row and of the next, whose tables are prefetched
  find_terms(task, rows[0], terms[0]);
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t some = std::min(kTogether, count - first);
    for (int64_t i = 0; i < some; ++i) {
      const int64_t at = first + i;
      const Terms& now = terms[at % 2];
      Terms& next = terms[(at + 1) % 2];
      prefetch(task.unary + rows[std::min(at + kUnaryAhead, count - 1)] * task.width, task.width);
      find_terms(task, rows[std::min(at + 1, count - 1)], next);
      for (int64_t t = 0; kPrefetchesTables && t < next.count; ++t) prefetch(next.added[t], task.width);
      if (task.width == kMostScoredWords) {
        add_groups(now, scores + i * kMostScoredWords, lows + i * kGroups * kShorts);
      } else {
        const Least found = find_least_of_few(now, task.width, task.windows[rows[at]], scores);
        report(found, scores, task.width, codes + at, counts + at, doubtful + at * kMostScoredWords);
      }
    }
    for (int64_t i = 0; task.width == kMostScoredWords && i < some; ++i) {
      const int64_t at = first + i;
      const int16_t* const sums = scores + i * kMostScoredWords;
      const Least found = find_least(sums, lows + i * kGroups * kShorts, task.windows[rows[at]]);
      report(found, sums, task.width, codes + at, counts + at, doubtful + at * kMostScoredWords);
    }
  }
}

// --- subtraction of codewords

using F32 = hn::ScalableTag<float>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

template <int kVectors>
HWY_INLINE void subtract(const float* row, const float* const* others, int64_t count, int64_t at, float* out) {
  const F32 d;
  hn::Vec<F32> left[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) left[v] = hn::LoadU(d, row + at + v * kFloats);
  for (int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) left[v] = hn::Sub(left[v], hn::LoadU(d, others[k] + at + v * kFloats));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(left[v], d, out + at + v * kFloats);
}

void SubtractRows(const float* row, const float* const* others, int64_t count, int64_t cols, float* out) {
  int64_t at = 0;
  for (; at + 8 * kFloats <= cols; at += 8 * kFloats) subtract<8>(row, others, count, at, out);
  for (; at + kFloats <= cols; at += kFloats) subtract<1>(row, others, count, at, out);
  for (; at < cols; ++at) {
    float value = row[at];
    for (int64_t k = 0; k < count; ++k) value -= others[k][at];
    out[at] = value;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(LeastScores);
HWY_EXPORT(SubtractRows);

void least_scores_cpu(const ScoreTask& task, const uint32_t* rows, int64_t count, uint8_t* codes, uint16_t* counts,
                      uint32_t* doubtful) {
  HWY_DYNAMIC_DISPATCH(LeastScores)(task, rows, count, codes, counts, doubtful);
}

void subtract_rows_cpu(const float* row, const float* const* others, int64_t count, int64_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(SubtractRows)(row, others, count, cols, out);
}

}  // namespace kith
#endif
