#include "other_input.hpp"

#include <kith/error.hpp>
#include <kith/row_reader.hpp>

#include "npy_array.hpp"
#include "python_program.hpp"

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace kith::cli {
namespace {

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view one) { return path.ends_with(one); });
}
bool is_for_python(const std::string& path) {
  return ends_with_any(path, {".npz", ".parquet"}) || path.find(".npz::") != std::string::npos ||
         path.find(".parquet::") != std::string::npos;
}

std::ifstream opened(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)), path, errno);
  return file;
}

// Reads a header from the current position of a stream; read(to, n) returns how many bytes it got.
template <typename Read>
std::string npy_header(const Read& read, const std::string& path) {
  std::string header(12, '\0');
  header.resize(read(header.data(), 12));
  const int64_t bytes = npy_header_bytes(header, path);
  header.resize(static_cast<size_t>(bytes));
  const size_t rest = static_cast<size_t>(bytes) - 12;
  if (read(header.data() + 12, rest) < rest) {
    throw InvalidArgument(fmt::format("'{}' ends within its .npy header", path));
  }
  return header;
}

// Converts contiguous rows to the array's dtype().
void convert(const NpyArray& array, const std::byte* from, int64_t first, int64_t count, const std::string& path,
             void* out) {
  if (array.is_kept()) {
    std::memcpy(out, from, static_cast<size_t>(count * array.cols * array.bytes));
    return;
  }
  auto* const to = static_cast<float*>(out);
  for (int64_t i = 0; i < count * array.cols; ++i) {
    to[i] = narrowed(array.value(from + i * array.bytes), path, first + i / array.cols, i % array.cols);
  }
}

class OtherRows : public RowReader {
 public:
  explicit OtherRows(std::string path) : path_(std::move(path)) {}
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
};

// An array in a file, by rows, or by columns, of each of which a piece is read for a piece of rows.
class NpyFile final : public OtherRows {
 public:
  explicit NpyFile(const std::string& path) : OtherRows(path), file_(opened(path)) {
    const auto read = [&](char* to, size_t bytes) {
      file_.read(to, static_cast<std::streamsize>(bytes));
      return static_cast<size_t>(file_.gcount());
    };
    array_ = parse_npy_array(npy_header(read, path), path);
    file_.clear();
    file_.seekg(0, std::ios::end);
    const int64_t needed = array_.offset + array_.rows * array_.cols * array_.bytes;
    if (file_.tellg() < needed) {
      throw CorruptFile(fmt::format("'{}', byte {}: the file ends here, {} bytes early; it was cut", path,
                                    static_cast<int64_t>(file_.tellg()), needed - file_.tellg()),
                        path, file_.tellg());
    }
  }

  const NpyArray& array() const { return array_; }
  DType dtype() const override { return array_.dtype(); }
  int64_t rows() const override { return array_.rows; }
  int64_t cols() const override { return array_.cols; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    const int64_t cols = array_.cols;
    const int64_t bytes = array_.bytes;
    std::vector<std::byte> raw(static_cast<size_t>(count * cols * bytes));
    if (!array_.by_columns) {
      read_at(array_.offset + first * cols * bytes, raw.data(), count * cols * bytes);
    } else {
      std::vector<std::byte> column(static_cast<size_t>(count * bytes));
      for (int64_t c = 0; c < cols; ++c) {
        read_at(array_.offset + (c * array_.rows + first) * bytes, column.data(), count * bytes);
        for (int64_t row = 0; row < count; ++row) {
          std::memcpy(raw.data() + (row * cols + c) * bytes, column.data() + row * bytes, static_cast<size_t>(bytes));
        }
      }
    }
    convert(array_, raw.data(), first, count, path(), out);
  }

 private:
  void read_at(int64_t offset, std::byte* to, int64_t bytes) const {
    file_.seekg(offset);
    if (!file_.read(reinterpret_cast<char*>(to), bytes)) {
      throw IoError(fmt::format("cannot read '{}' at byte {}", path(), offset), path(), EIO);
    }
  }

  mutable std::ifstream file_;
  NpyArray array_;
};

// An array from a pipe, which can be read only once.
class NpyStream final : public OtherRows {
 public:
  NpyStream(const std::string& path, std::FILE* stream) : OtherRows(path), stream_(stream) {
    const auto read = [&](char* to, size_t bytes) { return std::fread(to, 1, bytes, stream_); };
    array_ = parse_npy_array(npy_header(read, path), path);
    if (array_.by_columns) {
      throw InvalidArgument(fmt::format(
          "'{}' is in Fortran order, column after column, which a pipe cannot turn: write numpy.ascontiguousarray(x)",
          path));
    }
  }

