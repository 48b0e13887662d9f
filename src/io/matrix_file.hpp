// A matrix file of any format, open for reading: what VectorFile and IdFile share. Reads are const and thread-safe.
#pragma once

#include "io/file_layout.hpp"
#include "io/posix_file.hpp"

#include <string>

namespace kith {

// How much is moved at a time where values cannot go straight to their place. Small enough for any thread's stack.
inline constexpr int64_t kPieceBytes = 32 * 1024;

class MatrixFile {
 public:
  // Checks the header, and that the file has exactly the size it promises.
  explicit MatrixFile(const std::string& path);

  const std::string& path() const { return path_; }
  const FileLayout& layout() const { return layout_; }

  // Throws InvalidArgument unless the rows first .. first + count - 1 are there.
  void check_rows(int64_t first, int64_t count) const;
  // The values `first` .. `first + count - 1`, counted along the rows.
  void read_values(int64_t first, int64_t count, void* out) const;

 private:
  std::string path_;
  FileLayout layout_;
  FileDescriptor file_;
};

}  // namespace kith
