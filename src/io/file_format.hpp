// Which format a file has: its extension, in lower case, determines it. Behind an HDF5 file's name "::" and a dataset
// may stand, since such a file holds many: "sift.hdf5::test".
#pragma once

#include "io/file_layout.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kith {

enum class FileFormat : uint8_t { fvecs, bvecs, ivecs, fbin, f16bin, bf16bin, u8bin, i8bin, ibin, npy, hdf5, idx };

struct FileName {
  std::string path;  // as it was given, for errors
  std::string file;  // without the dataset
  FileFormat format = FileFormat::fbin;
  std::string dataset;  // of HDF5; what is named or kDefaultDataset
};

// ann-benchmarks' name for the vectors to be searched.
inline constexpr std::string_view kDefaultDataset = "train";

// Throws InvalidArgument, listing the known extensions, or, of a .kith file, what loads it.
FileName parse_file_name(const std::string& path);

// The same of a file that is to be read: one that is not there is an IoError, whatever its extension.
FileName parse_name_to_read(const std::string& path);

// The path up to "::" and a dataset, where an HDF5 file is named so; else all of it, whatever its extension.
std::string without_dataset(const std::string& path);

// "fbin", "hdf5", ...
std::string_view name_of(FileFormat format);

// What the format holds; nothing where the file's header says.
std::optional<ElementType> element_of(FileFormat format);

}  // namespace kith
