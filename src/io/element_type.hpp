// What the values in a file can be: vectors are f32 or u8, ids are i32 or i64.
#pragma once

#include <kith/dtype.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kith {

static_assert(std::endian::native == std::endian::little,
              "the files hold little-endian values and are read as they lie");

enum class ElementType : uint8_t { f32, u8, i32, i64 };

struct ElementTraits {
  ElementType element;
  std::string_view name;
  std::string_view npy_name;  // numpy's name, as it stands in an .npy header
  int64_t bytes;
  std::optional<DType> dtype;  // of vectors; ids have none
};

inline constexpr std::array<ElementTraits, 4> kElementTraits{{{ElementType::f32, "f32", "<f4", 4, DType::f32},
                                                              {ElementType::u8, "u8", "|u1", 1, DType::u8},
                                                              {ElementType::i32, "i32", "<i4", 4, std::nullopt},
                                                              {ElementType::i64, "i64", "<i8", 8, std::nullopt}}};

constexpr const ElementTraits& traits_of(ElementType element) { return kElementTraits[static_cast<size_t>(element)]; }

}  // namespace kith
