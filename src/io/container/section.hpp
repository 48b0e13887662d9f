// The .kith container: named arrays in one file. docs/file-formats.md has the bytes.
//
//   header    64 bytes: magic, version, number of sections, length of the file, kind, hash of header and table
//   table     96 bytes a section: name, type, shape, place, bytes, XXH3-64 of the bytes
//   sections  in the order of the table, each at the next multiple of 4 KiB; zeros between them
//
// There is one way to write given sections, so the same content is the same bytes everywhere, and a reader can refuse
// every other. Version 2 has the same layout; its text "about" may hold lines that readers of version 1 do not know.
// What needs none of them is written as version 1.
#pragma once

#include <kith/dtype.hpp>

#include "core/byte_size.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

inline constexpr std::string_view kContainerMagic("\x89KITH\r\n\x1a", 8);
inline constexpr uint32_t kFirstContainerVersion = 1;
inline constexpr uint32_t kContainerVersion = 2;
inline constexpr int64_t kSectionAlignment = 4096;
inline constexpr int64_t kContainerHeaderBytes = 64;
inline constexpr int64_t kSectionEntryBytes = 96;
inline constexpr size_t kMostAxes = 4;
inline constexpr size_t kSectionNameBytes = 32;
inline constexpr size_t kContainerKindBytes = 16;

// The numbers stand in files.
enum class SectionType : uint32_t { text = 1, u8 = 2, i8 = 3, f16 = 4, bf16 = 5, f32 = 6, u32 = 7, i64 = 8, f64 = 9 };

// 0: no such type.
constexpr int64_t size_of(SectionType type) {
  switch (type) {
    case SectionType::text:
    case SectionType::u8:
    case SectionType::i8: return 1;
    case SectionType::f16:
    case SectionType::bf16: return 2;
    case SectionType::f32:
    case SectionType::u32: return 4;
    case SectionType::i64:
    case SectionType::f64: return 8;
  }
  return 0;
}

constexpr std::string_view name_of(SectionType type) {
  constexpr std::array<std::string_view, 10> kNames{"?", "text", "u8", "i8", "f16", "bf16", "f32", "u32", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

constexpr SectionType section_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return SectionType::f16;
    case DType::bf16: return SectionType::bf16;
    case DType::u8: return SectionType::u8;
    case DType::i8: return SectionType::i8;
    default: return SectionType::f32;
  }
}

struct Section {
  std::string name;
  SectionType type = SectionType::u8;
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t bytes = 0;
  uint64_t hash = 0;
};

// Bytes of an array of that shape; INT64_MAX if it would overflow.
inline int64_t section_bytes(SectionType type, const std::vector<int64_t>& shape) {
  int64_t bytes = size_of(type);
  for (const int64_t axis : shape) bytes = saturating_multiply(bytes, axis);
  return bytes;
}

// Where the next section may begin, given where the last one ends; INT64_MAX where there is no such place.
constexpr int64_t next_section_offset(int64_t end) {
  return end > INT64_MAX - kSectionAlignment ? INT64_MAX
                                             : (end + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

// Lower-case letters, digits, dots and underscores, and at least one.
constexpr bool is_section_name(std::string_view name) {
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_')) return false;
  }
  return !name.empty();
}

}  // namespace kith
