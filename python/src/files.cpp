// Vector and id files. Paths come as bytes, the way the system knows them.
//
// Large files go in pieces, so that Ctrl-C is heard between two of them.
#include "array.hpp"
#include "call.hpp"
#include "module.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <string>

namespace kith::python {
namespace {

constexpr int64_t kPieceBytes = 16 << 20;

std::string path_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

int64_t rows_per_piece(int64_t row_bytes) {
  return std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes));
}

// Calls step(first, count) over consecutive pieces of `rows` rows.
template <typename Step>
void in_pieces(int64_t rows, int64_t row_bytes, const Call& call, const Step& step) {
  const int64_t piece = rows_per_piece(row_bytes);
  for (int64_t first = 0; first < rows; first += piece) {
    call.check();
    step(first, std::min(piece, rows - first));
  }
}

nb::object read_id_rows(const std::string& path, int64_t first, std::optional<int64_t> wanted) {
  const IdFile file(path);
  const int64_t count = wanted.value_or(std::max<int64_t>(0, file.rows() - first));
  if (first < 0 || count < 0 || first > file.rows() || count > file.rows() - first) {
    throw InvalidArgument(
        fmt::format("{}: {} rows from row {} on are asked for, the file has {}", path, count, first, file.rows()));
  }
  const int64_t row_bytes = file.cols() * static_cast<int64_t>(sizeof(int64_t));
  Call call;
  HostBuffer ids(saturating_multiply(count, row_bytes), "the ids read", call.resources());
  call.run([&] {
    in_pieces(count, row_bytes, call, [&](int64_t done, int64_t rows) {
      file.read(first + done, rows, ids.as<int64_t>() + done * file.cols());
    });
  });
  return ids_array(std::move(ids), count, file.cols());
}

nb::object read(const nb::bytes& path_bytes, int64_t first, std::optional<int64_t> count) {
  const std::string path = path_of(path_bytes);
  if (count && *count < 0) throw InvalidArgument(fmt::format("count = {}; it must not be negative", *count));
  if (content_of(path) == FileContent::ids) return read_id_rows(path, first, count);
  MatrixBuffer vectors;
  Call call;
  call.run([&] { vectors = read_vectors(path, {first, count.value_or(-1)}, call.resources()); });
  return vectors_array(std::move(vectors));
}

void write(const nb::bytes& path, const VectorArray& vectors) {
  const MatrixView view = view_of(vectors, "array");
  Call call;
  call.run([&] { write_vectors(path_of(path), view, call.resources()); });
}

void write_ids(const nb::bytes& path, const ConstIdArray& ids) {
  const auto rows = static_cast<int64_t>(ids.shape(0));
  const auto cols = static_cast<int64_t>(ids.shape(1));
  Call call;
  call.run([&] {
    IdFileWriter writer(path_of(path), rows, cols);
    in_pieces(rows, cols * static_cast<int64_t>(sizeof(int64_t)), call,
              [&](int64_t first, int64_t count) { writer.append(ids.data() + first * cols, count); });
    writer.commit();
  });
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("read_vectors", &read, nb::arg("path"), nb::arg("first"), nb::arg("count").none(),
             nb::sig("def read_vectors(path: bytes, first: int, count: int | None) -> " KITH_PY_VECTORS),
             "float32, uint8 or int64 by what the file holds; the array owns Kith's memory.");
  module.def("write_vectors", &write, nb::arg("path"), nb::arg("array").noconvert(),
             nb::sig("def write_vectors(path: bytes, array: " KITH_PY_VECTORS ") -> None"));
  module.def("write_ids", &write_ids, nb::arg("path"), nb::arg("ids").noconvert());
}

}  // namespace kith::python