  DType dtype() const override { return array_.dtype(); }
  int64_t rows() const override { return array_.rows; }
  int64_t cols() const override { return array_.cols; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    std::vector<std::byte> raw;
    const int64_t row_bytes = array_.cols * array_.bytes;
    for (; next_ < first; ++next_) {  // rows that --first passes over
      raw.resize(static_cast<size_t>(row_bytes));
      fill(raw, next_);
    }
    if (first < next_) throw InvalidState(fmt::format("'{}' is a pipe, whose rows come once", path()));
    raw.resize(static_cast<size_t>(count * row_bytes));
    fill(raw, first);
    next_ = first + count;
    convert(array_, raw.data(), first, count, path(), out);
  }

 private:
  void fill(std::vector<std::byte>& raw, int64_t row) const {
    if (std::fread(raw.data(), 1, raw.size(), stream_) == raw.size()) return;
    throw InvalidArgument(fmt::format("'{}' ends within the rows from {} on, of {}", path(), row, array_.rows));
  }

  std::FILE* stream_;
  NpyArray array_;
  mutable int64_t next_ = 0;
};

// A file that the Python package converts to .npy and writes to a pipe.
class PythonRows final : public OtherRows {
 public:
  explicit PythonRows(const std::string& path) : OtherRows(path) {
    const std::string python = python_program();
    int ends[2];
    if (::pipe(ends) != 0) throw IoError("cannot make a pipe", path, errno);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
      ::execlp(python.c_str(), python.c_str(), "-m", "kith._to_npy", path.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    stream_.reset(::fdopen(ends[0], "rb"));
    const int first = std::fgetc(stream_.get());
    if (first == '!') throw InvalidArgument(rest());
    if (first == EOF) {
      throw Unsupported(fmt::format(
          "'{}' is read through Python's package kith, which {} does not have: install kith's wheel there, name another "
          "Python in KITH_PYTHON, or write .npy",
          path, python));
    }
    std::ungetc(first, stream_.get());
    array_ = std::make_unique<NpyStream>(path, stream_.get());
  }
  ~PythonRows() override {
    stream_.reset();  // the child, if it still writes, ends
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }

  DType dtype() const override { return array_->dtype(); }
  int64_t rows() const override { return array_->rows(); }
  int64_t cols() const override { return array_->cols(); }
  void read_rows(int64_t first, int64_t count, void* out) const override { array_->read_rows(first, count, out); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string rest() const {
    std::string text;
    for (int c = std::fgetc(stream_.get()); c != EOF; c = std::fgetc(stream_.get())) text += static_cast<char>(c);
    return text;
  }

  pid_t child_ = -1;
  std::unique_ptr<std::FILE, Close> stream_;
  std::unique_ptr<NpyStream> array_;
};

// Numbers separated by commas, semicolons, tabs or spaces, one vector per line. A first line with anything but numbers
// is a heading, and so is 0,1,2,…, which pandas writes above unnamed columns. A first column without a name, or named
// like an index, has the numbers or names of rows. `whole` treats all lines and columns as numbers.
class TableRows final : public OtherRows {
 public:
  TableRows(const std::string& path, bool whole) : OtherRows(path), file_(opened(path)) {
    std::vector<float> values;
    if (next_line() && !whole) {
      const std::string first_line = line_;
      const bool words = !parse(values, false);
      const bool counts = !words && counts_up(values) && next_line();
      heading_ = words || counts;
      if (words && is_name_of_rows(first_word(first_line))) skipped_ = 1;
      if (counts) {
        note_ = fmt::format(
            "the first line, 0 to {}, was taken for pandas' heading, and not for a vector (--whole takes it)",
            values.size() - 1);
      } else if (skipped_ > 0) {
        note_ = "the first column was taken for the numbers or names of rows, and left out (--whole takes it)";
      }
    }
    rewind();
    while (next_line()) {
      if (rows_ == 0) {
        parse(values, true);
        cols_ = static_cast<int64_t>(values.size());
      }
      ++rows_;
    }
    if (rows_ == 0) throw InvalidArgument(fmt::format("'{}' holds no line of numbers", path));
    rewind();
  }

  // A guess that the caller may not have meant; empty: none.
  const std::string& note() const { return note_; }
  DType dtype() const override { return DType::f32; }
  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    if (first < next_) rewind();
    for (; next_ < first; ++next_) (void)next_line();
    std::vector<float> values;
    auto* to = static_cast<float*>(out);
    for (int64_t row = 0; row < count; ++row, ++next_, to += cols_) {
      if (!next_line()) throw IoError(fmt::format("'{}' became shorter while it was read", path()), path(), EIO);
      parse(values, true);
      if (static_cast<int64_t>(values.size()) != cols_) {
        throw InvalidArgument(
            fmt::format("'{}', line {}: {} numbers, and the first has {}", path(), line_number_, values.size(), cols_));
      }
      std::copy(values.begin(), values.end(), to);
    }
  }

 private:
  static bool counts_up(const std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<float>(i)) return false;
    }
    return values.size() > 1;
  }
  static std::string_view first_word(std::string_view line) {
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte order mark
    std::string_view word = line.substr(0, line.find_first_of(",;\t"));
    while (!word.empty() && (word.front() == ' ' || word.front() == '"')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == ' ' || word.back() == '"' || word.back() == '\r')) word.remove_suffix(1);
    return word.size() < line.size() ? word : "no column before others";
  }
  static bool is_name_of_rows(std::string_view word) {
    return word.empty() || word == "Unnamed: 0" || word == "index" || word == "id";
  }
  void rewind() const {
    file_.clear();
    file_.seekg(0);
    next_ = 0;
    line_number_ = 0;
    if (heading_) (void)next_line();
  }
  // The next line that is not empty.
  bool next_line() const {
    while (std::getline(file_, line_)) {
      ++line_number_;
      if (line_.find_first_not_of(" \t\r") != std::string::npos) return true;
    }
    return false;
  }
  // False if the line has anything but numbers; an error if `must`.
  bool parse(std::vector<float>& values, bool must) const {
    values.clear();
    const std::string_view kBetween = line_.find_first_of(",;\t") == std::string::npos ? " \r" : ",;\t\r";
    std::string_view left = line_;
    if (left.starts_with("\xef\xbb\xbf")) left.remove_prefix(3);  // a byte order mark
    for (int64_t i = 0; i < skipped_; ++i) left.remove_prefix(std::min(left.find_first_of(kBetween), left.size() - 1) + 1);
    while (!left.empty()) {
      const size_t end = left.find_first_of(kBetween);
      std::string_view word = left.substr(0, end);
      const bool ends = end == std::string_view::npos || left.find_first_not_of("\r", end) == std::string_view::npos;
      left = end == std::string_view::npos ? std::string_view() : left.substr(end + 1);
      while (!word.empty() && (word.front() == ' ' || word.front() == '"' || word.front() == '+')) word.remove_prefix(1);
      while (!word.empty() && (word.back() == ' ' || word.back() == '"')) word.remove_suffix(1);
      if (word.empty() && (ends || kBetween[0] == ' ')) continue;
      double value = 0;
      const auto [after, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || after != word.data() + word.size()) {
        if (!must) return false;
        throw InvalidArgument(fmt::format("'{}', line {}: '{}' in column {} is no number; keep columns of numbers alone",
                                          path(), line_number_, word.substr(0, 40), skipped_ + values.size()));
      }
      values.push_back(narrowed(value, path(), next_, static_cast<int64_t>(values.size())));
    }
    return true;
  }

  mutable std::ifstream file_;
  mutable std::string line_;
  mutable int64_t line_number_ = 0;
  mutable int64_t next_ = 0;
  bool heading_ = false;
  int64_t skipped_ = 0;  // columns, from the first on
  std::string note_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
};

