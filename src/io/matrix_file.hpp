// A matrix file of any format, open for reading: what VectorFile and IdFile share. Reads are const and thread-safe.
#pragma once

#include <kith/file_info.hpp>
#include <kith/vector_file.hpp>

#include "io/atomic_file_writer.hpp"
#include "io/file_format.hpp"
#include "io/file_layout.hpp"
#include "io/formats.hpp"
#include "io/value_reader.hpp"

#include <string>

namespace kith {

class MatrixFile {
 public:
  // Checks the header, and, where it can be known without reading all, that the file has the size it promises.
  // `one_axis` is for .npy.
  explicit MatrixFile(const std::string& path, OneAxis one_axis = OneAxis::of_lists);

  const std::string& path() const { return name_.path; }
  FileFormat format() const { return name_.format; }
  const FileLayout& layout() const { return opened_.layout; }
  int64_t file_bytes() const { return file_bytes_; }
  const ValueReader& values() const { return *opened_.values; }

  // Throws InvalidArgument unless the rows first .. first + count - 1 are there.
  void check_rows(int64_t first, int64_t count) const;
  // The values `first` .. `first + count - 1`, counted along the rows.
  void read_values(int64_t first, int64_t count, void* out) const { opened_.values->read(first, count, out); }
  ReadMemory reserve_memory(const Resources& resources) const;
  FileInfo info() const;

 private:
  FileName name_;
  int64_t file_bytes_ = 0;
  OpenedMatrix opened_;
};

// A matrix file of any format that can be written: what VectorFileWriter and IdFileWriter share. The shape is known
// from the start and the header goes out first; the values follow in any number of pieces.

class MatrixFileWriter {
 public:
  // Throws InvalidArgument for an element or a shape that the format, told from the path, cannot hold.
  MatrixFileWriter(const std::string& path, ElementType element, int64_t rows, int64_t cols);

  const std::string& path() const { return path_; }
  const FileLayout& layout() const { return layout_; }

  // Throws InvalidArgument if `rows` more are more than were announced.
  void check_room(int64_t rows) const;
  // The next values, along the rows; `bytes` are a whole number of them.
  void write(const void* values, int64_t bytes);
  // The same of values that fill(offset, bytes, out) makes on any thread; formats without headers of rows.
  void write_made(int64_t bytes, const AtomicFileWriter::Fill& fill);
  void sync();
  void commit();

 private:
  MatrixFileWriter(const FileName& name, const FileLayout& shape);
  void write_with_row_headers(const void* values, int64_t bytes);
  int64_t rows_written() const {
    const int64_t row_bytes = layout_.row_bytes();
    return row_bytes == 0 ? 0 : bytes_written_ / row_bytes;
  }

  std::string path_;
  FileLayout layout_;
  AtomicFileWriter file_;
  int64_t bytes_written_ = 0;  // of values
};

}  // namespace kith
