// What a file is, by its first bytes: for errors about files that are no vectors and no index.
#pragma once

#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kith {

struct FileKind {
  std::string_view name;  // "a numpy array"; empty where it is not known
  std::string_view hint;  // what to do with it; with a verb
};

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

inline FileKind kind_of_file(std::string_view head) {
  struct Magic {
    std::string_view bytes;
    FileKind kind;
  };
  static constexpr std::string_view kArrays = "read vectors with kith.read_vectors or numpy.load, and add them to an index";
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
  };
  for (const Magic& magic : kMagics) {
    if (head.starts_with(magic.bytes)) return magic.kind;
  }
  return {};
}

}  // namespace kith
