// Quantizers by the names that factory strings use, and their .kith files (docs/file-formats.md).
#pragma once

#include <kith/export.hpp>
#include <kith/local_search_quantizer.hpp>
#include <kith/product_quantizer.hpp>
#include <kith/residual_quantizer.hpp>
#include <kith/resources.hpp>
#include <kith/scalar_quantizer.hpp>
#include <kith/vector_quantizer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace kith {

using Quantizer = std::variant<ProductQuantizer, ScalarQuantizer, LocalSearchQuantizer, ResidualQuantizer>;

// "PQ16", "PQ32x4", "SQ8", "SQ6", "SQ4", "SQfp16", "LSQ8x8" or "RQ8x8"; InvalidArgument for any other name.
KITH_EXPORT Quantizer make_quantizer(std::string_view name, uint64_t seed = 0, bool check_finite = true);
KITH_EXPORT std::string name_of(const Quantizer& quantizer);

// InvalidState for an untrained one. Written to a temporary file, which is synced and renamed.
KITH_EXPORT void save_quantizer(const VectorQuantizer& quantizer, const std::string& path,
                                const Resources& resources = Resources());
// InvalidArgument for a file of something else, CorruptFile for a damaged one.
KITH_EXPORT Quantizer load_quantizer(const std::string& path, const Resources& resources = Resources());

}  // namespace kith
