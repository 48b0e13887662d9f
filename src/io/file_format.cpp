#include "io/file_format.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kith {
namespace {

struct Ending {
  std::string_view text;
  FileFormat format;
  std::optional<ElementType> element = std::nullopt;
};

constexpr std::array<Ending, 18> kEndings{{
    {".fvecs", FileFormat::fvecs, ElementType::f32},
    {".bvecs", FileFormat::bvecs, ElementType::u8},
    {".ivecs", FileFormat::ivecs, ElementType::i32},
    {".fbin", FileFormat::fbin, ElementType::f32},
    {".f16bin", FileFormat::f16bin, ElementType::f16},
    {".bf16bin", FileFormat::bf16bin, ElementType::bf16},
    {".u8bin", FileFormat::u8bin, ElementType::u8},
    {".i8bin", FileFormat::i8bin, ElementType::i8},
    {".ibin", FileFormat::ibin, ElementType::i32},
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
        "(C++: kith::Index::load), searched by kith index search, described by kith index inspect and made FAISS's by "
        "kith index convert",
        path));
  }
  for (const std::string_view other :
       {".csv", ".tsv", ".txt", ".npz", ".parquet", ".arrow", ".feather", ".pkl", ".pt"}) {
    if (!path.ends_with(other)) continue;
    const bool taken = other != ".arrow" && other != ".feather" && other != ".pkl" && other != ".pt";
    throw InvalidArgument(fmt::format("the file extension of '{}' is unknown: {}", path,
                                      taken ? fmt::format("kith convert reads {} and writes .npy or .fbin", other)
                                            : "save the array with numpy.save as .npy"));
  }
  throw InvalidArgument(
      fmt::format("the file extension of '{}' is unknown; known extensions are: .npy, .hdf5 and .h5, .fbin .f16bin "
                  ".bf16bin .u8bin .i8bin .ibin, .fvecs .bvecs .ivecs, idx3-ubyte[.gz]",
                  path));
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

FileName parse_name_to_read(const std::string& path) {
  try {
    return parse_file_name(path);
  } catch (const InvalidArgument&) {
    if (path.find('\0') == std::string::npos && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
      throw_io_error("open", path, ENOENT);
    }
    throw;
  }
}

std::string_view name_of(FileFormat format) {
  return format == FileFormat::idx ? "idx" : first_ending_of(format).text.substr(1);
}
std::optional<ElementType> element_of(FileFormat format) { return first_ending_of(format).element; }

}  // namespace kith
