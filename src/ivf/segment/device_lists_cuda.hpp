// Inverted lists on a device, as plain pointers: what an index holds, and what is computed once for its search; and the
// bounds that the search rules vectors out by.
#pragma once

#include "core/host_device.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// Which vectors of a list fast products cannot rule out: the proof behind the search of inverted lists on matrix units.
//
// A vector of a list is rounded to halves b of s (x' - c), x' being the stored vector, c the list's centre, or zero,
// and s a power of two; a query x to halves -a of s (x - c), or of t x for products, with t a power of two of its own.
// From the product p = -a b an estimate follows, in the scaled unit:
//   distances  2 (p + |b|^2 / 2) + |a|^2   the squared distance
//   products   p - s t <x, c>              the key
//   cosine     1 + f (g p + o)             the key, with f = 1 / (s |x'|), g = 1 / (t |x|), o = -g s t <x, c>
// Rounding moved the vectors by `residual` at most, so a distance is within `moved` (both residuals) of that of the
// rounded ones, and a product within residual_q (|b| + residual_x) + |a| residual_x. `error` adds what sums on matrix
// units lose (candidate_window.hpp) and the roundings of the few f32 operations after them. A `reach` bounds the k-th
// smallest distance (distances) or key from above; what is farther than that, with the rounding of keys, is ruled out.

// Where vectors have halves of their own, cosine's are those of vectors of length 1 (`unit`): its key is half of their
// squared distance, so that all is as for distances, and halves are as fine as a list is narrow. A zero vector is as
// far from every query as one at a right angle: what its square lacks of that is in its term. Queries are rounded to
// f32 at length 1, which moves them by kUnitMoved.
//
// Where codes hold norms (kernels/codes/code_norm.hpp) a key is of |x - x'|^2 + (norm - |x'|^2), which is no distance:
// the vector's term has the second part, bounds are of products and of squares, and reaches too are squares.
//
// Where a list has vectors far shorter than others, near a centre that the others are far from, what is true of its
// longest vector says nothing about the short ones. Bounds of distances are then made of two parts (by_row): the errors
// above are at most a share of |a|^2 and the same share of |b|^2, since 2 |a| |b| is at most their sum; and with
// e = kRowShare and a vector's own residual r
//   (d + r)^2 <= (1 + e) (d^2 + r^2 / e).
// What is the vector's part of it, row_slack(), is in its term: added in the first pass, where k estimates are to be no
// less than the distances, and subtracted in the second, where no estimate may be too large. The query's part is in its
// bounds, with 1 + e times the squares of reaches; in the first pass, whose values of several lists are compared, in
// its estimates too (with_own_error), and 1 + e is squared.
inline constexpr double kRowShare = 0x1p-10;  // about what a residual is of its vector, with room for denormal halves

// What a search of lists goes by.
struct ListKey {
  KeyKind kind;
  bool by_norm;  // l2 and squared_l2 only
  bool by_row;   // of distances: the vectors' parts of bounds are in their terms
  bool unit;     // cosine by distances of vectors of length 1

  KITH_HOST_DEVICE constexpr ListKey(KeyKind given, bool norms = false, bool rows = false, bool units = false)
      : kind(given), by_norm(norms), by_row(rows), unit(units) {}
  // Whether products are of vectors less their list's centre.
  KITH_HOST_DEVICE constexpr bool has_centred() const { return has_differences(kind) || unit; }
  // Whether estimates are squares of distances, and reaches distances.
  KITH_HOST_DEVICE constexpr bool has_distances() const { return has_centred() && !by_norm; }
  KITH_HOST_DEVICE constexpr double stretch() const { return by_row ? 1 + kRowShare : 1; }
};

// Bounds over all vectors of a list: the largest, in the scaled unit; infinite where a vector has no halves.
struct ListFacts {
  float norm;      // |b|; cosine: f |b|
  float residual;  // what rounding moved a vector by; cosine: f times that
  float factor;    // cosine: f; of norms: what is added to a square
};

