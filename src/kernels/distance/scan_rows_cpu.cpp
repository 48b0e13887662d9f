// Scans several rows at a time, which hides the latency of additions and loads each query value once: four, or enough
// short rows for one tree to sum all of their vectors (add_lanes_cpu-inl.hpp).
#include "kernels/distance/scan_rows_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/scan_rows_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu_target.hpp"
#include "core/dtype_visit.hpp"
#include "kernels/distance/add_lanes_cpu-inl.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Vec = hn::Vec<F32>;
constexpr int64_t kFloats = hn::MaxLanes(F32());

// For products: inner_product means that the extra value per row is wanted, cosine that it is not.
KeyKind scanned_kind(KeyKind kind, const float* bound_sums) {
  if (kind != KeyKind::inner_product && kind != KeyKind::cosine) return kind;
  return bound_sums == nullptr ? KeyKind::cosine : KeyKind::inner_product;
}

constexpr bool has_bound_sum(KeyKind kind) { return kind == KeyKind::inner_product || kind == KeyKind::linf; }

// Accumulates a vector of columns of one row.
template <KeyKind kKind>
HWY_INLINE void accumulate(Vec q, Vec x, Vec& value, Vec& bound_sum) {
  if constexpr (kKind == KeyKind::l1) {
    value = hn::Add(value, hn::AbsDiff(q, x));
  } else if constexpr (kKind == KeyKind::linf) {
    const Vec apart = hn::AbsDiff(q, x);
    value = hn::Max(value, apart);
    bound_sum = hn::Add(bound_sum, apart);  // reveals a NaN that a maximum may hide
  } else if constexpr (kKind == KeyKind::chi_square) {
    const Vec difference = hn::Sub(q, x);
    const Vec total = hn::Add(q, x);
    // The ratio is at most 1, so that the product loses nothing to underflow that the sum would keep.
    const Vec ratio = hn::IfThenZeroElse(hn::Eq(total, hn::Zero(F32())), hn::Div(difference, total));
    value = hn::MulAdd(ratio, difference, value);
  } else if constexpr (has_differences(kKind)) {
    const Vec difference = hn::Sub(q, x);
    value = hn::MulAdd(difference, difference, value);
  } else {
    value = hn::MulAdd(q, x, value);
    if constexpr (has_bound_sum(kKind)) bound_sum = hn::MulAdd(x, x, bound_sum);
  }
}

// The first `count` values, fewer than a vector holds, and zeros. Nothing past them is read.
template <typename T>
HWY_INLINE Vec load_tail(const T* from, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, float>) {
    return hn::MaskedLoad(hn::FirstN(F32(), static_cast<size_t>(count)), F32(), from);
  }
#endif
  HWY_ALIGN T tail[kFloats] = {};
  std::copy_n(from, count, tail);
  return load_floats(tail);
}

// The last columns of rows of at least a vector: loaded with the columns before them, which are zeroed.
template <typename T>
HWY_INLINE Vec load_end(const T* from, int64_t cols, hn::Mask<F32> before) {
  return hn::IfThenZeroElse(before, load_floats(from + cols - kFloats));
}

template <KeyKind kKind>
HWY_INLINE float join_value(Vec lanes) {
  return hn::GetLane(kKind == KeyKind::linf ? hn::MaxOfLanes(F32(), lanes) : hn::SumOfLanes(F32(), lanes));
}

