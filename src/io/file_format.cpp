#include "io/file_format.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <array>

namespace kith {
namespace {

struct FormatTraits {
  FileFormat format;
  std::string_view name;
  std::string_view content;
  std::optional<ElementType> element;
};

constexpr std::array<FormatTraits, 12> kFormats{{
    {FileFormat::fvecs, "fvecs", "f32 vectors", ElementType::f32},
    {FileFormat::bvecs, "bvecs", "u8 vectors", ElementType::u8},
    {FileFormat::ivecs, "ivecs", "int32 ids", ElementType::i32},
    {FileFormat::fbin, "fbin", "f32 vectors", ElementType::f32},
    {FileFormat::f16bin, "f16bin", "f16 vectors", ElementType::f16},
    {FileFormat::bf16bin, "bf16bin", "bf16 vectors", ElementType::bf16},
    {FileFormat::u8bin, "u8bin", "u8 vectors", ElementType::u8},
    {FileFormat::i8bin, "i8bin", "i8 vectors", ElementType::i8},
    {FileFormat::ibin, "ibin", "int32 ids", ElementType::i32},
    {FileFormat::npy, "npy", "numpy arrays", std::nullopt},
    {FileFormat::hdf5, "hdf5", "HDF5 datasets", std::nullopt},
    {FileFormat::idx, "idx", "images in IDX", std::nullopt},
}};

struct Ending {
  std::string_view text;
  FileFormat format;
};

constexpr std::array<Ending, 18> kEndings{{
    {".fvecs", FileFormat::fvecs},
    {".bvecs", FileFormat::bvecs},
    {".ivecs", FileFormat::ivecs},
    {".fbin", FileFormat::fbin},
    {".f16bin", FileFormat::f16bin},
    {".bf16bin", FileFormat::bf16bin},
    {".u8bin", FileFormat::u8bin},
    {".i8bin", FileFormat::i8bin},
    {".ibin", FileFormat::ibin},
    {".npy", FileFormat::npy},
    {".hdf5", FileFormat::hdf5},
    {".h5", FileFormat::hdf5},
    {"idx1-ubyte", FileFormat::idx},
    {"idx1-ubyte.gz", FileFormat::idx},
    {"idx2-ubyte", FileFormat::idx},
    {"idx2-ubyte.gz", FileFormat::idx},
    {"idx3-ubyte", FileFormat::idx},
    {"idx3-ubyte.gz", FileFormat::idx},
}};

constexpr std::string_view kDatasetMark = "::";

const FormatTraits& traits_of(FileFormat format) { return kFormats[static_cast<size_t>(format)]; }

std::optional<FileFormat> format_by_extension(std::string_view file) {
  for (const Ending& ending : kEndings) {
    if (file.ends_with(ending.text)) return ending.format;
  }
  return std::nullopt;
}

[[noreturn]] void throw_unknown_ending(const std::string& path) {
  if (path.ends_with(".kith")) {
    throw InvalidArgument(fmt::format(
        "'{}' is a .kith file: an index or a quantizer, not vectors or ids; an index is loaded by kith.load "
        "(C++: kith::Index::load), searched by kith index search and described by kith index inspect",
        path));
  }
  std::string known;
  for (const Ending& ending : kEndings) {
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", ending.text, traits_of(ending.format).content);
  }
  throw InvalidArgument(fmt::format("the file extension of '{}' is unknown; known extensions are: {}", path, known));
}

}  // namespace

FileName parse_file_name(const std::string& path) {
  // A file may have "::" in its name, and so may a dataset: the first behind the ending of an HDF5 file is the mark.
  for (size_t mark = 0; (mark = path.find(kDatasetMark, mark)) != std::string::npos; ++mark) {
    const std::string file = path.substr(0, mark);
    if (format_by_extension(file) == FileFormat::hdf5) {
      const std::string dataset = path.substr(mark + kDatasetMark.size());
      if (dataset.empty()) {
        throw InvalidArgument(fmt::format("'{}' names no dataset after '{}'; write {}{}{}, for instance", path,
                                          kDatasetMark, file, kDatasetMark, kDefaultDataset));
      }
      return {path, file, FileFormat::hdf5, dataset};
    }
  }
  const std::optional<FileFormat> format = format_by_extension(path);
  if (!format) throw_unknown_ending(path);
  return {path, path, *format, *format == FileFormat::hdf5 ? std::string(kDefaultDataset) : ""};
}

std::string_view name_of(FileFormat format) { return traits_of(format).name; }
std::optional<ElementType> element_of(FileFormat format) { return traits_of(format).element; }

}  // namespace kith
