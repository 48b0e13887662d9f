// Format, dtype and shape of a file of vectors or ids, from its name and header.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

enum class FileContent : uint8_t { vectors, ids };

struct FileInfo {
  std::string format;  // "fbin", "npy", "hdf5", ...
  FileContent content = FileContent::vectors;
  std::string dtype;  // as stored: "f32", "f16", "bf16", "u8", "i8"; "i32" or "i64" for ids
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t file_bytes = 0;
};

KITH_EXPORT FileInfo file_info(const std::string& path);

// What a file is that holds no vectors, by its first bytes or its name: "a SQLite database", and what to do with it, with
// a verb. Both are empty where that is not known.
struct FileKind {
  std::string_view name;
  std::string_view hint;
};
KITH_EXPORT FileKind file_kind(const std::string& path);

// Vectors or ids, by the extension, or by the dtype of an .npy or HDF5 file.
KITH_EXPORT FileContent content_of(const std::string& path);

// The same by the extension alone; none if files of this name may hold either. The file need not exist.
KITH_EXPORT std::optional<FileContent> content_by_extension(const std::string& path);

// The dtype of vectors in a file of this name: the one that its extension implies, or else `otherwise`.
KITH_EXPORT DType dtype_in(const std::string& path, DType otherwise);

// The path without the "::dataset" of an HDF5 file; other paths are returned unchanged.
KITH_EXPORT std::string file_of(const std::string& path);

// The files that VectorFile(path) reads: the path, or all matches of a pattern, in the order of their names.
KITH_EXPORT std::vector<std::string> files_of(const std::string& path);

}  // namespace kith
