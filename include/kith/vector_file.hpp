// Vectors and ids in files. The file extension determines the format: fvecs, bvecs, ivecs, fbin, f16bin, bf16bin,
// u8bin, i8bin, ibin, npy, HDF5 ("file.hdf5::dataset") and IDX, which is only read. docs/file-formats.md describes
// each.
//
// Opening checks the header and, where it can be known, the size of the whole file. Reads take any range of rows, may
// come from many threads at once and use positioned reads, never a mapping. A writer fills a temporary file beside its
// target, and only commit() puts it in the target's place; what was there before stays whole until then.
//
// IoError: the system refused. CorruptFile: the content is wrong, with file, offset and reason. InvalidArgument: an
// unknown extension, a dtype that the format cannot hold, or a sound file whose dtype, order or shape is unsupported.
// Unsupported: a format that this build lacks.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/file_info.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/row_reader.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kith {

// Host memory that reads of one file take beside their output: room for HDF5 chunks, and none in other formats. It
// counts against a limit for as long as this lives. Functions that are given a file and Resources keep one themselves.
using ReadMemory = std::shared_ptr<const void>;

// Vectors in a file, or in several that are read as one: rows are numbered consecutively, in the order of the files. All have
// the same dtype and the same columns; files without rows may be among them. Any number of files needs few descriptors:
// all are looked at when this is made, and opened again where they are read.
class KITH_EXPORT VectorFile {
 public:
  // A path, or, where no file has that name, a pattern with *, ? or [...]: all files that match, in the order of their
  // names ("part-*.npy", "part-??.hdf5::train").
  explicit VectorFile(const std::string& path);
  // Rows from elsewhere.
  explicit VectorFile(std::shared_ptr<const RowReader> rows);
  // Files, or patterns, in the order given.
  static VectorFile of_files(const std::vector<std::string>& paths);
  ~VectorFile();
  VectorFile(VectorFile&&) noexcept;
  VectorFile& operator=(VectorFile&&) noexcept;

  // What errors call it: the path or the pattern; for a list of files the first one, and how many more there are.
  const std::string& path() const;
  DType dtype() const;
  int64_t rows() const;
  int64_t cols() const;
  int64_t files() const;
  // The file that a row lies in, and its number there.
  RowPlace place_of(int64_t row) const;

  // Fills `out`, which has this file's columns, with the rows from `first` on. Where its dtype is another, values are
  // converted: exactly, or rounded to nearest. One that the dtype cannot hold (1e9 in f16, 3.5 in u8) is
  // InvalidArgument with its row, column and value.
  void read(int64_t first, const MutableMatrixView& out) const;

  // OutOfMemory with the bytes needed where the limit has no room for them.
  [[nodiscard]] ReadMemory reserve_memory(const Resources& resources) const;
  int64_t memory_bytes() const;  // what that takes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A file of ids: .ibin, .ivecs, or .npy or HDF5 with int32 or int64. Ids are int64 here.
class KITH_EXPORT IdFile {
 public:
  explicit IdFile(const std::string& path);
  ~IdFile();
  IdFile(IdFile&&) noexcept;
  IdFile& operator=(IdFile&&) noexcept;

  const std::string& path() const;
  int64_t rows() const;
  int64_t cols() const;
  // `out` has room for count x cols() ids.
  void read(int64_t first, int64_t count, int64_t* out) const;
  [[nodiscard]] ReadMemory reserve_memory(const Resources& resources) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes a file of a known shape, piece by piece. Without commit() the target is left as it was.
class KITH_EXPORT VectorFileWriter {
 public:
  VectorFileWriter(const std::string& path, DType dtype, int64_t rows, int64_t cols);
  ~VectorFileWriter();
  VectorFileWriter(VectorFileWriter&&) noexcept;
  VectorFileWriter& operator=(VectorFileWriter&&) noexcept;

  void append(const MatrixView& rows);
  // Brings what was appended to the disk, so that little is left that could fail in commit().
  void sync();
  // Checks that every row came, syncs and renames.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// .ibin and .ivecs hold int32 and refuse a larger id; .npy and HDF5 hold int64.
class KITH_EXPORT IdFileWriter {
 public:
  IdFileWriter(const std::string& path, int64_t rows, int64_t cols);
  ~IdFileWriter();
  IdFileWriter(IdFileWriter&&) noexcept;
  IdFileWriter& operator=(IdFileWriter&&) noexcept;

  void append(const int64_t* ids, int64_t count);
  void sync();
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole file, or several by a pattern, or `count` rows from `first` on (count -1: to the end).
struct RowRange {
  int64_t first = 0;
  int64_t count = -1;
};
KITH_EXPORT MatrixBuffer read_vectors(const std::string& path, RowRange range = {},
                                      const Resources& resources = Resources());
KITH_EXPORT void write_vectors(const std::string& path, const MatrixView& vectors,
                               const Resources& resources = Resources());

// The same in another dtype than the file's, or the matrix's, by the rules of VectorFile::read.
KITH_EXPORT MatrixBuffer read_vectors(const std::string& path, RowRange range, DType dtype,
                                      const Resources& resources = Resources());
KITH_EXPORT void write_vectors(const std::string& path, const MatrixView& vectors, DType dtype,
                               const Resources& resources = Resources());

}  // namespace kith
