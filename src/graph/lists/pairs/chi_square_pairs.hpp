// Pairs that features leave open (chi_square_features.hpp): their chi-square distances in f32 decide which are handed
// out.
//
// A value below is that of features: a squared distance, no larger than the key but for its rounding.
#pragma once

#include "graph/lists/pairs/first_values.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/pairs/pair_scan.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace kith {

// The limit of a side that no pair matters to.
inline constexpr float kNothingMatters = std::numeric_limits<float>::lowest();

class ChiSquarePairs {
 public:
  // For floats. The collection must outlive it.
  explicit ChiSquarePairs(const PairRows& rows);

  // As PairScan's.
  void set_rows(const uint32_t* rows) { rows_ = rows; }
  void set_queries(const uint32_t* rows) { queries_ = rows; }

  // The largest value of a pair whose key is this one.
  float largest_value(float key) const;

  // Some rows beside a query, those whose `sides` are not 0: hands out what may be within its limit, or within theirs.
  struct Limits {
    float query = 0;
    const float* rows = nullptr;  // by place; or kNothingMatters, as for the query
  };
  void hand_out(int64_t query, int64_t first_row, const uint8_t* sides, int64_t count, const Limits& limits,
                PairHits& hits) const;

  // Whose values the `kept`-th of `values` are, within `error` and less an offset: hands out its first. False where
  // that cannot be told, and any row may be one.
  struct Kept {
    int64_t query = 0;
    int64_t kept = 0;
    float error = 0;
    float offset = 0;
  };
  bool pick_first(const Kept& of, int64_t row_count, FirstValues<float>& values, PairFirsts& firsts);

 private:
  const float* values_of(uint32_t place) const;
  // Bounds of a key by its distance in f32.
  float below(float distance) const { return distance - distance * relative_ - underflow_; }
  float above(float distance) const { return distance + distance * relative_ + underflow_; }
  // Turns the values of a query and the rows at their places into keys.
  void put_distances(int64_t query, int64_t count, FirstValues<float>& values);

  const PairRows& all_;
  const float relative_;
  const float underflow_;
  const uint32_t* rows_ = nullptr;
  const uint32_t* queries_ = nullptr;
  std::vector<const float*> near_;
  std::vector<float> sorted_;
};

}  // namespace kith