template <KeyKind kKind, int kRows, typename T>
HWY_INLINE void scan_group(const float* query, const T* first, int64_t stride, int64_t cols, float* values,
                           float* bound_sums) {
  Vec value[kRows];
  Vec bound_sum[kRows];
  for (int r = 0; r < kRows; ++r) {
    value[r] = hn::Zero(F32());
    bound_sum[r] = hn::Zero(F32());
  }
  int64_t at = 0;
  for (; at + kFloats <= cols; at += kFloats) {
    const Vec q = load_floats(query + at);
    for (int r = 0; r < kRows; ++r) accumulate<kKind>(q, load_floats(first + r * stride + at), value[r], bound_sum[r]);
  }
  if (at < cols && cols >= kFloats) {
    const auto before = hn::FirstN(F32(), static_cast<size_t>(at + kFloats - cols));
    const Vec q = load_end(query, cols, before);
    for (int r = 0; r < kRows; ++r)
      accumulate<kKind>(q, load_end(first + r * stride, cols, before), value[r], bound_sum[r]);
  } else if (at < cols) {
    const Vec q = load_tail(query + at, cols - at);
    for (int r = 0; r < kRows; ++r) {
      accumulate<kKind>(q, load_tail(first + r * stride + at, cols - at), value[r], bound_sum[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    values[r] = join_value<kKind>(value[r]);
    if constexpr (has_bound_sum(kKind)) bound_sums[r] = hn::GetLane(hn::SumOfLanes(F32(), bound_sum[r]));
  }
}

constexpr bool kPrefetches = !HWY_ARCH_ARM_A64;
[[maybe_unused]] constexpr int64_t kLongRow = (HWY_ARCH_ARM_A64 ? 20 : 8) * kFloats;

// Whether long rows are read one at a time, each into several sums, rather than several at once.
template <typename T>
constexpr bool reads_row_by_row() {
  return HWY_ARCH_ARM_A64 || (kFloats >= 8 && std::is_same_v<T, float>);
}

// One row in four independent sums.
template <KeyKind kKind, typename T>
HWY_INLINE void scan_long_row(const float* query, const T* row, int64_t cols, float* values, float* bound_sums) {
  [[maybe_unused]] constexpr int64_t kAhead = 2048 / sizeof(T);
  Vec value[4];
  Vec bound_sum[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) value[i] = bound_sum[i] = hn::Zero(F32());
  int64_t at = 0;
  for (; at + 4 * kFloats <= cols; at += 4 * kFloats) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int64_t from = at + i * kFloats;
      if constexpr (kPrefetches) __builtin_prefetch(row + from + kAhead);
      accumulate<kKind>(load_floats(query + from), load_floats(row + from), value[i], bound_sum[i]);
    }
  }
  for (; at + kFloats <= cols; at += kFloats) {
    accumulate<kKind>(load_floats(query + at), load_floats(row + at), value[0], bound_sum[0]);
  }
  if (at < cols) {
    const auto before = hn::FirstN(F32(), static_cast<size_t>(at + kFloats - cols));
    accumulate<kKind>(load_end(query, cols, before), load_end(row, cols, before), value[1], bound_sum[1]);
  }
  const auto join = [](Vec a, Vec b) HWY_ATTR { return kKind == KeyKind::linf ? hn::Max(a, b) : hn::Add(a, b); };
  *values = join_value<kKind>(join(join(value[0], value[1]), join(value[2], value[3])));
  if constexpr (has_bound_sum(kKind)) {
    *bound_sums = hn::GetLane(
        hn::SumOfLanes(F32(), hn::Add(hn::Add(bound_sum[0], bound_sum[1]), hn::Add(bound_sum[2], bound_sum[3]))));
  }
}

[[maybe_unused]] constexpr int64_t kShortBytes =
    1024;  // longest rows of the tree: beyond that the columns dominate

constexpr bool adds_lanes(KeyKind kind) {
  return kind != KeyKind::linf && (kFloats >= 8 || HWY_ARCH_ARM_A64) && kFloats > 1;
}

// Whether rows are so short that horizontal sums matter; longer rows are summed one at a time.
template <typename T>
constexpr bool is_short(int64_t cols) {
  return cols >= kFloats &&
         (reads_row_by_row<T>() ? cols < kLongRow : cols * static_cast<int64_t>(sizeof(T)) <= kShortBytes);
}

// The rows that yield one vector of sums; kinds with a bound sum need a second one.
template <KeyKind kKind>
constexpr int kTreeRows = static_cast<int>(has_bound_sum(kKind) ? kFloats / 2 : kFloats);

// kTreeRows rows of at least a vector's columns.
template <KeyKind kKind, typename T>
HWY_INLINE void scan_tree(const float* query, const T* first, int64_t stride, int64_t cols, float* values,
                          float* bound_sums) {
  constexpr int kRows = kTreeRows<kKind>;
  Vec sums[kFloats];
#pragma GCC unroll 16
  for (auto& sum : sums) sum = hn::Zero(F32());
  int64_t at = 0;
  for (; at + kFloats <= cols; at += kFloats) {
    const Vec q = load_floats(query + at);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      accumulate<kKind>(q, load_floats(first + r * stride + at), sums[r], sums[(r + kRows) % kFloats]);
    }
  }
  if (at < cols) {
    const auto before = hn::FirstN(F32(), static_cast<size_t>(at + kFloats - cols));
    const Vec q = load_end(query, cols, before);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      accumulate<kKind>(q, load_end(first + r * stride, cols, before), sums[r], sums[(r + kRows) % kFloats]);
    }
  }
  const Vec all = add_lanes(sums);
  if constexpr (has_bound_sum(kKind)) {
    const hn::Half<F32> half;
    hn::StoreU(hn::LowerHalf(half, all), half, values);
    hn::StoreU(hn::UpperHalf(half, all), half, bound_sums);
  } else {
    hn::StoreU(all, F32(), values);
  }
}

