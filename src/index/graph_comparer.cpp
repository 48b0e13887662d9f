#include "index/graph_comparer.hpp"

#include "core/ordered_key.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>

namespace kith {

GraphComparer::GraphComparer(const GraphVectors& vectors, const WalkCoder& coder, const Shape& shape,
                             const Resources& resources)
    : vectors_(vectors),
      coder_(coder),
      kind_(key_kind(shape.metric)),
      candidates_(shape.candidates),
      k_(shape.k),
      cols_(coder.cols()),
      room_(shape.candidates + shape.k + GraphVectors::kTogether),
      queries_(shape.slots * cols_, "queries of a walk", resources),
      floats_(shape.slots * vectors.float_room(), "candidates of a walk", resources),
      found_(shape.slots * room_, "candidates of a walk", resources) {}

std::pair<const uint64_t*, int64_t> GraphComparer::compare(const MatrixView& queries, int64_t query, const Beam& places,
                                                           const PlaceRows& rows, const uint64_t* kept,
                                                           int slot) const {
  if (coder_.keys_are_exact(queries.dtype())) return by_exact_keys(places, rows, kept, slot);
  float* const own = queries_.data() + slot * cols_;
  widen_row(queries, query, own);
  CanonicalQuery with{own};
  canonical_inverse_norms_cpu(MatrixView(own, 1, cols_), &with.inverse_norm);
  uint64_t* const found = found_.data() + slot * room_;
  float* const floats = floats_.data() + slot * vectors_.float_room();
  int64_t count = 0;
  uint32_t some[GraphVectors::kTogether];
  float keys[GraphVectors::kTogether];
  int64_t waiting = 0;
  const auto compare_waiting = [&] {
    vectors_.keys(kind_, with, some, waiting, floats, keys);
    if (count + waiting > room_) {  // many rows at one place: keep the first k
      std::nth_element(found, found + k_, found + count);
      count = k_;
    }
    for (int64_t i = 0; i < waiting; ++i) found[count++] = pack_neighbor(ordered_key(keys[i]), some[i]);
    waiting = 0;
  };
  // Finding a row takes three dependent reads; each step prefetches the next one for all places.
  const int64_t looked_at = std::min(places.size(), candidates_);
  for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_offset(places.place(i));
  for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_row(places.place(i));
  int64_t taken = 0;
  for (int64_t i = 0; i < places.size() && taken < candidates_; ++i) {
    rows.visit(places.place(i), [&](uint32_t row) {
      if (kept != nullptr && !keeps(kept, row)) return;
      vectors_.prefetch(row);
      some[waiting++] = row;
      ++taken;
      if (waiting == GraphVectors::kTogether) compare_waiting();
    });
  }
  compare_waiting();
  const int64_t first = std::min(k_, count);
  std::partial_sort(found, found + first, found + count);
  return {found, first};
}

// For walks whose keys are the squared distances: no vector is read, and candidates end at one that is farther than k
// others.
std::pair<const uint64_t*, int64_t> GraphComparer::by_exact_keys(const Beam& places, const PlaceRows& rows,
                                                                 const uint64_t* kept, int slot) const {
  uint64_t* const found = found_.data() + slot * room_;
  const int64_t looked_at = std::min(places.size(), k_);
  for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_offset(places.place(i));
  for (int64_t i = 0; i < looked_at; ++i) rows.prefetch_row(places.place(i));
  int64_t count = 0;
  int64_t taken = 0;
  uint32_t largest = 0;  // of the first k
  for (int64_t i = 0; i < places.size() && taken < candidates_; ++i) {
    const auto square = static_cast<double>(static_cast<int32_t>(places.key(i) ^ kSignBit));
    const uint32_t key = ordered_key(kind_ == KeyKind::l2 ? canonical_key<KeyKind::l2>(square, 0, 0)
                                                          : canonical_key<KeyKind::squared_l2>(square, 0, 0));
    if (taken < k_) {
      largest = key;
    } else if (key > largest) {
      break;
    }
    rows.visit(places.place(i), [&](uint32_t row) {
      if (kept != nullptr && !keeps(kept, row)) return;
      if (count == room_) {  // many rows at one place: keep the first k
        std::nth_element(found, found + k_, found + count);
        count = k_;
      }
      found[count++] = pack_neighbor(key, row);
      ++taken;
    });
  }
  const int64_t first = std::min(k_, count);
  std::partial_sort(found, found + first, found + count);
  return {found, first};
}

}  // namespace kith
