#include "quantize/additive/least_scores.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/additive/least_scores.cpp"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I16 = hn::CappedTag<int16_t, 32>;
using Shorts = hn::Vec<I16>;
constexpr int64_t kShorts = hn::MaxLanes(I16());
constexpr int64_t kMostBooks = 256;
constexpr int64_t kPrefetched = 64;  // of a table, for each cache line

// kVectors vectors of sums from `at` on; lowers `least`.
template <int kVectors>
HWY_INLINE void add_up(const int16_t* unary, const int16_t* const* added, int64_t terms, int64_t at, int16_t* scores,
                       Shorts& least) {
  const I16 d;
  Shorts sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, unary + at + v * kShorts);
  for (int64_t t = 0; t < terms; ++t) {
    const int16_t* const from = added[t] + at;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], hn::LoadU(d, from + v * kShorts));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(sums[v], d, scores + at + v * kShorts);
    least = hn::Min(least, sums[v]);
  }
}

// Tables are larger than the second-level cache, and codes say early which of their rows come next.
HWY_INLINE void prefetch_row(const ScoreTask& task, int64_t row) {
  const uint8_t* const chosen = task.codes + row * task.books;
  for (int64_t k = task.first_book; k < task.end_book; ++k) {
    if (k == task.skipped_book) continue;
    const int16_t* const from = task.tables + (k * task.table_words + chosen[k]) * task.width;
    for (int64_t at = 0; at < task.width; at += kPrefetched) hwy::Prefetch(from + at);
  }
}

void LeastScores(const ScoreTask& task, const uint32_t* rows, int64_t count, uint8_t* codes, uint16_t* counts,
                 uint32_t* doubtful) {
  const I16 d;
  HWY_ALIGN int16_t scores[256];
  const int16_t* added[kMostBooks];
  const auto step = hn::Set(d, static_cast<int16_t>(kShorts));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = rows[i];
    const uint8_t* const chosen = task.codes + row * task.books;
    int64_t terms = 0;
    for (int64_t k = task.first_book; k < task.end_book; ++k) {
      if (k == task.skipped_book) continue;
      added[terms++] = task.tables + (k * task.table_words + chosen[k]) * task.width;
    }
    if (i + 1 < count) prefetch_row(task, rows[i + 1]);
    const int16_t* const unary = task.unary + row * task.unary_stride;
    Shorts lows = hn::Set(d, int16_t{32767});
    int64_t at = 0;
    for (; at + 8 * kShorts <= task.width; at += 8 * kShorts) add_up<8>(unary, added, terms, at, scores, lows);
    for (; at < task.width; at += kShorts) add_up<1>(unary, added, terms, at, scores, lows);

    const int16_t low = hn::GetLane(hn::MinOfLanes(d, lows));
    const int16_t limit = static_cast<int16_t>(std::min(32766, low + task.windows[row * task.window_stride]));
    const auto least = hn::Set(d, low);
    const auto above = hn::Set(d, static_cast<int16_t>(limit + 1));
    const auto none = hn::Set(d, int16_t{32767});
    auto numbers = hn::Iota(d, 0);
    auto first = none;
    auto within = hn::Zero(d);
    for (at = 0; at < task.width; at += kShorts) {
      const auto sums = hn::LoadU(d, scores + at);
      first = hn::Min(first, hn::IfThenElse(hn::Eq(sums, least), numbers, none));
      within = hn::Sub(within, hn::VecFromMask(d, hn::Lt(sums, above)));
      numbers = hn::Add(numbers, step);
    }
    codes[i] = static_cast<uint8_t>(hn::GetLane(hn::MinOfLanes(d, first)));
    const int16_t total = hn::GetLane(hn::SumOfLanes(d, within));
    counts[i] = static_cast<uint16_t>(total);
    if (HWY_UNLIKELY(total != 1)) {
      uint32_t* to = doubtful + i * 256;
      for (int64_t j = 0; j < task.width; ++j) {
        if (scores[j] <= limit) *to++ = static_cast<uint32_t>(j);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(LeastScores);

void least_scores_cpu(const ScoreTask& task, const uint32_t* rows, int64_t count, uint8_t* codes, uint16_t* counts,
                      uint32_t* doubtful) {
  HWY_DYNAMIC_DISPATCH(LeastScores)(task, rows, count, codes, counts, doubtful);
}

}  // namespace kith
#endif
