// What a file of vectors or ids is, told from its name and header without reading its values.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kith {

enum class FileContent : uint8_t { vectors, ids };

struct FileInfo {
  std::string format;  // "fbin", "npy", "hdf5", ...
  FileContent content = FileContent::vectors;
  std::string dtype;  // as it is stored: "f32", "f16", "bf16", "u8", "i8"; "i32" or "i64" for ids
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t file_bytes = 0;
};

KITH_EXPORT FileInfo file_info(const std::string& path);

// "vectors" or "ids" by the extension, or by the dtype in an .npy or HDF5 file.
KITH_EXPORT FileContent content_of(const std::string& path);

// What the extension alone says; nothing where a file of this name may hold either. There need be no file.
KITH_EXPORT std::optional<FileContent> content_by_extension(const std::string& path);

// The dtype in which a file of this name holds vectors: what its extension says, else the one given.
KITH_EXPORT DType dtype_in(const std::string& path, DType otherwise);

// The path without the dataset that may stand behind an HDF5 file's name. Takes any path.
KITH_EXPORT std::string file_of(const std::string& path);

// The files that VectorFile(path) reads: the path, or, of a pattern, all that match, in the order of their names.
KITH_EXPORT std::vector<std::string> files_of(const std::string& path);

}  // namespace kith