template <KeyKind kKind, typename T>
void scan_type(const float* query, const MatrixView& base, float* values, float* bound_sums) {
  const T* rows = static_cast<const T*>(base.data());
  const int64_t stride = base.row_stride();
  // Four short streams at once are more than a hardware prefetcher follows.
  constexpr int64_t kRowsAhead = 8;
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  int64_t i = 0;
  if constexpr (adds_lanes(kKind)) {
    constexpr int64_t kRows = kTreeRows<kKind>;
    const bool in_trees = is_short<T>(base.cols());
    for (; in_trees && i + kRows <= base.rows(); i += kRows) {
      for (int64_t r = i + kRows; kPrefetches && r < std::min(i + 2 * kRows, base.rows()); ++r) {
        for (int64_t c = 0; c < base.cols(); c += kLine) __builtin_prefetch(rows + r * stride + c);
      }
      scan_tree<kKind>(query, rows + i * stride, stride, base.cols(), values + i,
                       has_bound_sum(kKind) ? bound_sums + i : nullptr);
    }
  }
  // Row by row is the order that a core's own prefetching follows best: on a Neoverse V1, where prefetches in the code
  // disturb it, a third of the time of four rows side by side, on a Sapphire Rapids two thirds to nine tenths.
  if constexpr (reads_row_by_row<T>()) {
    for (; base.cols() >= kLongRow && i < base.rows(); ++i) {
      scan_long_row<kKind>(query, rows + i * stride, base.cols(), values + i,
                           has_bound_sum(kKind) ? bound_sums + i : nullptr);
    }
  }
  for (; i + 4 <= base.rows(); i += 4) {
    for (int64_t r = i + kRowsAhead; kPrefetches && r < std::min(i + kRowsAhead + 4, base.rows()); ++r) {
      for (int64_t c = 0; c < base.cols(); c += kLine) __builtin_prefetch(rows + r * stride + c);
    }
    scan_group<kKind, 4>(query, rows + i * stride, stride, base.cols(), values + i,
                         has_bound_sum(kKind) ? bound_sums + i : nullptr);
  }
  for (; i < base.rows(); ++i) {
    scan_group<kKind, 1>(query, rows + i * stride, stride, base.cols(), values + i,
                         has_bound_sum(kKind) ? bound_sums + i : nullptr);
  }
}

// Four independent vectors of rows at a time.
constexpr int kTogether = 4;

