// A matrix file of any format, being written: what VectorFileWriter and IdFileWriter share. The shape is known from the
// start and the header goes out first; the values follow in any number of pieces.
#pragma once

#include "io/atomic_file_writer.hpp"
#include "io/file_layout.hpp"

#include <string>
#include <string_view>

namespace kith {

class MatrixFileWriter {
 public:
  // Throws InvalidArgument for an element or a shape that the format, told from the path, cannot hold.
  MatrixFileWriter(const std::string& path, ElementType element, int64_t rows, int64_t cols);

  const std::string& path() const { return file_.path(); }
  const FileLayout& layout() const { return layout_; }

  // Throws InvalidArgument if `rows` more are more than were announced.
  void check_room(int64_t rows) const;
  void write(const void* values, int64_t bytes);
  void sync();
  void commit();

 private:
  MatrixFileWriter(const std::string& path, const FileLayout& layout, std::string_view header);
  int64_t rows_written() const {
    const int64_t row_bytes = layout_.row_bytes();
    return row_bytes == 0 ? 0 : bytes_written_ / row_bytes;
  }

  FileLayout layout_;
  AtomicFileWriter file_;
  int64_t bytes_written_ = 0;  // of values
};

}  // namespace kith
