// The types a vector's values can be stored in.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// f64 alone is no type that Kith computes with or stores: calls that take vectors narrow it to f32 (kith/view.hpp).
enum class DType : uint8_t { f32, f16, bf16, u8, i8, f64 };

// Bytes of one value.
KITH_EXPORT int64_t size_of(DType dtype);

// "f32", "f16", "bf16", "u8", "i8", "f64".
KITH_EXPORT std::string_view name_of(DType dtype);

// The other way round, of what is stored: all but f64. Throws InvalidArgument listing the names.
KITH_EXPORT DType parse_dtype(std::string_view name);

}  // namespace kith
