// Screens: vectors rounded to bytes and packed, which a processor with dot products of bytes multiplies four times as
// fast as f32. What a rounded product excludes, within its bounds, need not be computed any better.
//
// Cost: a byte for each value and a few floats for each vector.
#pragma once

#include "core/host_array.hpp"
#include "kernels/panels/rounded_panels.hpp"

#include <cstdint>

namespace kith {

// Of a base. Different panels may be filled at once.
class BaseScreen {
 public:
  BaseScreen() = default;
  // For `rows` rows, whole panels.
  BaseScreen(int64_t rows, int64_t cols, const Resources& resources);
  static int64_t bytes_for(int64_t rows, int64_t cols);

  // Makes a panel ready for its first `count` rows; the others stay empty.
  void clear_panel(int64_t panel, int64_t count);
  // Row `i` of a panel, as it is multiplied.
  void put(int64_t panel, int64_t i, const float* row);

  // With a term for each row (RoundedBase) and the largest norm in each panel.
  RoundedBase panels(const float* terms, const float* norms) const;
  int64_t bytes() const { return bytes_.bytes() + scales_.bytes() + sums_.bytes() + residuals_.bytes(); }

 private:
  int64_t cols_ = 0;
  int64_t width_ = 0;
  HostArray<int8_t> bytes_;
  HostArray<float> scales_;
  HostArray<int32_t> sums_;
  HostArray<float> residuals_;
};

// What RoundedQueries has of one query.
struct RoundedQueryTerms {
  float factor = 0;
  float constant = 0;
  float linear = 0;
  float quadratic = 0;
  float tilt = 0;
};
// The product is scaled by -2 where `differences` are wanted, else by -1.
RoundedQueryTerms rounded_query_terms(const RoundedVector& rounded, double squared_norm, int64_t cols,
                                      bool differences);

// Of queries. Different panels may be filled at once.
class QueryScreen {
 public:
  QueryScreen() = default;
  // For `count` queries, whole panels.
  QueryScreen(int64_t count, int64_t cols, const Resources& resources);
  static int64_t bytes_for(int64_t count, int64_t cols);

  // Takes a query as it is multiplied. The product is scaled by -2 where `differences` are wanted, else by -1.
  void put(int64_t query, const float* moved, double squared_norm, bool differences);
  // A query that only fills up a panel.
  void clear(int64_t query);

  // Those from `first`, the first of a panel, on.
  RoundedQueries panels(int64_t first, int64_t count, float* limits) const;

 private:
  int64_t cols_ = 0;
  int64_t width_ = 0;
  HostArray<int8_t> bytes_;
  HostArray<float> arrays_;
  // In arrays_: as RoundedQueries has them.
  float* factors_ = nullptr;
  float* constant_ = nullptr;
  float* linear_ = nullptr;
  float* quadratic_ = nullptr;
  float* tilt_ = nullptr;
};

}  // namespace kith
