// The types a vector's values can be stored in.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

enum class DType : uint8_t { f32, f16, bf16, u8, i8 };

// Bytes of one value.
KITH_EXPORT int64_t size_of(DType dtype);

// "f32", "f16", "bf16", "u8", "i8".
KITH_EXPORT std::string_view name_of(DType dtype);

// The other way round; throws InvalidArgument listing the names.
KITH_EXPORT DType parse_dtype(std::string_view name);

}  // namespace kith
