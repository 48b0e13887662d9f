// Inverted lists on a device, as plain pointers: the index's arrays and data computed once for its searches; and the
// bounds by which the search rules out vectors.
#pragma once

#include "core/host_device.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/candidate_window.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

// Which vectors of a list fast products cannot rule out: the proof behind searching inverted lists on tensor cores.
//
// A vector of a list is rounded to fp16 b of s (x' - c), where x' is the stored vector, c the list's centre or zero,
// and s a power of two; a query x to fp16 -a of s (x - c), or of t x for products, with t a power of two per query.
// The product p = -a b yields an estimate, in scaled units:
//   distances  2 (p + |b|^2 / 2) + |a|^2   the squared distance
//   products   p - s t <x, c>              the key
//   cosine     1 + f (g p + o)             the key, with f = 1 / (s |x'|), g = 1 / (t |x|), o = -g s t <x, c>
// Rounding moved each vector by at most `residual`, so a distance is within `moved` (the sum of both residuals) of that
// of the rounded vectors, and a product within residual_q (|b| + residual_x) + |a| residual_x. `error` adds the error
// of sums on tensor cores (candidate_window.hpp) and of the few f32 operations after them. A `reach` bounds the k-th
// smallest distance or key from above; vectors beyond it, allowing for the rounding of keys, are ruled out.

// Where vectors are stored as fp16 too, those for cosine are normalized (`unit`): the key is half of their squared
// distance, so that everything works as for distances, and fp16 is more precise the tighter a list is. A zero vector
// has the same key for every query as an orthogonal one; its term makes up for its missing squared norm. Queries are
// rounded to f32 after normalization, which moves them by kUnitMoved.
//
// Where codes store norms (kernels/codes/code_norm.hpp) a key is that of |x - x'|^2 + (norm - |x'|^2), which is not a
// distance: the second part goes into the vector's term, bounds are on products and squares, and reaches are squared.
//
// Where some vectors of a list are much shorter than others, close to a centre that the others are far from, bounds
// that hold for its longest vector are useless for the short ones. Bounds on distances are then split in two (by_row):
// the errors above are at most a fraction of |a|^2 plus the same fraction of |b|^2, since 2 |a| |b| is at most their
// sum; and with e = kRowShare and a vector's own residual r
//   (d + r)^2 <= (1 + e) (d^2 + r^2 / e).
// The vector's part, row_slack(), is in its term: added in the first pass, in which k estimates must be no less than
// the distances, and subtracted in the second, in which no estimate may be too large. The query's part is in its
// bounds, with 1 + e times the squared reaches; in the first pass, which compares values across lists, it is also in
// the estimates (with_own_error), and 1 + e is squared.
inline constexpr double kRowShare = 0x1p-10;  // about the ratio of residual to vector, with room for denormals

// What determines the keys and bounds of a search of lists.
struct ListKey {
  KeyKind kind;
  bool by_norm;  // l2 and squared_l2 only
  bool by_row;   // for distances: terms include the vectors' parts of bounds
  bool unit;     // cosine by distances of normalized vectors

  KITH_HOST_DEVICE constexpr ListKey(KeyKind given, bool norms = false, bool rows = false, bool units = false)
      : kind(given), by_norm(norms), by_row(rows), unit(units) {}
  // Whether products are of vectors minus their list's centre.
  KITH_HOST_DEVICE constexpr bool has_centred() const { return has_differences(kind) || unit; }
  // Whether estimates are squared distances, and reaches are distances.
  KITH_HOST_DEVICE constexpr bool has_distances() const { return has_centred() && !by_norm; }
  KITH_HOST_DEVICE constexpr double stretch() const { return by_row ? 1 + kRowShare : 1; }
};

// Maxima over all vectors of a list, in scaled units; infinite if a vector cannot be rounded to fp16.
struct ListMaxima {
  float norm;      // |b|; cosine: f |b|
  float residual;  // distance by which rounding moved a vector; cosine: f times that
  float factor;    // cosine: f; with norms: the value added to a square
};

inline constexpr double kUnitMoved = 0x1p-23;  // for a normalized vector

// The rounding error of eight f32 operations.
inline constexpr double kEstimateRounding = 0x1p-21;

// The largest error of a squared distance's estimate, relative to |a|^2 + |b|^2.
KITH_HOST_DEVICE inline double estimate_share(int64_t cols) {
  return (static_cast<double>(cols) + 16) * kSumLoss + kEstimateRounding * (1 + static_cast<double>(cols) / 16);
}

// A vector's part of the bounds on its squared distances, where they are split (by_row); from |b|^2 and its squared
// residual. Slightly larger, to cover the rounding of the term itself.
KITH_HOST_DEVICE inline double row_slack(int64_t cols, double squared_norm, double squared_residual) {
  return (estimate_share(cols) * squared_norm + squared_residual * (1 + 1 / kRowShare)) * (1 + 0x1p-10) + 0x1p-120;
}