inline constexpr double kUnitMoved = 0x1p-23;  // of a vector of length 1

// Rounding of eight f32 operations.
inline constexpr double kEstimateRounding = 0x1p-21;

// What the estimate of a squared distance is off by at most, as a share of |a|^2 + |b|^2.
KITH_HOST_DEVICE inline double estimate_share(int64_t cols) {
  return (static_cast<double>(cols) + 16) * kSumLoss + kEstimateRounding * (1 + static_cast<double>(cols) / 16);
}

// A vector's part of the bounds of its squared distances, where they are by row; of |b|^2 and what rounding moved it
// by, squared. A little more, for what the term's own rounding loses.
KITH_HOST_DEVICE inline double row_slack(int64_t cols, double squared_norm, double squared_residual) {
  return (estimate_share(cols) * squared_norm + squared_residual * (1 + 1 / kRowShare)) * (1 + 0x1p-10) + 0x1p-120;
}

// Bounds of a query's halves for one list.
struct PairFacts {
  double squared_norm;  // |a|^2, to within 2^-20 of it
  double residual;      // what rounding moved the query by
  double offset;        // s t <x, c>, of products and cosine
  double inverse_norm;  // cosine: g
};

struct PairBounds {
  float scale;  // estimate = scale * value + shift
  float shift;
  float error;  // of an estimate
  float moved;  // of a distance
  float gain;   // cosine: value = f (gain p + offset)
  float offset;

  KITH_HOST_DEVICE float estimate(float value) const { return fmaf(value, scale, shift); }
  KITH_HOST_DEVICE bool sure() const { return error < HUGE_VALF && moved < HUGE_VALF; }
};

KITH_HOST_DEVICE inline PairBounds pair_bounds(const ListKey& key, int64_t cols, const ListFacts& list,
                                               const PairFacts& query) {
  constexpr double kRounding = kEstimateRounding;
  const KeyKind kind = key.kind;
  const double norm = sqrt(query.squared_norm) * (1 + 0x1p-20);
  const double product = norm * list.norm;
  const double sum_loss = (static_cast<double>(cols) + 16) * kSumLoss * product;
  PairBounds bounds{1, 0, 0, 0, 1, 0};
  double error = 0;
  if (key.has_centred()) {
    const double squares = query.squared_norm + static_cast<double>(list.norm) * list.norm;
    // Sums start from |b|^2 / 2, of which each addition of the matrix units may lose its share too.
    error = 2 * sum_loss + kRounding * squares * (1 + static_cast<double>(cols) / 16) + 0x1p-20 * query.squared_norm;
    bounds.scale = 2;
    bounds.shift = static_cast<float>(query.squared_norm);
    if (key.by_row) {
      error = (estimate_share(cols) + 0x1p-20) * query.squared_norm * (1 + 0x1p-16);
      bounds.moved = static_cast<float>(query.residual * (1 + 0x1p-20));
      if (!(list.residual < 1e30f)) error = HUGE_VAL;  // a vector without halves has no term
    } else if (key.by_norm) {
      // The query's own rounding is in its square too.
      const double moved = query.residual * (static_cast<double>(list.norm) + list.residual) + norm * list.residual;
      error += 2 * moved + query.residual * (2 * norm + query.residual) +
               kRounding * static_cast<double>(list.factor) * (1 + static_cast<double>(cols) / 16);
      if (!(list.factor < 1e30f)) error = HUGE_VAL;
    } else {
      bounds.moved = static_cast<float>((query.residual + list.residual) * (1 + 0x1p-20));
    }
    if (!(squares < 1e30)) error = HUGE_VAL;
  } else {
    const double lost =
        sum_loss + query.residual * (static_cast<double>(list.norm) + list.residual) + norm * list.residual;
    if (kind == KeyKind::cosine) {
      const double offset = -query.offset * query.inverse_norm;
      error = query.inverse_norm * (lost + kRounding * product) + list.factor * kRounding * fabs(offset) + kRounding;
      if (!(list.factor < 1e30f)) error = HUGE_VAL;
      bounds.gain = static_cast<float>(query.inverse_norm);
      bounds.offset = static_cast<float>(offset);
      bounds.shift = 1;
    } else {
      error = lost + kRounding * (product + fabs(query.offset));
      bounds.shift = static_cast<float>(-query.offset);
    }
    if (!(product < 1e30)) error = HUGE_VAL;
  }
  error *= 1 + 0x1p-20;
  // A comparison with NaN is false.
  bounds.error = error < 1e30 ? static_cast<float>(error) : HUGE_VALF;
  if (!(bounds.moved < 1e30f)) bounds.moved = HUGE_VALF;
  return bounds;
}