template <KeyKind kKind>
void scan_columns(const float* query, const float* columns, int64_t cols, int64_t stride, int64_t rows, float* values,
                  float* bound_sums) {
  for (int64_t i = 0; i < rows; i += kTogether * kFloats) {
    Vec value[kTogether];
    Vec bound_sum[kTogether];
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) value[v] = bound_sum[v] = hn::Zero(F32());
    for (int64_t c = 0; c < cols; ++c) {
      const Vec q = hn::Set(F32(), query[c]);
#pragma GCC unroll 4
      for (int v = 0; v < kTogether; ++v) {
        accumulate<kKind>(q, hn::LoadU(F32(), columns + c * stride + i + v * kFloats), value[v], bound_sum[v]);
      }
    }
    for (int v = 0; v < kTogether; ++v) {
      hn::StoreU(value[v], F32(), values + i + v * kFloats);
      if constexpr (has_bound_sum(kKind)) hn::StoreU(bound_sum[v], F32(), bound_sums + i + v * kFloats);
    }
  }
}

void ScanColumns(KeyKind kind, const float* query, const ScannedColumns& base, float* values, float* bound_sums) {
  static_assert(kColumnRows % (kTogether * kFloats) == 0);
  visit_kind(scanned_kind(kind, bound_sums), [&](auto tag) {
    if constexpr (tag.kind != KeyKind::hamming) {
      scan_columns<tag.kind>(query, base.values, base.cols, kColumnRows, base.rows, values, bound_sums);
    }
  });
}

// The words of eight bytes that differ, as bits.
HWY_INLINE uint64_t word_apart(const uint8_t* a, const uint8_t* b) {
  uint64_t left, right;
  memcpy(&left, a, 8);
  memcpy(&right, b, 8);
  return left ^ right;
}

// The bits in which fewer than eight bytes differ, the last ones of `count`.
HWY_INLINE int64_t tail_apart(const uint8_t* a, const uint8_t* b, int64_t tail, int64_t count) {
  if (count >= 8) return __builtin_popcountll(word_apart(a + count - 8, b + count - 8) >> (64 - 8 * tail));
  int64_t bits = 0;
  for (int64_t c = 0; c < tail; ++c) bits += __builtin_popcountll(uint64_t{a[c]} ^ uint64_t{b[c]});
  return bits;
}

// The bits in which `count` bytes differ.
HWY_INLINE int64_t bits_apart(const uint8_t* a, const uint8_t* b, int64_t count) {
  int64_t bits = 0;
  int64_t c = 0;
#if HWY_TARGET == HWY_NEON
  using U8 = hn::ScalableTag<uint8_t>;
  constexpr int64_t kBytes = hn::MaxLanes(U8());
  constexpr int64_t kLong = 16 * kBytes;
  constexpr int64_t kMostCounted = 31;  // vectors whose counts fit bytes
  const auto apart = [&](int64_t at) HWY_ATTR {
    return hn::PopulationCount(hn::Xor(hn::LoadU(U8(), a + at), hn::LoadU(U8(), b + at)));
  };
  const auto sum_of = [](hn::Vec<U8> counts) HWY_ATTR {
    return static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(hn::ScalableTag<uint64_t>(), hn::SumsOf8(counts))));
  };
  // Two independent counts for long rows.
  while (c + kLong <= count) {
    auto even = hn::Zero(U8());
    auto odd = hn::Zero(U8());
    const int64_t end = std::min(c + (kMostCounted - 1) * kBytes, count);
    for (; c + 2 * kBytes <= end; c += 2 * kBytes) {
      even = hn::Add(even, apart(c));
      odd = hn::Add(odd, apart(c + kBytes));
    }
    bits += sum_of(hn::Add(even, odd));
  }
  while (c + kBytes <= count) {
    auto counts = hn::Zero(U8());
    const int64_t end = std::min(c + kMostCounted * kBytes, count);
    for (; c + kBytes <= end; c += kBytes) counts = hn::Add(counts, apart(c));
    bits += sum_of(counts);
  }
#else
  // One instruction counts eight bytes, which short rows have few of; four sums do not wait for each other.
  int64_t sums[4] = {};
  for (; c + 32 <= count; c += 32) {
    for (int i = 0; i < 4; ++i) sums[i] += __builtin_popcountll(word_apart(a + c + 8 * i, b + c + 8 * i));
  }
  bits = sums[0] + sums[1] + (sums[2] + sums[3]);