// Properties of a query rounded to fp16 for one list.
struct RoundedQuery {
  double squared_norm;  // |a|^2, with a relative error up to 2^-20
  double residual;      // distance by which rounding moved the query
  double offset;        // s t <x, c>, for products and cosine
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

KITH_HOST_DEVICE inline PairBounds pair_bounds(const ListKey& key, int64_t cols, const ListMaxima& list,
                                               const RoundedQuery& query) {
  constexpr double kRounding = kEstimateRounding;
  const KeyKind kind = key.kind;
  const double norm = sqrt(query.squared_norm) * (1 + 0x1p-20);
  const double product = norm * list.norm;
  const double sum_loss = (static_cast<double>(cols) + 16) * kSumLoss * product;
  PairBounds bounds{1, 0, 0, 0, 1, 0};
  double error = 0;
  if (key.has_centred()) {
    const double squares = query.squared_norm + static_cast<double>(list.norm) * list.norm;
    // Sums start from |b|^2 / 2, on which each addition of the tensor cores may also make a relative error.
    error = 2 * sum_loss + kRounding * squares * (1 + static_cast<double>(cols) / 16) + 0x1p-20 * query.squared_norm;
    bounds.scale = 2;
    bounds.shift = static_cast<float>(query.squared_norm);
    if (key.by_row) {
      error = (estimate_share(cols) + 0x1p-20) * query.squared_norm * (1 + 0x1p-16);
      bounds.moved = static_cast<float>(query.residual * (1 + 0x1p-20));
      if (!(list.residual < 1e30f)) error = HUGE_VAL;  // a vector that cannot be rounded to fp16 has no term
    } else if (key.by_norm) {
      // The rounding of the query also affects its square.
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

// The bounds of the first pass if by_row: estimates are no less than the squared distances.
KITH_HOST_DEVICE inline PairBounds with_own_error(const PairBounds& bounds) {
  const double moved = static_cast<double>(bounds.moved) * bounds.moved * (1 + 1 / kRowShare);
  PairBounds folded = bounds;
  folded.shift += static_cast<float>((bounds.error + moved) * (1 + 0x1p-20));
  folded.error = 0;
  folded.moved = 0;
  return folded;
}

// Bounds on distances by lookup tables: f32 sums of squared distances between a query's parts, scaled and centred in
// f32, and the vectors' fp16 values. All terms of the sum are positive, so that the error of its additions is relative
// to it. Where tables hold products (scan_cut.hpp) the terms are |x - c|^2, that of the vector, |b|^2 + 2 <c, b>, and
// 2 <x, b>, with the middle subtracted from x and c: |c| is at most |x| + |x - c|, so that none of the sums exceeds
// `largest`.
struct TableNorms {
  double squared_norm;  // of the query minus the list's centre, scaled
  double far_norm;      // of the query minus the middle, scaled; 0 where tables hold distances
};
KITH_HOST_DEVICE inline PairBounds table_bounds(int64_t cols, int64_t parts, const ListMaxima& list,
                                                const TableNorms& query) {
  const double norm = sqrt(query.squared_norm) * (1 + 0x1p-20);
  const double largest = (norm + list.norm) * (norm + list.norm) + 4 * query.far_norm * list.norm;
  const double error = static_cast<double>(cols + parts + 16) * 0x1p-23 * largest;
  const double moved = (norm * 0x1p-23 + list.residual + 0x1p-60) * (1 + 0x1p-20);
  PairBounds bounds{1, 0, HUGE_VALF, HUGE_VALF, 1, 0};
  if (largest < 1e30 && error < 1e30) bounds.error = static_cast<float>(error * (1 + 0x1p-20));
  if (moved < 1e30) bounds.moved = static_cast<float>(moved);
  return bounds;
}

// Bounds on sums of looked-up products of a query with codewords, added to the vector's term, all in f32.
struct SumNorms {
  double squared_norm;  // of the scaled query
  double longest;       // sum of the largest codeword norm of each book, scaled
};
KITH_HOST_DEVICE inline PairBounds sum_bounds(const ListKey& key, int64_t cols, int64_t books, const ListMaxima& list,
                                              const SumNorms& query) {
  const double norm = sqrt(query.squared_norm) * (1 + 0x1p-20);
  const double product = norm * query.longest;
  // The rounding of products, of their sums, and of adding codewords.
  double error = product * static_cast<double>(2 * cols + 4 * books + 32) * 0x1p-23 + 0x1p-100;
  PairBounds bounds{1, 0, 0, 0, 1, 0};
  if (has_differences(key.kind)) {
    const double square = static_cast<double>(list.norm) * list.norm;
    const double term = key.by_norm ? static_cast<double>(list.factor) : square;
    // Terms that do not use norms are those of fp16 values.
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

// Upper and lower bounds on the true distance, or key, given an estimate.
KITH_HOST_DEVICE inline float upper_bound(const ListKey& key, const PairBounds& bounds, float estimate) {
  if (!key.has_distances()) {
    float upper = estimate + bounds.error;
    if (key.by_norm && upper < 0) upper = 0;  // keys are not negative
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

// The reach extended by the rounding of keys to f32, which can make a farther vector tie; in float64, since it may be
// infinite. `unit` is the scale of a distance, or of a key of products (s t).
KITH_HOST_DEVICE inline double reach_with_ties(const ListKey& key, double reach, double unit) {
  if (key.by_norm) {  // a square root has twice the relative error
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

// If keys may overflow f32, and so become equal, nothing can be ruled out.
KITH_HOST_DEVICE inline bool reach_in_range(const ListKey& key, double reach, double unit) {
  if (key.by_norm) return fabs(reach) < kLargestReach * unit * kLargestReach * unit;
  return key.kind == KeyKind::cosine || fabs(reach) < kLargestReach * unit;
}

// The largest value (estimate = scale * value + shift) of a vector within `reach`, which includes ties.
KITH_HOST_DEVICE inline float value_limit(const ListKey& key, const PairBounds& bounds, double reach) {
  double limit = key.has_distances() ? (reach + bounds.moved) * (reach + bounds.moved) * key.stretch() : reach;
  limit = (limit + static_cast<double>(bounds.error) - bounds.shift) / bounds.scale;
  limit += fabs(limit) * 0x1p-22;
  return limit < 1e38 ? static_cast<float>(limit) : HUGE_VALF;
}

struct DeviceListsView {
  KeyKind kind = KeyKind::l2;
  CodecView codec;
  bool residual = false;  // codes are of vectors minus their centre
  bool by_row = false;    // bounds are split, see ListKey
  bool unit = false;      // see ListKey; only for cosine, with vectors in fp16 (PreparedLists)
  int64_t lists = 1;
  const float* centres = nullptr;    // lists x cols; null for a single list without a centre
  const int64_t* offsets = nullptr;  // lists + 1
  const uint8_t* codes = nullptr;    // of the vectors, list by list
  const uint32_t* rows = nullptr;    // of the vectors, list by list
  int64_t count = 0;                 // of vectors
  const double* inverse_norms = nullptr;  // canonical, of each vector, only for cosine; null if not known

  // Whether fp16 values are of vectors minus their list's centre: because the codes are, or because the scan subtracts
  // it. Codewords are looked up as fp16 values, so nothing can be subtracted from them.
  KITH_HOST_DEVICE bool subtracts() const {
    const bool wanted = unit || (!residual && has_differences(kind));
    return wanted && centres != nullptr && !codec.format.copies_codewords();
  }
  // Whether keys are products with a factor per vector, as for cosine.
  KITH_HOST_DEVICE bool has_factors() const { return kind == KeyKind::cosine && !unit; }
  // What determines keys and their bounds.
  KITH_HOST_DEVICE ListKey key() const { return {kind, has_norm_keys(codec.format, kind), by_row, unit}; }
  KITH_HOST_DEVICE bool has_origin() const { return centres != nullptr && (residual || subtracts()); }
};

// In device memory; computed by launch_prepare_lists.
struct PreparedLists {
  float* largest = nullptr;    // of all values that are rounded to fp16: determines their scale
  ListMaxima* maxima = nullptr;  // of each list
  float* terms = nullptr;      // of each vector: |b|^2 / 2, adjusted by norms, or cosine's f; null for products
  uint16_t* table = nullptr;   // fp16 codewords, for 8-bit codes (scan_cut.hpp)
  uint16_t* halves = nullptr;  // fp16 of each vector, half_cols() apart: for codes that take long to decode
  float* upper_terms = nullptr;  // of each vector, with its part of the bounds added; null: bounds are per list
  float* lower_terms = nullptr;  // the same with that part subtracted
  double* inverse_norms = nullptr;  // canonical, of the stored vectors, for cosine's keys; or null
  float* squares = nullptr;  // of each codeword two numbers, |b|^2 and what rounding moved of it, squared; or null

  // The difference between a vector's estimates in the two passes, if by_row.
  KITH_HOST_DEVICE float estimates_apart(int64_t position) const {
    return 2 * (upper_terms[position] - lower_terms[position]) * (1 + 0x1p-20f);
  }

  // Columns padded to a multiple of 16 bytes.
  KITH_HOST_DEVICE static constexpr int64_t half_cols(int64_t cols) { return (cols + 7) / 8 * 8; }
  // All but looked-up codewords: sums of codewords take long to decode, scalar codes and stored bytes a few
  // instructions per value, fp16 and f32 a subtraction, and f32 is twice as much to read.
  static bool wants_halves(const CodeFormat& format) { return !format.copies_codewords(); }
  static bool has_terms(KeyKind kind) { return kind != KeyKind::inner_product; }
};

#if defined(__CUDACC__)
// Finds the list that holds a place, the last that begins no later, with all lanes of a warp: each step narrows the
// range to a 32nd.
template <typename Place>
__device__ inline int64_t list_of_warp(const Place* offsets, int64_t lists, Place place) {
  const auto lane = static_cast<int64_t>(threadIdx.x % 32);
  int64_t low = 0;
  int64_t high = lists;  // the list is before this one
  while (high - low > 1) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t mine = low + lane * step;
    const unsigned begun = __ballot_sync(0xFFFFFFFFu, mine < high && offsets[mine] <= place);
    low += (__popc(begun) - 1) * step;
    high = low + step < high ? low + step : high;
  }
  return low;
}

// The same by a single thread, given a range of lists that contains it.
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