// Bounds of the first pass where they are by row: estimates are no less than the distances' squares.
KITH_HOST_DEVICE inline PairBounds with_own_error(const PairBounds& bounds) {
  const double moved = static_cast<double>(bounds.moved) * bounds.moved * (1 + 1 / kRowShare);
  PairBounds folded = bounds;
  folded.shift += static_cast<float>((bounds.error + moved) * (1 + 0x1p-20));
  folded.error = 0;
  folded.moved = 0;
  return folded;
}

// Bounds of distances by lookup tables: sums, in f32, of squared distances between a query's parts that were scaled and
// centred in f32 and the vectors' halves. All of the sum's terms are positive, so that what its additions lose is a
// share of it. Where tables are of products (scan_cut.hpp) the terms are |x - c|^2, those of the vector, |b|^2 + 2 <c,
// b>, and 2 <x, b>, of x and c less the middle: |c| is at most |x| + |x - c|, so that none of the sums exceeds
// `largest`.
struct TableFacts {
  double squared_norm;  // of the query less the list's centre, scaled
  double far_norm;      // of the query less the middle, scaled; 0 where tables are of distances
};
KITH_HOST_DEVICE inline PairBounds table_bounds(int64_t cols, int64_t parts, const ListFacts& list,
                                                const TableFacts& query) {
  const double norm = sqrt(query.squared_norm) * (1 + 0x1p-20);
  const double largest = (norm + list.norm) * (norm + list.norm) + 4 * query.far_norm * list.norm;
  const double error = static_cast<double>(cols + parts + 16) * 0x1p-23 * largest;
  const double moved = (norm * 0x1p-23 + list.residual + 0x1p-60) * (1 + 0x1p-20);
  PairBounds bounds{1, 0, HUGE_VALF, HUGE_VALF, 1, 0};
  if (largest < 1e30 && error < 1e30) bounds.error = static_cast<float>(error * (1 + 0x1p-20));
  if (moved < 1e30) bounds.moved = static_cast<float>(moved);
  return bounds;
}

// Bounds of sums of lookups in a query's products with codewords, in f32 throughout, from the vector's term on.
struct SumFacts {
  double squared_norm;  // of the scaled query
  double longest;       // the sum of the books' longest codewords, scaled
};
KITH_HOST_DEVICE inline PairBounds sum_bounds(const ListKey& key, int64_t cols, int64_t books, const ListFacts& list,
                                              const SumFacts& query) {
  const double norm = sqrt(query.squared_norm) * (1 + 0x1p-20);
  const double product = norm * query.longest;
  // Products, their sums, and what additions of codewords round.
  double error = product * static_cast<double>(2 * cols + 4 * books + 32) * 0x1p-23 + 0x1p-100;
  PairBounds bounds{1, 0, 0, 0, 1, 0};
  if (has_differences(key.kind)) {
    const double square = static_cast<double>(list.norm) * list.norm;
    const double term = key.by_norm ? static_cast<double>(list.factor) : square;
    // Terms that are not by norms are of halves.
    const double halves = key.by_norm ? 0.0 : list.residual * (2.0 * list.norm + list.residual);
    error = 2 * error + halves + static_cast<double>(books + 16) * 0x1p-22 * (term + query.squared_norm);
    bounds.scale = 2;
    bounds.shift = static_cast<float>(query.squared_norm);
  }
  error *= 1 + 0x1p-20;
  // A comparison with NaN is false.
  const bool known = product < 1e30 && query.squared_norm < 1e30 && list.norm < 1e15f && list.residual < 1e15f;
  bounds.error = known && error < 1e30 ? static_cast<float>(error) : HUGE_VALF;
  return bounds;
}

