// The types of a vector's values.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// f64 is accepted as input only: calls that take vectors narrow it to f32 (kith/view.hpp).
enum class DType : uint8_t { f32, f16, bf16, u8, i8, f64 };

// Bytes of one value.
KITH_EXPORT int64_t size_of(DType dtype);

// "f32", "f16", "bf16", "u8", "i8", "f64".
KITH_EXPORT std::string_view name_of(DType dtype);

// Parses the name of a stored dtype, all but f64. InvalidArgument that lists the names for any other.
KITH_EXPORT DType parse_dtype(std::string_view name);

}  // namespace kith
