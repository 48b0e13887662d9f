// What the values in a file can be: vectors have one of Kith's dtypes, ids are i32 or i64.
#pragma once

#include <kith/dtype.hpp>
#include <kith/error.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kith {

static_assert(std::endian::native == std::endian::little,
              "the files hold little-endian values and are read as they lie");

enum class ElementType : uint8_t { f32, f16, bf16, u8, i8, i32, i64 };

struct ElementTraits {
  ElementType element;
  std::string_view name;
  std::string_view npy_name;  // numpy's name, as it stands in an .npy header; none for bf16, which numpy lacks
  int64_t bytes;
  std::optional<DType> dtype;  // of vectors; ids have none
};

inline constexpr std::array<ElementTraits, 7> kElementTraits{{
    {ElementType::f32, "f32", "<f4", 4, DType::f32},
    {ElementType::f16, "f16", "<f2", 2, DType::f16},
    {ElementType::bf16, "bf16", "", 2, DType::bf16},
    {ElementType::u8, "u8", "|u1", 1, DType::u8},
    {ElementType::i8, "i8", "|i1", 1, DType::i8},
    {ElementType::i32, "i32", "<i4", 4, std::nullopt},
    {ElementType::i64, "i64", "<i8", 8, std::nullopt},
}};

constexpr const ElementTraits& traits_of(ElementType element) { return kElementTraits[static_cast<size_t>(element)]; }

// The element that holds vectors of a dtype.
constexpr ElementType element_of(DType dtype) {
  for (const ElementTraits& traits : kElementTraits) {
    if (traits.dtype == dtype) return traits.element;
  }
  throw InvalidArgument("no file of vectors holds f64 values; give them as f32");
}

}  // namespace kith
