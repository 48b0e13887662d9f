// Distances between vectors.
//
//   l2             the root of the sum of squared differences
//   sqeuclidean    that sum itself
//   inner_product  the product; the largest is nearest
//   cosine         1 - cos of the angle; 1 if either vector is zero
//   l1             the sum of absolute differences
//   linf           the largest absolute difference
//   chi_square     the sum of (x - y)^2 / (x + y), with 0 / 0 = 0; negative values are refused
//   hamming        the number of differing bits; u8 rows only
//
// FAISS's and hnswlib's L2 is sqeuclidean; hnswlib's "ip" is 1 - inner_product.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

enum class Metric : uint8_t { l2, sqeuclidean, inner_product, cosine, l1, linf, chi_square, hamming };

KITH_EXPORT std::string_view name_of(Metric metric);

// Also euclidean, manhattan, cityblock, chebyshev, ip, dot and l2sq. InvalidArgument lists the names.
KITH_EXPORT Metric parse_metric(std::string_view name);

// Whether larger values are nearer: for inner_product only.
constexpr bool larger_is_nearer(Metric metric) { return metric == Metric::inner_product; }

}  // namespace kith
