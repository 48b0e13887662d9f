#include "io/file_format.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kith {
namespace {

struct Ending {
  std::string_view text;
  FileFormat format;
  std::string_view content;
  std::optional<ElementType> element = std::nullopt;
};

constexpr std::array<Ending, 18> kEndings{{
    {".fvecs", FileFormat::fvecs, "f32 vectors", ElementType::f32},
    {".bvecs", FileFormat::bvecs, "u8 vectors", ElementType::u8},
    {".ivecs", FileFormat::ivecs, "int32 ids", ElementType::i32},
    {".fbin", FileFormat::fbin, "f32 vectors", ElementType::f32},
    {".f16bin", FileFormat::f16bin, "f16 vectors", ElementType::f16},
    {".bf16bin", FileFormat::bf16bin, "bf16 vectors", ElementType::bf16},
    {".u8bin", FileFormat::u8bin, "u8 vectors", ElementType::u8},
    {".i8bin", FileFormat::i8bin, "i8 vectors", ElementType::i8},
    {".ibin", FileFormat::ibin, "int32 ids", ElementType::i32},
    {".npy", FileFormat::npy, "numpy arrays"},
    {".hdf5", FileFormat::hdf5, "HDF5 datasets"},
    {".h5", FileFormat::hdf5, "HDF5 datasets"},
    {"idx1-ubyte", FileFormat::idx, "images in IDX"},
    {"idx1-ubyte.gz", FileFormat::idx, "images in IDX"},
    {"idx2-ubyte", FileFormat::idx, "images in IDX"},
    {"idx2-ubyte.gz", FileFormat::idx, "images in IDX"},
    {"idx3-ubyte", FileFormat::idx, "images in IDX"},
    {"idx3-ubyte.gz", FileFormat::idx, "images in IDX"},
}};

constexpr std::string_view kDatasetMark = "::";

const Ending& first_ending_of(FileFormat format) {
  return *std::find_if(kEndings.begin(), kEndings.end(), [&](const Ending& one) { return one.format == format; });
}

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
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", ending.text, ending.content);
  }
  throw InvalidArgument(fmt::format("the file extension of '{}' is unknown; known extensions are: {}", path, known));
}

}  // namespace

std::string without_dataset(const std::string& path) {
  // A file may have "::" in its name, and so may a dataset: the first behind the ending of an HDF5 file is the mark.
  for (size_t mark = 0; (mark = path.find(kDatasetMark, mark)) != std::string::npos; ++mark) {
    if (format_by_extension(std::string_view(path).substr(0, mark)) == FileFormat::hdf5) return path.substr(0, mark);
  }
  return path;
}

FileName parse_file_name(const std::string& path) {
  const std::string file = without_dataset(path);
  if (file.size() < path.size()) {
    const std::string dataset = path.substr(file.size() + kDatasetMark.size());
    if (dataset.empty()) {
      throw InvalidArgument(fmt::format("'{}' names no dataset after '{}'; write {}{}{}, for instance", path,
                                        kDatasetMark, file, kDatasetMark, kDefaultDataset));
    }
    return {path, file, FileFormat::hdf5, dataset};
  }
  const std::optional<FileFormat> format = format_by_extension(path);
  if (!format) throw_unknown_ending(path);
  return {path, path, *format, *format == FileFormat::hdf5 ? std::string(kDefaultDataset) : ""};
}

std::string_view name_of(FileFormat format) {
  return format == FileFormat::idx ? "idx" : first_ending_of(format).text.substr(1);
}
std::optional<ElementType> element_of(FileFormat format) { return first_ending_of(format).element; }

}  // namespace kith
