// The vectors of a search graph's nodes, and their keys to a query.
//
// Places are the nodes of a search graph. Each has a code of signed bytes, or of four bits per column that encode such
// (kernels/distance/nibble_keys_cpu.hpp), or, for metrics without codes, the values of its row. A key is a u32 that
// ascends with distance: an integer sum over codes with its sign bit flipped, or a canonical key
// (core/ordered_key.hpp). So a walk compares (key, place) as integers, with the same result on every device.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/byte_keys_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/nibble_keys_cpu.hpp"
#include "rows/stored_row.hpp"

#include <cstdint>

namespace kith {

enum class WalkKind : uint8_t {
  squares,    // codes, by the squared distance
  products,   // codes, by the negative product
  canonical,  // values, by the key that is reported
};

struct WalkRows {
  WalkKind kind = WalkKind::squares;
  KeyKind key = KeyKind::l2;  // of canonical
  MatrixView values;          // codes: i8, padded as byte_keys_cpu.hpp requires
  bool packed = false;        // four-bit codes; `values` has their bytes

  int64_t count() const { return values.rows(); }
  int64_t row_bytes() const { return values.row_stride() * size_of(values.dtype()); }
  WalkRows with(const MatrixView& others) const { return {kind, key, others, packed}; }
  // The padded number of columns of a code.
  int64_t code_columns() const { return packed ? 2 * row_bytes() : row_bytes(); }
};

inline constexpr uint32_t kNoWalkPlace = 0xFFFFFFFFU;

struct WalkQuery {
  ByteKeyQuery code;
  CanonicalQuery canonical;
  uint32_t hidden = kNoWalkPlace;  // a place that the walk ignores
};

inline constexpr uint32_t kSignBit = 0x80000000U;

// Whether keys are proportional to squared distances, which pruning compares.
inline bool keys_are_squares(const WalkRows& rows) {
  return rows.kind != WalkKind::canonical || rows.key == KeyKind::squared_l2 || rows.key == KeyKind::cosine;
}

// The numeric value of a key; exact.
KITH_HOST_DEVICE inline double value_of_key(WalkKind kind, uint32_t key) {
  if (kind == WalkKind::canonical) return static_cast<double>(key_of_ordered(key));
  return static_cast<double>(static_cast<int32_t>(key ^ kSignBit));
}

// A place as a query; `floats` has room for the columns of `values`, and is used if codes are not bytes.
inline WalkQuery query_of_place(const WalkRows& rows, int64_t place, float* floats) {
  WalkQuery query;
  if (rows.packed) {
    auto* const bytes = reinterpret_cast<int8_t*>(floats);
    unpack_nibbles(reinterpret_cast<const int8_t*>(rows.values.row(place)), rows.code_columns(), bytes);
    query.code.bytes = bytes;
    return query;
  }
  if (rows.kind != WalkKind::canonical) {
    query.code.bytes = reinterpret_cast<const int8_t*>(rows.values.row(place));
    return query;
  }
  query.canonical.values = floats_of(rows.values, place, floats);
  canonical_inverse_norms_cpu(MatrixView(query.canonical.values, 1, rows.values.cols()), &query.canonical.inverse_norm);
  return query;
}

// The squared norm of the byte code of a place.
inline uint32_t squared_code_norm(const WalkRows& rows, int64_t place) {
  const auto* const code = reinterpret_cast<const int8_t*>(rows.values.row(place));
  uint32_t norm = 0;
  for (int64_t c = 0; c < rows.row_bytes(); ++c) norm += static_cast<uint32_t>(code[c] * code[c]);
  return norm;
}

// Computes the keys of a query to these places.
inline void walk_keys(const WalkRows& rows, const WalkQuery& query, const uint32_t* places, int64_t count,
                      uint32_t* keys) {
  if (rows.kind == WalkKind::canonical) {
    auto* const floats = reinterpret_cast<float*>(keys);
    canonical_keys_cpu(rows.key, query.canonical, rows.values, places, count, floats);
    for (int64_t i = 0; i < count; ++i) keys[i] = ordered_key(floats[i]);
    return;
  }
  const ByteKeyKind kind = rows.kind == WalkKind::squares ? ByteKeyKind::squares : ByteKeyKind::products;
  const ByteKeyRows codes{static_cast<const int8_t*>(rows.values.data()), rows.values.row_stride()};
  (rows.packed ? nibble_keys_cpu : byte_keys_cpu)(kind, query.code, codes, places, count,
                                                  reinterpret_cast<int32_t*>(keys));
  for (int64_t i = 0; i < count; ++i) keys[i] ^= kSignBit;
}

}  // namespace kith
