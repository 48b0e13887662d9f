// How far apart two vectors are.
//
//   l2             the root of the sum of squared differences
//   sqeuclidean    that sum itself
//   inner_product  the product, largest first
//   cosine         1 - cos of the angle; 1 where either vector is zero
//   l1             the sum of absolute differences
//   linf           the largest absolute difference
//   chi_square     the sum of (x - y)^2 / (x + y), with 0 / 0 = 0; negative values are refused
//   hamming        the number of bits that differ; u8 rows only
//
// What FAISS and hnswlib call L2 is sqeuclidean here; hnswlib's "ip" is 1 - inner_product.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

enum class Metric : uint8_t { l2, sqeuclidean, inner_product, cosine, l1, linf, chi_square, hamming };

KITH_EXPORT std::string_view name_of(Metric metric);

// Understands euclidean, manhattan, cityblock, chebyshev, ip, dot and l2sq too. Throws InvalidArgument listing the names.
KITH_EXPORT Metric parse_metric(std::string_view name);

// Whether a nearer neighbour has a larger value (inner_product alone).
constexpr bool larger_is_nearer(Metric metric) { return metric == Metric::inner_product; }

}  // namespace kith
