#include "vector_source.hpp"

#include "array.hpp"
#include "gil.hpp"

#include <kith/dtype.hpp>
#include <kith/error.hpp>

#include <fmt/format.h>

#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

std::string path_of(const nb::handle& path) {
  const auto bytes = nb::cast<nb::bytes>(path);
  return {bytes.c_str(), bytes.size()};
}

// Rows that an object of Python's brings, on whichever thread asks: for each read it is called with the GIL. What it
// raises becomes an IoError with the rows that were asked for, unless it is to end the program.
class PythonRows final : public RowReader {
 public:
  explicit PythonRows(nb::object rows) : rows_(std::move(rows)) {
    path_ = nb::cast<std::string>(rows_.attr("path"));
    dtype_ = parse_dtype(nb::cast<std::string>(rows_.attr("dtype")));
    shape_[0] = nb::cast<int64_t>(rows_.attr("shape")[0]);
    shape_[1] = nb::cast<int64_t>(rows_.attr("shape")[1]);
  }
  ~PythonRows() override {
    const WithGil held;
    rows_.reset();
  }

  const std::string& path() const override { return path_; }
  DType dtype() const override { return dtype_; }
  int64_t rows() const override { return shape_[0]; }
  int64_t cols() const override { return shape_[1]; }

  void read_rows(int64_t first, int64_t count, void* out) const override {
    const WithGil held;
    try {
      const auto part = nb::cast<HostVectorArray>(rows_.attr("read")(first, count), false);
      const MatrixView view = view_of(part, "the rows");
      if (view.rows() != count || view.cols() != cols() || view.dtype() != dtype_) {
        fail(first, count, fmt::format("it gave {} x {} {}, not {} x {} {}", view.rows(), view.cols(),
                                       name_of(view.dtype()), count, cols(), name_of(dtype_)));
      }
      const int64_t row_bytes = cols() * size_of(dtype_);
      auto* to = static_cast<std::byte*>(out);
      for (int64_t i = 0; i < count; ++i, to += row_bytes) {
        std::memcpy(to, view.row(i), static_cast<size_t>(row_bytes));
      }
    } catch (const nb::python_error& error) {
      // KeyboardInterrupt and SystemExit end the call as they are.
      if (!error.matches(PyExc_Exception)) throw;
      const auto kind = nb::cast<std::string>(error.type().attr("__name__"));
      fail(first, count, fmt::format("{}: {}", kind, nb::str(error.value()).c_str()));
    } catch (const nb::cast_error&) {
      fail(first, count, "it gave no array of two axes");
    }
  }

 private:
  [[noreturn]] void fail(int64_t first, int64_t count, const std::string& reason) const {
    throw IoError(fmt::format("cannot read the rows {} to {} of {}: {}", first, first + count - 1, path_, reason), path_,
                  EIO);
  }

  nb::object rows_;
  std::string path_;
  DType dtype_ = DType::f32;
  int64_t shape_[2] = {0, 0};
};

}  // namespace

VectorFile vector_file_of(const nb::object& source) {
  if (nb::isinstance<nb::bytes>(source)) return VectorFile(path_of(source));
  if (!nb::isinstance<nb::list>(source)) return VectorFile(std::make_shared<const PythonRows>(source));
  std::vector<std::string> paths;
  for (const nb::handle path : nb::cast<nb::list>(source)) paths.push_back(path_of(path));
  return VectorFile::of_files(paths);
}

}  // namespace kith::python
