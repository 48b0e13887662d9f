// The levels that a byte of a norm stands for (CodeNorm::qint8 and cqint8), as trained values hold them, behind the
// codebooks: the least and the largest norm, between which 256 levels lie in the middle of equal steps; or the levels
// themselves, by k-means of the norms.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Of the values behind the codebooks.
constexpr int64_t norm_value_count(CodeNorm norm) {
  return norm == CodeNorm::qint8 ? 2 : norm == CodeNorm::cqint8 ? kNormLevels : 0;
}

// The levels of a format's values; none where it has none.
std::vector<float> norm_levels(const CodeFormat& format, const std::vector<float>& values);

// Norms to the values of a kind of them. For cqint8: Lloyd's iterations over the sorted norms, from levels at equal
// ranks and at equal steps in turn; they ascend.
std::vector<float> train_norm_values(CodeNorm norm, std::vector<float> norms);

}  // namespace kith