// Bounds of the true distance, or key, of an estimate.
KITH_HOST_DEVICE inline float upper_bound(const ListKey& key, const PairBounds& bounds, float estimate) {
  if (!key.has_distances()) {
    float upper = estimate + bounds.error;
    if (key.by_norm && upper < 0) upper = 0;  // no key is
    return upper + fabsf(upper) * 0x1p-21f;
  }
  const float square = (estimate + bounds.error) * static_cast<float>(key.stretch() * key.stretch() * (1 + 0x1p-21));
  return (sqrtf(square > 0 ? square : 0.0f) + bounds.moved) * (1 + 0x1p-21f);
}
KITH_HOST_DEVICE inline float lower_bound(const ListKey& key, const PairBounds& bounds, float estimate) {
  if (!key.has_distances()) {
    const float lower = estimate - bounds.error;
    return lower - fabsf(lower) * 0x1p-21f;
  }
  const float square = (estimate - bounds.error) * static_cast<float>((1 - 0x1p-21) / key.stretch());
  const float distance = sqrtf(square > 0 ? square : 0.0f) * (1 - 0x1p-21f) - bounds.moved;
  return distance - fabsf(distance) * 0x1p-21f;
}

// The reach with the rounding of keys to f32, which can make a farther vector equal; in doubles, since it may be
// infinite. `unit` is the scale of a distance, or of a key of products (s t).
KITH_HOST_DEVICE inline double reach_with_ties(const ListKey& key, double reach, double unit) {
  if (key.by_norm) {  // of a root twice the share
    const double wider = reach * (1 + 3 * kKeyLoss);
    if (key.kind == KeyKind::squared_l2) return wider + unit * unit * kTinyKey;
    const double root = sqrt(wider) + unit * 0x1p-148;
    return root * root * (1 + 0x1p-50);
  }
  if (key.unit) return sqrt(reach * reach * (1 + kKeyLoss) + unit * unit * kTinyKey) + 2 * unit * kUnitLoss;
  switch (key.kind) {
    case KeyKind::l2: return reach * (1 + kKeyLoss) + unit * 0x1p-148;
    case KeyKind::squared_l2: return sqrt(reach * reach * (1 + kKeyLoss) + unit * unit * kTinyKey);
    case KeyKind::cosine: return reach + fabs(reach) * kKeyLoss + 0x1p-40;
    default: return reach + fabs(reach) * kKeyLoss + unit * kTinyKey;
  }
}

// Where keys may overflow f32, and equal each other, nothing can be ruled out.
KITH_HOST_DEVICE inline bool reach_in_range(const ListKey& key, double reach, double unit) {
  if (key.by_norm) return fabs(reach) < kLargestReach * unit * kLargestReach * unit;
  return key.kind == KeyKind::cosine || fabs(reach) < kLargestReach * unit;
}

// What a value (estimate = scale * value + shift) is at most for a vector within `reach`, which has the ties.
KITH_HOST_DEVICE inline float value_limit(const ListKey& key, const PairBounds& bounds, double reach) {
  double limit = key.has_distances() ? (reach + bounds.moved) * (reach + bounds.moved) * key.stretch() : reach;
  limit = (limit + static_cast<double>(bounds.error) - bounds.shift) / bounds.scale;
  limit += fabs(limit) * 0x1p-22;
  return limit < 1e38 ? static_cast<float>(limit) : HUGE_VALF;
}

