// Vectors and ids in files. The file extension determines the format: fvecs, bvecs, ivecs, fbin, f16bin,
// bf16bin, u8bin, i8bin, ibin, npy, HDF5 ("file.hdf5::dataset") and IDX (read only). docs/file-formats.md
// describes them.
//
// Opening checks the header and, if the format allows, the file's size. Reads take any range of rows, may come
// from many threads at once, and use positioned reads, never a mapping. A writer fills a temporary file beside
// the target; commit() renames it over the target, which is left intact until then.
//
// IoError: the system refused. CorruptFile: the content is wrong, with file, offset and reason. InvalidArgument:
// an unknown extension, a dtype that the format cannot hold, or a valid file whose dtype, order or shape is
// unsupported. Unsupported: a format that this build lacks.
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

// Host memory that reads of a file use beside their output: room for HDF5 chunks, nothing in other formats. It counts
// against the limit as long as this object lives. Functions that take a file and Resources hold one themselves.
using ReadMemory = std::shared_ptr<const void>;

// Vectors in a file, or in several that are read as one, with rows numbered consecutively in the order of the files.
// All have the same dtype and columns; some may be empty. All are checked at first, and opened again when they are
// read, so that any number of files needs few descriptors.
class KITH_EXPORT VectorFile {
 public:
  // A path, or if no file has that name, a pattern with *, ? or [...], for all matching files in the order of their
  // names ("part-*.npy", "part-??.hdf5::train").
  explicit VectorFile(const std::string& path);
  // Rows from another source.
  explicit VectorFile(std::shared_ptr<const RowReader> rows);
  // Files, or patterns, in the order given.
  static VectorFile of_files(const std::vector<std::string>& paths);
  ~VectorFile();
  VectorFile(VectorFile&&) noexcept;
  VectorFile& operator=(VectorFile&&) noexcept;

  // Its name in error messages: the path or pattern; for a list of files the first one and the number of others.
  const std::string& path() const;
  DType dtype() const;
  int64_t rows() const;
  int64_t cols() const;
  int64_t files() const;
  // The file of a row, and its number there.
  RowPlace place_of(int64_t row) const;

  // Fills `out`, which has this file's columns, with the rows from `first` on. Values are converted to its dtype,
  // exactly or rounded to nearest; one that the dtype cannot hold (1e9 in f16, 3.5 in u8) is InvalidArgument with its
  // row, column and value.
  void read(int64_t first, const MutableMatrixView& out) const;

  // OutOfMemory with the bytes needed if the limit has no room for them.
  [[nodiscard]] ReadMemory reserve_memory(const Resources& resources) const;
  int64_t memory_bytes() const;  // the bytes that reserve_memory() takes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A file of ids: .ibin, .ivecs, or .npy or HDF5 of int32 or int64. Ids are read as int64.
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

// Writes a file of a known shape, piece by piece. Without commit() the target does not change.
class KITH_EXPORT VectorFileWriter {
 public:
  VectorFileWriter(const std::string& path, DType dtype, int64_t rows, int64_t cols);
  ~VectorFileWriter();
  VectorFileWriter(VectorFileWriter&&) noexcept;
  VectorFileWriter& operator=(VectorFileWriter&&) noexcept;

  void append(const MatrixView& rows);
  // Writes the appended rows through to the disk, so that little can fail in commit().
  void sync();
  // Checks that all rows were appended, syncs, and renames.
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

// What to read of a file, or of several by a pattern: `count` rows from `first` on, or all to the end (-1).
struct RowRange {
  int64_t first = 0;
  int64_t count = -1;
};
KITH_EXPORT MatrixBuffer read_vectors(const std::string& path, RowRange range = {},
                                      const Resources& resources = Resources());
KITH_EXPORT void write_vectors(const std::string& path, const MatrixView& vectors,
                               const Resources& resources = Resources());

// The same with the values converted to `dtype`, as by VectorFile::read.
KITH_EXPORT MatrixBuffer read_vectors(const std::string& path, RowRange range, DType dtype,
                                      const Resources& resources = Resources());
KITH_EXPORT void write_vectors(const std::string& path, const MatrixView& vectors, DType dtype,
                               const Resources& resources = Resources());

}  // namespace kith
