// Rows of bytes against a query's weights on x86, whichever products of bytes it has: rows side by side, so that
// weights are loaded once for four of them, whose sums are added in a tree that leaves one sum in each lane. Of rows of
// few bytes that lie one after the other a register takes several. Several queries take turns with rows that are near
// by then.
//
// The including file defines KITH_FOR_WEIGHTS, its instructions, and a Set of them: registers `Ints` and `Floats` with
// a lane for each of kRows rows, and what is done with them; sum_together() of rows that takes_together() allows.
#pragma once

#include "kernels/lists/weighted_bytes.hpp"

#include <algorithm>
#include <bit>

namespace kith {
namespace {

constexpr int64_t kUnitBytes = 16;  // that a row is a multiple of; its last unit begins among the bytes before it
// Rows side by side are more streams than a core's own prefetching follows: it is told what comes.
constexpr int64_t kAhead = 2048;  // bytes
constexpr int64_t kLine = 64;

// The sums of four rows by one plane of the weights, not yet added across. Packing says how the values of a row lie:
// kStep bytes of it are a register of them, in the order that its weights have.
template <typename Set, typename Packing>
KITH_FOR_WEIGHTS inline void sum_four_rows(const uint8_t* const* rows, int64_t row_bytes, const int8_t* weights,
                                           typename Set::Ints* sums) {
  using Ints = typename Set::Ints;
  Ints s0 = Set::zero();
  Ints s1 = s0;
  Ints s2 = s0;
  Ints s3 = s0;
  const int64_t whole = row_bytes / kUnitBytes * kUnitBytes;
  int64_t from = 0;
  for (; from + Packing::kStep <= whole; from += Packing::kStep) {
    const Ints w = Set::load_bytes(weights + from * Packing::kValues);
    s0 = Set::add_products(s0, Packing::load(rows[0] + from), w);
    s1 = Set::add_products(s1, Packing::load(rows[1] + from), w);
    s2 = Set::add_products(s2, Packing::load(rows[2] + from), w);
    s3 = Set::add_products(s3, Packing::load(rows[3] + from), w);
  }
  // The units that are left, and then the last one, where the row ends within it: the weights of columns that were
  // there are zeros.
  for (int64_t at = from; at < row_bytes;) {
    const int64_t count = at < whole ? whole - at : kUnitBytes;
    const int64_t place = at < whole ? at : row_bytes - kUnitBytes;
    const Ints w = Set::load_some_bytes(weights + at * Packing::kValues, count * Packing::kValues);
    s0 = Set::add_products(s0, Packing::load_some(rows[0] + place, count), w);
    s1 = Set::add_products(s1, Packing::load_some(rows[1] + place, count), w);
    s2 = Set::add_products(s2, Packing::load_some(rows[2] + place, count), w);
    s3 = Set::add_products(s3, Packing::load_some(rows[3] + place, count), w);
    at += count;
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

// All rows of a register; of those of four that `wanted` has no bit of, sums are zeros.
template <typename Set, typename Packing>
KITH_FOR_WEIGHTS inline typename Set::Ints sum_rows_of(const uint8_t* const (&rows)[Set::kRows], uint32_t wanted,
                                                       int64_t row_bytes, const int8_t* weights) {
  typename Set::Ints sums[Set::kRows];
#pragma GCC unroll 4
  for (int r = 0; r < Set::kRows; r += 4) {
    if ((wanted >> r & 15) != 0) {
      sum_four_rows<Set, Packing>(rows + r, row_bytes, weights, sums + r);
    } else {
      sums[r] = sums[r + 1] = sums[r + 2] = sums[r + 3] = Set::zero();
    }
  }
  return Set::add_each(sums);
}

// `far`: the rows have not been read yet.
template <typename Set, typename Packing>
KITH_FOR_WEIGHTS void scan_one_query(const ByteRows& given, uint32_t first, bool far, ByteRowsQuery& query) {
  using Ints = typename Set::Ints;
  using Floats = typename Set::Floats;
  const ByteRows rows = given;  // which nothing that is written changes
  const int64_t row_bytes = Packing::kValues == 1 ? rows.cols : rows.stride;
  const PlaneTerms planes = plane_terms(rows, query, 0);
  const auto* const high = static_cast<const int8_t*>(query.weights.weights);
  const int8_t* const low = high + weight_bytes(rows.cols) / 2;
  const bool together = Packing::kValues == 1 && row_bytes == rows.stride && Set::takes_together(row_bytes);
  const Floats factor = Set::all(query.factor);
  const Floats tilt = Set::all(query.tilt);
  const Floats limit = Set::all(query.limit);
  const uint8_t* of[Set::kRows];
  for (int r = 0; r < Set::kRows; ++r) of[r] = rows.bytes + r * rows.stride;
  const auto advance = [&]() KITH_FOR_WEIGHTS {
    for (int r = 0; r < Set::kRows; ++r) of[r] += Set::kRows * rows.stride;
  };
  for (int64_t i = 0; i < rows.count; i += Set::kRows, advance()) {
    const int64_t here = std::min<int64_t>(Set::kRows, rows.count - i);
    for (int64_t r = here; r < Set::kRows; ++r) of[r] = of[0];
    if (far) {
      for (int64_t at = 0; at < Set::kRows * rows.stride; at += kLine) __builtin_prefetch(of[0] + kAhead + at);
    }
    const auto load = [&](const float* from, float without) KITH_FOR_WEIGHTS {
      return from == nullptr ? Set::all(without) : Set::load_floats(from + i, here);
    };
    const Floats scales = load(rows.scales, 1);
    const Floats terms = load(rows.terms, 0);
    const Floats spreads = load(rows.spreads, 0);
    // Those whose least value is not above the limit; a NaN is not.
    const auto passing = [&](Floats value) KITH_FOR_WEIGHTS {
      const Floats least = Set::subtract_product(value, spreads, tilt);
      return ~Set::above(least, limit) & ((1u << here) - 1);
    };
    const auto value_of = [&](Ints sums, float constant) KITH_FOR_WEIGHTS {
      return Set::add_product(terms, Set::add_product(Set::all(constant), Set::to_floats(sums), factor), scales);
    };
    const auto sums_of = [&](uint32_t wanted, const int8_t* weights) KITH_FOR_WEIGHTS {
      return together && here == Set::kRows ? Set::sum_together(of[0], row_bytes, weights)
                                            : sum_rows_of<Set, Packing>(of, wanted, row_bytes, weights);
    };
    const Ints upper = Set::add(Set::times_128(sums_of(~0u, high)), Set::all(planes.high_shift));
    const uint32_t left = passing(value_of(upper, planes.rough_constant));
    if (left == 0) continue;  // nearly always
    const Ints lower = Set::add(sums_of(left, low), Set::all(planes.low_shift));
    const Floats value = value_of(Set::add(upper, lower), query.constant);
    alignas(64) float values[Set::kRows];
    Set::store(value, values);
    uint32_t passed = left & passing(value);
    if (passed == (1u << Set::kRows) - 1) {  // as long as there is no limit
      std::copy_n(values, Set::kRows, query.values + query.found);
      for (int r = 0; r < Set::kRows; ++r) query.numbers[query.found + r] = first + static_cast<uint32_t>(i + r);
      query.found += Set::kRows;
      continue;
    }
    for (; passed != 0; passed &= passed - 1) {
      const int r = std::countr_zero(passed);
      query.values[query.found] = values[r];
      query.numbers[query.found] = first + static_cast<uint32_t>(i + r);
      ++query.found;
    }
  }
}

// Bytes as they are, or Nibbles: halves of them, as packed_weight_place() says.
template <typename Set, typename Bytes, typename Nibbles>
void scan_all_queries(const ByteRows& rows, uint32_t first, ByteRowsQuery* queries, int64_t query_count) {
  for (int64_t q = 0; q < query_count; ++q) {
    if (rows.bits == 4) {
      scan_one_query<Set, Nibbles>(rows, first, q == 0, queries[q]);
    } else {
      scan_one_query<Set, Bytes>(rows, first, q == 0, queries[q]);
    }
  }
}

}  // namespace
}  // namespace kith
