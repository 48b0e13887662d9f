#include "quantize/additive/unary_terms.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/additive/unary_terms.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/memory_budget.hpp"

#include <algorithm>

#ifndef KITH_QUANTIZE_UNARY_TERMS_ONCE
#define KITH_QUANTIZE_UNARY_TERMS_ONCE
namespace kith {
namespace {

constexpr int64_t kPanel = 16;         // codewords side by side
constexpr double kMostInverse = 1e30;  // of a step, which f32 holds

// Unary terms of one book and some rows.
struct UnaryTask {
  const float* packed = nullptr;   // the book's codewords
  const float* squares = nullptr;  // of these
  int64_t words = 0;
  int64_t width = 0;  // of a row of terms: the codewords, padded with 32767 at the end
  int64_t cols = 0;
  const float* rows = nullptr;  // moved
  int64_t count = 0;
  float room = 0;     // half the range that terms may have
  float inverse = 0;  // of the step
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using Vec = hn::Vec<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());
#if HWY_TARGET <= HWY_AVX3
constexpr int kBlockRows = 6;
#elif HWY_ARCH_ARM_A64
constexpr int kBlockRows = 4;
#else
constexpr int kBlockRows = 2;
#endif

// Products of kRows rows and kVectors vectors of codewords, from the panel that `packed` begins.
template <int kRows, int kVectors>
HWY_INLINE void multiply_block(const UnaryTask& task, const float* rows, const float* packed, float* products) {
  const F32 d;
  Vec sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  // A column of all rows, whose values are value(r).
  const auto add_column = [&](int64_t c, const auto& value) HWY_ATTR {
    Vec words[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t panel = v * kFloats / kPanel;
      words[v] = hn::LoadU(d, packed + (panel * task.cols + c) * kPanel + v * kFloats % kPanel);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec one = value(r);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(one, words[v], sums[r][v]);
    }
  };
  int64_t c = 0;
#if HWY_ARCH_ARM_A64  // multiplies by a lane; to fill a vector with a value takes as long as a multiplication
  for (; c + 4 <= task.cols; c += 4) {
    Vec four[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) four[r] = hn::LoadU(d, rows + r * task.cols + c);
    add_column(c, [&](int r) HWY_ATTR { return hn::Broadcast<0>(four[r]); });
    add_column(c + 1, [&](int r) HWY_ATTR { return hn::Broadcast<1>(four[r]); });
    add_column(c + 2, [&](int r) HWY_ATTR { return hn::Broadcast<2>(four[r]); });
    add_column(c + 3, [&](int r) HWY_ATTR { return hn::Broadcast<3>(four[r]); });
  }
#endif
  for (; c < task.cols; ++c) add_column(c, [&](int r) HWY_ATTR { return hn::Set(d, rows[r * task.cols + c]); });
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, products + r * task.width + v * kFloats);
  }
}

template <int kVectors>
HWY_INLINE void multiply_rows(const UnaryTask& task, int64_t word, float* products) {
  const float* const packed = task.packed + word * task.cols;
  int64_t i = 0;
  for (; i + kBlockRows <= task.count; i += kBlockRows) {
    multiply_block<kBlockRows, kVectors>(task, task.rows + i * task.cols, packed, products + i * task.width + word);
  }
  for (; i < task.count; ++i) {
    multiply_block<1, kVectors>(task, task.rows + i * task.cols, packed, products + i * task.width + word);
  }
}

