// Random pairs of rows, on which a user's metric is checked to be symmetric.
#pragma once

#include <cstdint>
#include <utility>

namespace kith {

class SymmetricPairs {
 public:
  static constexpr int64_t kCount = 256;

  // Pairs of `rows` rows, at least one.
  SymmetricPairs(int64_t rows, uint64_t seed) : rows_(rows), seed_(seed) {}

  std::pair<uint32_t, uint32_t> pair(int64_t i) const;
  // InvalidArgument where the distances of pair i differ, naming its rows.
  void check(int64_t i, float there, float back) const;

 private:
  int64_t rows_;
  uint64_t seed_;
};

}  // namespace kith
