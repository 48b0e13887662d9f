// Guesses what a file is from its first bytes or its name, for errors about files of the wrong kind.
#pragma once

#include <kith/file_info.hpp>

#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace kith {

// FAISS's files begin with four letters and the dimension.
inline bool looks_like_faiss(std::string_view head) {
  if (head.size() < 8 || head[0] != 'I') return false;
  for (const char c : head.substr(1, 3)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) return false;
  }
  uint32_t dimension = 0;
  std::memcpy(&dimension, head.data() + 4, sizeof(dimension));
  return dimension <= 1U << 20;
}

// Its first bytes, as many as tell what it is; IoError if it cannot be opened.
std::string head_of_file(const std::string& path);

inline FileKind kind_of_file(std::string_view path, std::string_view head) {
  struct Magic {
    std::string_view bytes;
    FileKind kind;
  };
  static constexpr std::string_view kArrays =
      "read vectors with kith.read_vectors or numpy.load, and add them to an index";
  static constexpr std::string_view kRows = "read vectors with kith.read_vectors, and add them to an index";
  static constexpr std::string_view kTables = "kith convert makes vectors of it, as .npy or .fbin";
  static constexpr std::string_view kImages = "Kith searches vectors, which a network makes of images";
  static constexpr Magic kMagics[] = {
      {"\x93NUMPY", {"a numpy array", kArrays}},
      {"\x89HDF\r\n\x1a\n", {"an HDF5 file", kArrays}},
      {"PK\x03\x04", {"a zip archive, such as .npz", "kith convert reads the arrays of an .npz"}},
      {"PAR1", {"a Parquet file", "kith convert reads a column of lists"}},
      {"ARROW1", {"an Arrow file", "read it with pyarrow"}},
      {"\x1f\x8b", {"a gzip file", "unpack it first"}},
      {"SQLite format 3", {"a SQLite database", "it holds no vectors that Kith reads"}},
      {"\x80\x04\x95", {"a pickle", "load it in Python, and save the array"}},
      {"\x80\x05\x95", {"a pickle", "load it in Python, and save the array"}},
      {"\x89PNG\r\n", {"an image", kImages}},
      {"\xff\xd8\xff", {"an image", kImages}},
  };
  for (const Magic& magic : kMagics) {
    if (head.starts_with(magic.bytes)) return magic.kind;
  }
  static constexpr Magic kEndings[] = {
      {".fbin", {"a file of vectors", kRows}},   {".f16bin", {"a file of vectors", kRows}},
      {".bf16bin", {"a file of vectors", kRows}}, {".u8bin", {"a file of vectors", kRows}},
      {".i8bin", {"a file of vectors", kRows}},  {".fvecs", {"a file of vectors", kRows}},
      {".bvecs", {"a file of vectors", kRows}},  {".ibin", {"a file of ids", "read it with kith.read_vectors"}},
      {".ivecs", {"a file of ids", "read it with kith.read_vectors"}},
      {".csv", {"a table", kTables}},            {".tsv", {"a table", kTables}},
      {".txt", {"a text", kTables}},
  };
  for (const Magic& ending : kEndings) {
    if (path.ends_with(ending.bytes)) return ending.kind;
  }
  return {};
}

}  // namespace kith
