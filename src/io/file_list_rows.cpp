#include "io/file_list_rows.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"
#include "io/file_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

namespace kith {
namespace {

// Descriptors that stay open between reads. A pass needs one or two at a time; rows that are read one by one, as
// candidates ask for them, come from any file, and opening one costs far more than reading a row. Half of the 64 that a
// process may be left with.
constexpr size_t kKeptOpen = 32;

std::string shape_of(const RowReader& file) {
  return fmt::format("{} x {} {}", file.rows(), file.cols(), name_of(file.dtype()));
}

class FileListRows final : public RowReader {
 public:
  FileListRows(const std::vector<std::string>& paths, std::string name) : name_(std::move(name)) {
    for (const std::string& path : paths) add(path);
  }

  const std::string& path() const override { return name_; }
  DType dtype() const override { return dtype_; }
  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  int64_t files() const override { return static_cast<int64_t>(parts_.size()); }

  RowPlace place_of(int64_t row) const override {
    const Part& part = parts_[part_of(row)];
    return {part.path, row - part.first};
  }

  void read_rows(int64_t first, int64_t count, void* out) const override {
    read(first, MutableMatrixView(out, dtype_, {count, cols_, cols_}));
  }

  void read(int64_t first, const MutableMatrixView& out) const override {
    size_t number = part_of(first);
    for (int64_t done = 0; done < out.rows(); ++number) {
      const Part& part = parts_[number];
      const int64_t from = first + done - part.first;
      const int64_t count = std::min(part.rows - from, out.rows() - done);
      if (count == 0) continue;  // a file without rows
      read_part(number, from, out.slice(done, count));
      done += count;
    }
  }

  // One file with chunks is read at a time.
  int64_t memory_bytes() const override { return memory_bytes_; }
  void free_memory() const override {
    const std::scoped_lock lock(mutex_);
    open_ = {};
  }

 private:
  struct Part {
    std::string path;
    int64_t first = 0;  // row
    int64_t rows = 0;
  };
  struct Open {
    size_t number = 0;
    std::shared_ptr<const FileRows> file;
  };

  void add(const std::string& path) {
    const FileRows file(path);
    if (parts_.empty()) {
      dtype_ = file.dtype();
      cols_ = file.cols();
    }
    if (cols_ == 0) cols_ = file.cols();  // *vecs files without rows have no columns either
    if (file.dtype() != dtype_ || (file.cols() != cols_ && (file.rows() > 0 || file.cols() > 0))) {
      throw InvalidArgument(
          fmt::format("'{}' holds {}, and '{}' before it {} columns of {}; files that are read as one "
                      "have the same dtype and columns",
                      path, shape_of(file), parts_.front().path, cols_, name_of(dtype_)));
    }
    parts_.push_back({path, rows_, file.rows()});
    rows_ += file.rows();
    memory_bytes_ = std::max(memory_bytes_, file.memory_bytes());
  }

  // The one that holds a row; the last where there is none.
  size_t part_of(int64_t row) const {
    const auto behind = std::upper_bound(parts_.begin(), parts_.end(), row,
                                         [](int64_t at, const Part& part) { return at < part.first; });
    return static_cast<size_t>(behind - parts_.begin()) - 1;
  }

  void read_part(size_t number, int64_t first, const MutableMatrixView& out) const {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<const FileRows> file = opened(number);
    if (memory_bytes_ == 0) lock.unlock();  // else chunks of one file alone are kept
    file->read(first, out);
  }

  // Under the lock. A process that has no descriptor left gives up those that are kept here first.
  std::shared_ptr<const FileRows> open_part(const Part& part) const {
    try {
      return std::make_shared<const FileRows>(part.path);
    } catch (const IoError& error) {
      if (error.code() != EMFILE && error.code() != ENFILE) throw;
    }
    open_ = {};
    return std::make_shared<const FileRows>(part.path);
  }

  // Under the lock.
  std::shared_ptr<const FileRows> opened(size_t number) const {
    const auto is_it = [&](const Open& open) { return open.file != nullptr && open.number == number; };
    const auto kept = open_.begin() + (memory_bytes_ > 0 ? 1 : kKeptOpen);
    const auto at = std::find_if(open_.begin(), kept, is_it);
    if (at != kept) {
      std::rotate(open_.begin(), at, at + 1);  // used last
      return open_.front().file;
    }
    (kept - 1)->file.reset();  // its memory goes before another's comes
    const Part& part = parts_[number];
    std::shared_ptr<const FileRows> file = open_part(part);
    if (file->rows() != part.rows || file->cols() != cols_ || file->dtype() != dtype_) {
      throw_corrupt(part.path, 0,
                    fmt::format("the file has changed since it was opened: it holds {}, and held {} x {} {}",
                                shape_of(*file), part.rows, cols_, name_of(dtype_)));
    }
    std::rotate(open_.begin(), kept - 1, kept);
    open_.front() = {number, file};
    return file;
  }

  const std::string name_;
  std::vector<Part> parts_;
  DType dtype_ = DType::f32;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t memory_bytes_ = 0;
  mutable std::mutex mutex_;
  mutable std::array<Open, kKeptOpen> open_;  // used last comes first
};

}  // namespace

std::shared_ptr<const RowReader> open_files(const std::vector<std::string>& paths, const std::string& name) {
  if (paths.size() == 1) return std::make_shared<const FileRows>(paths.front());
  return std::make_shared<const FileListRows>(paths, name);
}

}  // namespace kith