// Rounds one row's terms, around the middle of their range. False if the range is too wide.
HWY_INLINE bool round_row(const UnaryTask& task, float* products, int16_t* out) {
  const F32 d;
  const hn::Rebind<int16_t, F32> shorts;
  const auto two = hn::Set(d, 2.0f);
  Vec least = hn::Set(d, HUGE_VALF);
  Vec most = hn::Neg(least);
  for (int64_t j = 0; j < task.width; j += kFloats) {
    const Vec value = hn::Sub(hn::LoadU(d, task.squares + j), hn::Mul(two, hn::LoadU(d, products + j)));
    least = hn::Min(least, value);
    most = hn::Max(most, value);
  }
  const float low = hn::GetLane(hn::MinOfLanes(d, least));
  const float high = hn::GetLane(hn::MaxOfLanes(d, most));
  const float middle = 0.5f * low + 0.5f * high;
  if (!(high - middle <= task.room) || !(middle - low <= task.room)) return false;
  const auto shift = hn::Set(d, middle);
  const auto inverse = hn::Set(d, task.inverse);
  for (int64_t j = 0; j < task.width; j += kFloats) {
    const Vec value = hn::Sub(hn::LoadU(d, task.squares + j), hn::Mul(two, hn::LoadU(d, products + j)));
    const auto steps = hn::NearestInt(hn::Mul(hn::Sub(value, shift), inverse));
    hn::StoreU(hn::DemoteTo(shorts, steps), shorts, out + j);
  }
  std::fill(out + task.words, out + task.width, int16_t{32767});
  return true;
}

// `products`, `out`: count x width. fits[i] becomes 0 for a row whose terms do not fit.
void UnaryTermsOf(const UnaryTask& task, float* products, int16_t* out, uint8_t* fits) {
  constexpr int64_t kWords = 4 * kFloats;
  int64_t word = 0;
  for (; word + kWords <= task.width; word += kWords) multiply_rows<4>(task, word, products);
  for (; word < task.width; word += kPanel) multiply_rows<kPanel / kFloats>(task, word, products);
  for (int64_t i = 0; i < task.count; ++i) {
    if (fits[i] != 0 && !round_row(task, products + i * task.width, out + i * task.width)) fits[i] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(UnaryTermsOf);

UnaryTerms::UnaryTerms(const Codebooks& books, const PairwiseTables& tables, const Resources& resources)
    : books_(books),
      tables_(tables),
      packed_(books.books * tables.width() * (books.cols + 1), "packed codewords", resources) {
  if (resources.host_memory()->counts_only()) return;
  const int64_t words = books.words();
  const int64_t width = tables.width();
  for (int64_t k = 0; k < books.books; ++k) {
    float* const squares = packed_.data() + k * width * (books.cols + 1);
    float* const packed = squares + width;
    for (int64_t j = 0; j < width; ++j) {
      const int64_t number =
          k * words + std::min(j, words - 1);  // the last is repeated: no other value joins the range
      squares[j] = tables.squared_norms()[number];
      const float* const word = tables.moved_words() + number * books.cols;
      float* const panel = packed + j / kPanel * kPanel * books.cols + j % kPanel;
      for (int64_t c = 0; c < books.cols; ++c) panel[c * kPanel] = word[c];
    }
  }
}

int64_t UnaryTerms::scratch_floats(const Codebooks& books, int64_t rows) {
  return std::min(rows, kSliceRows) * PairwiseTables::width_for(books);
}

void UnaryTerms::round(int64_t book, const float* rows, const double* norms, int64_t count, float* scratch,
                       int16_t* out, int16_t* windows, uint8_t* fits) const {
  const TableScale& scale = tables_.scale(book);
  for (int64_t i = 0; i < count; ++i) {
    const double window = table_window(scale, norms[i], tables_.norms());
    const bool narrow = window <= kMostTableWindow && 1 / scale.step < kMostInverse;
    windows[i] = narrow ? static_cast<int16_t>(window) : int16_t{0};
    if (!narrow) fits[i] = 0;
  }
  UnaryTask task;
  task.width = tables_.width();
  task.squares = packed_.data() + book * task.width * (books_.cols + 1);
  task.packed = task.squares + task.width;
  task.words = books_.words();
  task.cols = books_.cols;
  task.rows = rows;
  task.count = count;
  task.room = static_cast<float>(scale.room);
  task.inverse = static_cast<float>(1 / scale.step);
  HWY_DYNAMIC_DISPATCH(UnaryTermsOf)(task, scratch, out, fits);
}

}  // namespace kith
#endif