// Whether an .npy file is one that only this command reads: float64, wide integers, or Fortran order.
bool is_other_array(const std::string& path) {
  if (!path.ends_with(".npy")) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 512> head{};
  file.read(head.data(), head.size());
  std::string_view header(head.data(), static_cast<size_t>(file.gcount()));
  const size_t at = header.find("'descr': '");
  if (at == std::string_view::npos || at + 13 > header.size()) return false;
  const std::string_view descr = header.substr(at + 10, 3);
  constexpr std::string_view kOwn[] = {"<f4", "<f2", "|u1", "|i1", "<i4", "<i8"};
  const bool own = std::find(std::begin(kOwn), std::end(kOwn), descr) != std::end(kOwn);
  const bool number = descr[1] == 'f' || descr[1] == 'i' || descr[1] == 'u';
  return number && (!own || header.find("'fortran_order': True") != std::string_view::npos);
}

}  // namespace

bool is_other_input(const std::string& path) {
  return path == "-" || is_table(path) || is_for_python(path) || is_other_array(path);
}

bool is_table(const std::string& path) { return ends_with_any(path, {".csv", ".tsv", ".txt"}); }

VectorFile open_other_input(const std::string& path, bool whole_table, std::string* note) {
  if (path == "-") return VectorFile(std::make_shared<const NpyStream>("-", stdin));
  if (is_table(path)) {
    const auto table = std::make_shared<const TableRows>(path, whole_table);
    if (note != nullptr) *note = table->note();
    return VectorFile(table);
  }
  if (is_for_python(path)) {
    const std::string file = path.substr(0, path.find("::"));
    if (::access(file.c_str(), R_OK) != 0) {
      throw IoError(fmt::format("cannot open '{}': {}", file, std::strerror(errno)), file, errno);
    }
    return VectorFile(std::make_shared<const PythonRows>(path));
  }
  return VectorFile(std::make_shared<const NpyFile>(path));
}

std::string describe_other_input(const std::string& path) {
  const NpyFile file(path);
  const NpyArray& array = file.array();
  const std::string_view kind = array.kind == 'f' ? "float" : array.kind == 'u' ? "uint" : "int";
  return fmt::format("npy (vectors), {} x {} {}{}{}", array.rows, array.cols, kind, 8 * array.bytes,
                     array.by_columns ? ", in Fortran order" : "");
}

}  // namespace kith::cli
