// Vectors and ids in files: .fbin (f32), .u8bin (u8), .ibin (int32 ids) and .npy, told apart by their names' endings.
//
// Opening checks the header and the size of the whole file. Reads take any range of rows, may come from many threads at
// once and use positioned reads, never a mapping. A writer fills a temporary file beside its target, and only commit()
// puts it in the target's place; what was there before stays whole until then.
//
// IoError: the system refused. CorruptFile: the content is wrong, with file, offset and reason. InvalidArgument: an
// unknown ending, a dtype that the format cannot hold, or a sound .npy whose dtype, order or shape is not taken.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace kith {

// A file of vectors (f32 or u8), open for reading.
class KITH_EXPORT VectorFile {
 public:
  explicit VectorFile(const std::string& path);
  ~VectorFile();
  VectorFile(VectorFile&&) noexcept;
  VectorFile& operator=(VectorFile&&) noexcept;

  const std::string& path() const;
  DType dtype() const;
  int64_t rows() const;
  int64_t cols() const;

  // Fills `out`, which has this file's dtype and columns, with the rows from `first` on.
  void read(int64_t first, const MutableMatrixView& out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A file of ids: .ibin, or .npy with int32 or int64. Ids are int64 here.
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

// .ibin holds int32 and refuses a larger id; .npy holds int64.
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

// A whole file, or `count` rows from `first` on (count -1: to the end).
struct RowRange {
  int64_t first = 0;
  int64_t count = -1;
};
KITH_EXPORT MatrixBuffer read_vectors(const std::string& path, RowRange range = {},
                                      const Resources& resources = Resources());
KITH_EXPORT void write_vectors(const std::string& path, const MatrixView& vectors,
                               const Resources& resources = Resources());

// What a path holds, without reading its values: "vectors" or "ids" by the ending, or by the dtype of an .npy.
enum class FileContent : uint8_t { vectors, ids };
KITH_EXPORT FileContent content_of(const std::string& path);

}  // namespace kith
