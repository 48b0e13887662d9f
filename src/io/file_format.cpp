#include "io/file_format.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <array>

namespace kith {
namespace {

struct FormatTraits {
  FileFormat format;
  std::string_view ending;
  std::string_view content;
  std::optional<ElementType> element;
};

constexpr std::array<FormatTraits, 4> kFormats{{
    {FileFormat::fbin, ".fbin", "f32 vectors", ElementType::f32},
    {FileFormat::u8bin, ".u8bin", "u8 vectors", ElementType::u8},
    {FileFormat::ibin, ".ibin", "int32 ids", ElementType::i32},
    {FileFormat::npy, ".npy", "numpy arrays", std::nullopt},
}};

const FormatTraits& traits_of(FileFormat format) { return kFormats[static_cast<size_t>(format)]; }

}  // namespace

FileFormat format_of(const std::string& path) {
  std::string known;
  for (const FormatTraits& traits : kFormats) {
    if (path.ends_with(traits.ending)) return traits.format;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", traits.ending, traits.content);
  }
  throw InvalidArgument(
      fmt::format("the format of '{}' cannot be told from its name; known endings are: {}", path, known));
}

std::string_view ending_of(FileFormat format) { return traits_of(format).ending; }
std::optional<ElementType> element_of(FileFormat format) { return traits_of(format).element; }

}  // namespace kith
