// A matrix file of any format that can be written: what VectorFileWriter and IdFileWriter share. The shape is known
// from the start and the header goes out first; the values follow in any number of pieces.
#pragma once

#include "io/atomic_file_writer.hpp"
#include "io/file_format.hpp"
#include "io/file_layout.hpp"

#include <string>

namespace kith {

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