#endif
  for (; c + 8 <= count; c += 8) bits += __builtin_popcountll(word_apart(a + c, b + c));
  return c < count ? bits + tail_apart(a, b, count - c, count) : bits;
}

#if HWY_TARGET == HWY_NEON
// Rows of 16 to 496 bytes, four at a time, whose counts are added side by side: a sum across one row's takes longer
// than the counting. The last bytes are read with those before them, which are left out. Returns how many rows were
// taken.
int64_t scan_bits_of_four(const uint8_t* query, const uint8_t* rows, int64_t stride, int64_t count, int64_t cols,
                          float* values) {
  using U8 = hn::ScalableTag<uint8_t>;
  using U64 = hn::ScalableTag<uint64_t>;
  constexpr int64_t kBytes = hn::MaxLanes(U8());
  constexpr int64_t kMostCounted = 31;  // vectors whose counts fit bytes
  if (cols < kBytes || cols > kMostCounted * kBytes) return 0;
  const U8 d;
  HWY_ALIGN uint8_t real[kBytes];
  for (int64_t b = 0; b < kBytes; ++b) real[b] = b >= kBytes - cols % kBytes ? 0xFF : 0;
  const auto last = hn::Load(d, real);
  const auto apart = [&](const uint8_t* row, int64_t at) HWY_ATTR {
    return hn::PopulationCount(hn::Xor(hn::LoadU(d, query + at), hn::LoadU(d, row + at)));
  };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    hn::Vec<U64> sums[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const uint8_t* const row = rows + (i + r) * stride;
      auto counts = apart(row, 0);
      int64_t c = kBytes;
      for (; c + kBytes <= cols; c += kBytes) counts = hn::Add(counts, apart(row, c));
      if (c < cols) counts = hn::Add(counts, hn::And(last, apart(row, cols - kBytes)));
      sums[r] = hn::SumsOf8(counts);
    }
#pragma GCC unroll 2
    for (int pair = 0; pair < 4; pair += 2) {
      const auto both = hn::Add(hn::InterleaveLower(U64(), sums[pair], sums[pair + 1]),
                                hn::InterleaveUpper(U64(), sums[pair], sums[pair + 1]));
      const hn::Rebind<float, U64> two;
      const auto bits = hn::DemoteTo(two, hn::ConvertTo(F64(), hn::BitCast(hn::ScalableTag<int64_t>(), both)));
      hn::StoreU(hn::Add(bits, hn::LoadU(two, values + i + pair)), two, values + i + pair);
    }
  }
  return i;
}
#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// Rows of kWords words; the last one begins among the bytes before it, which are left out.
template <int kWords>
HWY_INLINE void scan_words(const uint8_t* query, const uint8_t* rows, int64_t stride, int64_t count, int64_t cols,
                           float* values) {
  const uint64_t real = ~uint64_t{0} << (8 * (8 * kWords - cols));
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const row = rows + i * stride;
    int64_t bits = __builtin_popcountll(word_apart(query + cols - 8, row + cols - 8) & real);
#pragma GCC unroll 4
    for (int w = 0; w + 1 < kWords; ++w) bits += __builtin_popcountll(word_apart(query + 8 * w, row + 8 * w));
    values[i] += static_cast<float>(bits);
  }
}

// Rows of 8 to 32 bytes, whose words are counted sooner than vectors of them are put together. False for others.
bool scan_bits_of_words(const uint8_t* query, const uint8_t* rows, int64_t stride, int64_t count, int64_t cols,
                        float* values) {
  if (cols < 8 || cols > 32) return false;
  if (cols == 8) scan_words<1>(query, rows, stride, count, cols, values);
  if (cols > 8 && cols <= 16) scan_words<2>(query, rows, stride, count, cols, values);
  if (cols > 16 && cols <= 24) scan_words<3>(query, rows, stride, count, cols, values);
  if (cols > 24) scan_words<4>(query, rows, stride, count, cols, values);
  return true;
}
#endif

