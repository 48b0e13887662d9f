// What searches of several parts find, in one order: places of all parts in one number, by (distance, row).
#pragma once

#include <kith/collection.hpp>

#include "collection/state.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kith {

inline constexpr int64_t kNoPlace = -1;

inline int64_t packed(size_t part, int64_t place) { return static_cast<int64_t>(part) << 32 | place; }
inline size_t part_in(int64_t packed_place) { return static_cast<size_t>(packed_place >> 32); }
inline int64_t place_in(int64_t packed_place) { return packed_place & 0xffffffff; }

// The order of results: nearer first, then the item that was added first.
class Order {
 public:
  explicit Order(const CollectionState& state)
      : state_(state), larger_(larger_is_nearer(state.params->metric)) {}
  bool operator()(float a, int64_t place_a, float b, int64_t place_b) const {
    if (a != b) return larger_ ? a > b : a < b;
    return row(place_a) < row(place_b);
  }
  float nothing() const {
    return larger_ ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  int64_t row(int64_t place) const { return state_.parts[part_in(place)].rows->row(place_in(place)); }

 private:
  const CollectionState& state_;
  bool larger_;
};

// Packed places become ids: numbers, or the rows of items whose ids are texts, which are returned.
std::vector<std::string> name_places(const CollectionState& state, int64_t* places, int64_t count,
                                     const Resources& resources);

}  // namespace kith
