// Weighted sums of bytes on x86, with AVX2 or VNNI. Four rows are processed side by side, so that weights are loaded
// once for all of them; a tree of additions leaves one sum per lane. A register holds several contiguous short rows.
// With several queries, each block of rows meets all of them while it is in cache. Values of 4 and 6 bits are unpacked
// to bytes in registers.
//
// The including file defines KITH_FOR_WEIGHTS, its target attribute, and a Set: registers `Ints` and `Floats` with a
// lane for each of kRows rows, and operations on them; sum_together() for rows that takes_together() accepts;
// put_some(), which compacts the chosen lanes and their row numbers, and may write a whole register;
// what SixBits needs; and Bytes and Nibbles, which are a Packing:
//
//   kBits, kStep, kUnit   bits per value; bytes of a row that unpack to a register of values; a row is a multiple of
//                         kUnit bytes, except that its last unit may overlap the one before
//
//   load, load_some       a register of values in the order of packed_weight_place(); the same from fewer whole units,
//                         padded with zeros
//
#pragma once

#include "kernels/lists/weighted_bytes.hpp"

#include <algorithm>
#include <bit>

namespace kith {
namespace {

// Prefetch distance: rows side by side are more streams than the hardware prefetcher follows.
constexpr int64_t kAhead = 2048;  // bytes
constexpr int64_t kLine = 64;

// The steps of a Packing per row: this number, any whole number, or a last partial one.
constexpr int kWholeSteps = 0;
constexpr int kPartSteps = -1;

template <typename Packing>
constexpr bool kWholeBytes = Packing::kBits == 8;
template <typename Packing>
constexpr int64_t values_in(int64_t bytes) {
  return bytes * 8 / Packing::kBits;
}

// Four values in three bytes. Of a group's bytes a, b, c a shuffle makes the words ab and bc, and products, which shift
// each word by its own number of bits, move their second and fourth values to the low bytes of the words, the first and
// third to the high ones.
template <typename Set>
struct SixBits {
  static constexpr int kBits = 6;
  static constexpr int64_t kUnit = 12;
  static constexpr int64_t kStep = Set::kSixLanes * kUnit;
  KITH_FOR_WEIGHTS static typename Set::Ints spread(typename Set::Ints words) {
    constexpr int32_t kSecondAndFourth = 1 << 10 | 1 << (6 + 16);  // words of 2^(16 - shift)
    constexpr int32_t kFirstAndThird = 1 << 8 | 1 << (4 + 16);
    return Set::six_bits_of(Set::high_products(words, Set::all(kSecondAndFourth)),
                            Set::low_products(words, Set::all(kFirstAndThird)));
  }
  KITH_FOR_WEIGHTS static typename Set::Ints load(const uint8_t* from) { return spread(Set::load_words(from)); }
  KITH_FOR_WEIGHTS static typename Set::Ints load_some(const uint8_t* from, int64_t count) {
    return spread(Set::load_some_words(from, count));
  }
};

// Calls step(from, at) for each whole register of a row, from a byte and a value on. With kParts also some(from, at,
// count) for the remaining units, and for the last one if the row ends within it: the weights of columns already
// counted are zeros.
template <typename Packing, bool kParts, typename Step, typename Some>
KITH_FOR_WEIGHTS inline void go_over_row(int64_t row_bytes, const Step& step, const Some& some) {
  const int64_t whole = row_bytes / Packing::kUnit * Packing::kUnit;
  int64_t from = 0;
  int64_t at = 0;
  for (; from + Packing::kStep <= whole; from += Packing::kStep, at += values_in<Packing>(Packing::kStep))
    step(from, at);
  while (kParts && from < row_bytes) {
    const int64_t count = from < whole ? whole - from : Packing::kUnit;
    some(from < whole ? from : row_bytes - Packing::kUnit, at, count);
    from += count;
    at += values_in<Packing>(count);
  }
}

// The sums of four rows by one plane of the weights, before they are added across lanes.
template <typename Set, typename Packing, int kSteps, typename Row>
KITH_FOR_WEIGHTS inline void sum_four_rows(const Row& row, int first, int64_t row_bytes, const int8_t* weights,
                                           typename Set::Ints* sums) {
  using Ints = typename Set::Ints;
  const uint8_t* const rows[] = {row(first), row(first + 1), row(first + 2), row(first + 3)};
  Ints s0 = Set::zero();
  Ints s1 = s0;
  Ints s2 = s0;
  Ints s3 = s0;
  const auto step = [&](int64_t from, int64_t at) KITH_FOR_WEIGHTS {
    const Ints w = Set::load_bytes(weights + at);
    s0 = Set::add_products(s0, Packing::load(rows[0] + from), w);
    s1 = Set::add_products(s1, Packing::load(rows[1] + from), w);
    s2 = Set::add_products(s2, Packing::load(rows[2] + from), w);
    s3 = Set::add_products(s3, Packing::load(rows[3] + from), w);
  };
  const auto some = [&](int64_t from, int64_t at, int64_t count) KITH_FOR_WEIGHTS {
    const Ints w = Set::load_some_bytes(weights + at, values_in<Packing>(count));
    s0 = Set::add_products(s0, Packing::load_some(rows[0] + from, count), w);
    s1 = Set::add_products(s1, Packing::load_some(rows[1] + from, count), w);
    s2 = Set::add_products(s2, Packing::load_some(rows[2] + from, count), w);
    s3 = Set::add_products(s3, Packing::load_some(rows[3] + from, count), w);
  };
  if constexpr (kSteps > 0) {
#pragma GCC unroll 4
    for (int i = 0; i < kSteps; ++i) step(i * Packing::kStep, i * values_in<Packing>(Packing::kStep));
  } else {
    go_over_row<Packing, kSteps == kPartSteps>(row_bytes, step, some);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

// The sums of a register of rows; groups of four without a bit in `wanted` may be zeros.
template <typename Set, typename Packing, int kSteps, typename Row>
KITH_FOR_WEIGHTS inline typename Set::Ints sum_rows_of(const Row& row, uint32_t wanted, int64_t row_bytes,
                                                       const int8_t* weights) {
  constexpr bool kAll = kSteps == 1 || kSteps == 2;  // a branch would cost more than four rows
  typename Set::Ints sums[Set::kRows];
#pragma GCC unroll 4
  for (int r = 0; r < Set::kRows; r += 4) {
    if (kAll || (wanted >> r & 15) != 0) {
      sum_four_rows<Set, Packing, kSteps>(row, r, row_bytes, weights, sums + r);
    } else {
      sums[r] = sums[r + 1] = sums[r + 2] = sums[r + 3] = Set::zero();
    }
  }
  return Set::add_each(sums);
}

// Scans rows for one query, a register of rows at a time.
template <typename Set, typename Packing, int kSteps>
struct OneQueryScan {
  using Ints = typename Set::Ints;
  using Floats = typename Set::Floats;

  ByteRows rows;
  PlaneTerms planes;
  const int8_t* high;
  const int8_t* low;
  Floats factor;
  Floats tilt;
  Floats limit;
  float constant;
  float* values;
  uint32_t* numbers;
  int64_t found;
  int64_t row_bytes;
  bool together;  // a register holds several rows

  KITH_FOR_WEIGHTS OneQueryScan(const ByteRows& given, const ByteRowsQuery& query)
      : rows(given),
        planes(plane_terms(given, query, 0)),
        high(static_cast<const int8_t*>(query.weights.weights)),
        low(high + weight_bytes(given.cols) / 2),
        factor(Set::all(query.factor)),
        tilt(Set::all(query.tilt)),
        limit(Set::all(query.limit)),
        constant(query.constant),
        values(query.values),
        numbers(query.numbers),
        found(query.found),
        row_bytes(kWholeBytes<Packing> ? given.cols : given.stride),
        together(kWholeBytes<Packing> && row_bytes == given.stride && Set::takes_together(row_bytes)) {}

  // Rows i to i + here, numbered from `first` on. kAll: a whole register of them.
  template <bool kAll>
  KITH_FOR_WEIGHTS void scan_register(int64_t i, int64_t here, uint32_t first) {
    const uint8_t* const at = rows.bytes + i * rows.stride;
    const int64_t stride = rows.stride;
    const auto row = [=](int r) { return at + (kAll || r < here ? r * stride : 0); };
    const auto sums_of = [&](uint32_t wanted, const int8_t* weights) KITH_FOR_WEIGHTS {
      if constexpr (kAll && kSteps == kPartSteps) {
        if (together) return Set::sum_together(at, row_bytes, weights);
      }
      return sum_rows_of<Set, Packing, kSteps>(row, wanted, row_bytes, weights);
    };
    const auto lower_sums = [&](uint32_t left) KITH_FOR_WEIGHTS { return sums_of(left, low); };
    put_passing<kAll>(i, here, first, sums_of(~0u, high), lower_sums);
  }

  // The coefficients from sums to values.
  struct RowTerms {
    Floats scales;
    Floats terms;
    Floats spreads;
  };
  template <bool kAll>
  KITH_FOR_WEIGHTS static RowTerms terms_of(const ByteRows& rows, int64_t i, int64_t here) {
    const auto load = [&](const float* from, float without) KITH_FOR_WEIGHTS {
      return from == nullptr ? Set::all(without) : Set::load_floats(from + i, kAll ? Set::kRows : here);
    };
    return {load(rows.scales, 1), load(rows.terms, 0), load(rows.spreads, 0)};
  }
  KITH_FOR_WEIGHTS Floats value_of(const RowTerms& row, Ints sums, float added) const {
    return Set::add_product(row.terms, Set::add_product(Set::all(added), Set::to_floats(sums), factor), row.scales);
  }
  // The rows whose lower bound is not above the limit; NaN passes.
  KITH_FOR_WEIGHTS uint32_t passing(const RowTerms& row, Floats value) const {
    return ~Set::above(Set::subtract_product(value, row.spreads, tilt), limit);
  }
  KITH_FOR_WEIGHTS Ints upper_of(Ints upper_sums) const {
    return Set::add(Set::times_128(upper_sums), Set::all(planes.high_shift));
  }
  // The rows that pass by the high plane's sums: nearly always none.
  KITH_FOR_WEIGHTS uint32_t passing_roughly(const RowTerms& row, Ints upper_sums) const {
    return passing(row, value_of(row, upper_of(upper_sums), planes.rough_constant)) & ((1u << Set::kRows) - 1);
  }

  // The same with given high-plane sums; lower_sums(left) computes the low plane's for the rows that pass.
  template <bool kAll, typename LowerSums>
  KITH_FOR_WEIGHTS void put_passing(int64_t i, int64_t here, uint32_t first, Ints upper_sums,
                                    const LowerSums& lower_sums) {
    const RowTerms row = terms_of<kAll>(rows, i, here);
    const uint32_t all = (1u << (kAll ? Set::kRows : here)) - 1;
    const Ints upper = upper_of(upper_sums);
    uint32_t left = (1u << Set::kRows) - 1;
    if (!together) {  // else the low plane costs less than a branch
      left = passing(row, value_of(row, upper, planes.rough_constant)) & all;
      if (left == 0) return;  // nearly always
    }
    const Ints lower = Set::add(lower_sums(left), Set::all(planes.low_shift));
    const Floats value = value_of(row, Set::add(upper, lower), constant);
    const uint32_t passed = left & all & passing(row, value);
    Set::put_some(value, first + static_cast<uint32_t>(i), passed, values + found, numbers + found);
    found += std::popcount(passed);
  }
};

// `far`: the rows are not in cache yet.
template <typename Set, typename Packing, int kSteps>
KITH_FOR_WEIGHTS void scan_one_query(const ByteRows& rows, uint32_t first, bool far, ByteRowsQuery& query) {
  OneQueryScan<Set, Packing, kSteps> scan(rows, query);
  int64_t i = 0;
  for (; i + Set::kRows <= rows.count; i += Set::kRows) {
    if (far) {
      const uint8_t* const ahead = rows.bytes + i * rows.stride + kAhead;
      for (int64_t at = 0; at < Set::kRows * rows.stride; at += kLine) __builtin_prefetch(ahead + at);
    }
    scan.template scan_register<true>(i, Set::kRows, first);
  }
  if (i < rows.count) scan.template scan_register<false>(i, rows.count - i, first);
  query.found = scan.found;
}

// Chooses the instantiation by a row's number of steps.
template <typename Set, typename Packing>
void scan_query(const ByteRows& rows, uint32_t first, bool far, ByteRowsQuery& query) {
  const int64_t row_bytes = kWholeBytes<Packing> ? rows.cols : rows.stride;
  const int64_t steps = row_bytes % Packing::kStep == 0 ? row_bytes / Packing::kStep : 0;
  if (steps == 0 || (kWholeBytes<Packing> && Set::takes_together(row_bytes))) {
    scan_one_query<Set, Packing, kPartSteps>(rows, first, far, query);
  } else if (steps == 1) {
    scan_one_query<Set, Packing, 1>(rows, first, far, query);
  } else if (steps == 2) {
    scan_one_query<Set, Packing, 2>(rows, first, far, query);
  } else if (steps == 4) {
    scan_one_query<Set, Packing, 4>(rows, first, far, query);
  } else {
    scan_one_query<Set, Packing, kWholeSteps>(rows, first, far, query);
  }
}

// Calls use(packing) with the Packing of this many bits.
template <typename Set, typename Bytes, typename Nibbles, typename Use>
void with_packing(int bits, const Use& use) {
  if (bits == 4) return use(Nibbles());
  if (bits == 6) return use(SixBits<Set>());
  use(Bytes());
}

template <typename Set, typename Packing>
void scan_all_queries(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  for (int64_t q = 0; q < query_count; ++q) scan_query<Set, Packing>(rows, first, q == 0, queries[q]);
}

}  // namespace
}  // namespace kith