// Blocks of columns, so that the query's bytes fit the stack.
void scan_bits(const float* query, const MatrixView& base, float* values) {
  constexpr int64_t kBlock = 1024;
  HWY_ALIGN uint8_t bytes[kBlock];
  std::fill_n(values, base.rows(), 0.0f);
  const auto* const data = static_cast<const uint8_t*>(base.data());
  for (int64_t at = 0; at < base.cols(); at += kBlock) {
    const int64_t count = std::min(kBlock, base.cols() - at);
    for (int64_t c = 0; c < count; ++c) bytes[c] = static_cast<uint8_t>(query[at + c]);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    if (scan_bits_of_words(bytes, data, base.row_stride(), base.rows(), base.cols(), values)) return;
#endif
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    if (cpu_extensions().vpopcnt) {
      scan_bits_vpopcnt(bytes, {data + at, DType::u8, {base.rows(), count, base.row_stride()}}, values);
      continue;
    }
#endif
    int64_t i = 0;
#if HWY_TARGET == HWY_NEON
    i = scan_bits_of_four(bytes, data + at, base.row_stride(), base.rows(), count, values);
#endif
    for (; i < base.rows(); ++i) {
      values[i] += static_cast<float>(bits_apart(bytes, data + at + i * base.row_stride(), count));
    }
  }
}

void ScanRows(KeyKind kind, const float* query, const MatrixView& base, float* values, float* bound_sums) {
  visit_kind(scanned_kind(kind, bound_sums), [&](auto tag) {
    if constexpr (tag.kind == KeyKind::hamming) {
      scan_bits(query, base, values);
    } else {
      visit_dtype(base.dtype(),
                  [&]<typename T>(StoredAs<T>) { scan_type<tag.kind, T>(query, base, values, bound_sums); });
    }
  });
}

template <KeyKind kKind, typename T>
void scan_places(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values,
                 float* bound_sums) {
  const T* const rows = static_cast<const T*>(base.data()) + first * base.row_stride();
  for (int64_t i = 0; places != 0; places &= places - 1, ++i) {
    const T* const row = rows + hwy::Num0BitsBelowLS1Bit_Nonzero64(places) * base.row_stride();
    float* const bound_sum = has_bound_sum(kKind) ? bound_sums + i : nullptr;
    if (base.cols() >= 4 * kFloats) {
      scan_long_row<kKind>(query, row, base.cols(), values + i, bound_sum);
    } else {
      scan_group<kKind, 1>(query, row, 0, base.cols(), values + i, bound_sum);
    }
  }
}

void ScanDifferences(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values) {
  visit_dtype(base.dtype(), [&]<typename T>(StoredAs<T>) {
    scan_places<KeyKind::squared_l2, T>(query, base, first, places, values, nullptr);
  });
}

void ScanProducts(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values,
                  float* bound_sums) {
  visit_dtype(base.dtype(), [&]<typename T>(StoredAs<T>) {
    scan_places<KeyKind::inner_product, T>(query, base, first, places, values, bound_sums);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(ScanColumns);
HWY_EXPORT(ScanDifferences);
HWY_EXPORT(ScanProducts);
HWY_EXPORT(ScanRows);

void scan_columns_cpu(KeyKind kind, const float* query, const ScannedColumns& base, float* values, float* bound_sums) {
  HWY_DYNAMIC_DISPATCH(ScanColumns)(kind, query, base, values, bound_sums);
}

void scan_differences_cpu(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values) {
  HWY_DYNAMIC_DISPATCH(ScanDifferences)(query, base, first, places, values);
}

void scan_products_cpu(const float* query, const MatrixView& base, int64_t first, uint64_t places, float* values,
                       float* bound_sums) {
  HWY_DYNAMIC_DISPATCH(ScanProducts)(query, base, first, places, values, bound_sums);
}

void scan_rows_cpu(KeyKind kind, const float* query, const MatrixView& base, float* values, float* bound_sums) {
  HWY_DYNAMIC_DISPATCH(ScanRows)(kind, query, base, values, bound_sums);
}

}  // namespace kith
#endif