struct DeviceListsView {
  KeyKind kind = KeyKind::l2;
  CodecView codec;
  bool residual = false;  // codes are of vectors less their centre
  bool by_row = false;    // a search's bounds are (ListKey)
  bool unit = false;      // likewise; cosine alone, of vectors that have halves (PreparedLists)
  int64_t lists = 1;
  const float* centres = nullptr;    // lists x cols; none for a single list without one
  const int64_t* offsets = nullptr;  // lists + 1
  const uint8_t* codes = nullptr;    // in the order of lists
  const uint32_t* rows = nullptr;    // likewise
  int64_t count = 0;                 // of vectors
  const double* inverse_norms = nullptr;  // canonical, of each vector, cosine alone; none: not known

  // Whether halves are of vectors less their list's centre: by the codes themselves, or because the scan subtracts it.
  // Codewords are looked up as halves, which leaves no place for a subtraction.
  KITH_HOST_DEVICE bool subtracts() const {
    const bool wanted = unit || (!residual && has_differences(kind));
    return wanted && centres != nullptr && !codec.format.copies_codewords();
  }
  // Whether cosine's keys are products with a factor for each vector.
  KITH_HOST_DEVICE bool has_factors() const { return kind == KeyKind::cosine && !unit; }
  // What keys and their bounds are made from.
  KITH_HOST_DEVICE ListKey key() const { return {kind, has_norm_keys(codec.format, kind), by_row, unit}; }
  KITH_HOST_DEVICE bool has_origin() const { return centres != nullptr && (residual || subtracts()); }
};

// On the device; made by launch_prepare_lists.
struct PreparedLists {
  float* largest = nullptr;    // of all values that become halves: gives their scale
  ListFacts* facts = nullptr;  // of each list
  float* terms = nullptr;      // of each vector: |b|^2 / 2, what norms make of it, or cosine's f; none for products
  uint16_t* table = nullptr;   // halves of the codewords, where codes are of 8 bits (scan_cut.hpp)
  uint16_t* halves = nullptr;  // of each vector, half_cols() apart: for codes that take long to decode
  float* upper_terms = nullptr;  // of each vector, with its part of the bounds added; none: bounds are of lists
  float* lower_terms = nullptr;  // the same with it subtracted
  double* inverse_norms = nullptr;  // canonical, of cosine's stored vectors, which keys are made of; or none

  // What is between a vector's estimates of both passes, where bounds are by row.
  KITH_HOST_DEVICE float estimates_apart(int64_t position) const {
    return 2 * (upper_terms[position] - lower_terms[position]) * (1 + 0x1p-20f);
  }

  // Rows of a multiple of 16 bytes.
  KITH_HOST_DEVICE static constexpr int64_t half_cols(int64_t cols) { return (cols + 7) / 8 * 8; }
  // All but codewords that are looked up: sums of them take long to decode, scalar codes and stored bytes some
  // instructions a value, halves and floats a subtraction, and floats are twice as much to read.
  static bool wants_halves(const CodeFormat& format) { return !format.copies_codewords(); }
  static bool has_terms(KeyKind kind) { return kind != KeyKind::inner_product; }
};

#if defined(__CUDACC__)
// The list that holds a place, the last that begins no later, found by all lanes of a warp: 32 times fewer are left
// each time.
template <typename Place>
__device__ inline int64_t list_of_warp(const Place* offsets, int64_t lists, Place place) {
  const auto lane = static_cast<int64_t>(threadIdx.x % 32);
  int64_t low = 0;
  int64_t high = lists;  // it is before this one
  while (high - low > 1) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t mine = low + lane * step;
    const unsigned begun = __ballot_sync(0xFFFFFFFFu, mine < high && offsets[mine] <= place);
    low += (__popc(begun) - 1) * step;
    high = low + step < high ? low + step : high;
  }
  return low;
}

// The same by one thread, where it is known to be one of these.
__device__ inline int64_t list_between(const int64_t* offsets, int64_t low, int64_t last, int64_t place) {
  int64_t high = last + 1;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (offsets[middle] <= place) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
#endif

}  // namespace kith
