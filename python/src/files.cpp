// Vector and id files. Paths come as bytes, the way the system knows them. bf16, which numpy lacks, passes as uint16.
//
// Large files go in pieces, so that Ctrl-C is heard between two of them.
#include "array.hpp"
#include "call.hpp"
#include "module.hpp"

#include <kith/error.hpp>
#include <kith/mapped_vectors.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <memory>
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

void check_count(std::optional<int64_t> count) {
  if (count && *count < 0) throw InvalidArgument(fmt::format("count = {}; it must not be negative", *count));
}

// How many rows are taken from `first` on.
int64_t checked_count(const std::string& path, int64_t rows, int64_t first, std::optional<int64_t> wanted) {
  const int64_t count = wanted.value_or(std::max<int64_t>(0, rows - std::max<int64_t>(0, first)));
  if (first < 0 || first > rows || count > rows - first) {
    throw InvalidArgument(
        fmt::format("{}: {} rows from row {} on are asked for, the file has {}", path, count, first, rows));
  }
  return count;
}

nb::object read_id_rows(const std::string& path, int64_t first, std::optional<int64_t> wanted) {
  const IdFile file(path);
  const int64_t count = checked_count(path, file.rows(), first, wanted);
  const int64_t row_bytes = file.cols() * static_cast<int64_t>(sizeof(int64_t));
  Call call;
  HostBuffer ids(count * row_bytes, "the ids read", call.resources());
  call.run([&] {
    in_pieces(count, row_bytes, call, [&](int64_t done, int64_t rows) {
      file.read(first + done, rows, ids.as<int64_t>() + done * file.cols());
    });
  });
  return ids_array(std::move(ids), count, file.cols());
}

nb::object read(const nb::bytes& path_bytes, int64_t first, std::optional<int64_t> count,
                const std::optional<std::string>& dtype) {
  const std::string path = path_of(path_bytes);
  check_count(count);
  const FileInfo info = file_info(path);
  if (info.content == FileContent::ids) {
    if (dtype) throw InvalidArgument(fmt::format("{} holds ids, which are int64: dtype is for vectors", path));
    return read_id_rows(path, first, count);
  }
  // Unless a dtype is asked for, bf16 comes as float32, which holds all of its values and which numpy knows.
  const DType stored = parse_dtype(info.dtype);
  const DType wanted = dtype ? parse_dtype(*dtype) : stored == DType::bf16 ? DType::f32 : stored;
  MatrixBuffer vectors;
  Call call;
  call.run([&] { vectors = read_vectors(path, {first, count.value_or(-1)}, wanted, call.resources()); });
  return vectors_array(std::move(vectors));
}

nb::dlpack::dtype mapped_dtype(const std::string& stored) {
  if (stored == "i32") return nb::dtype<int32_t>();
  if (stored == "i64") return nb::dtype<int64_t>();
  return array_dtype(parse_dtype(stored));
}

nb::object map(const nb::bytes& path_bytes, int64_t first, std::optional<int64_t> wanted) {
  const std::string path = path_of(path_bytes);
  check_count(wanted);
  auto opened = std::make_unique<MappedFile>(path);
  const FileInfo& info = opened->info();
  const int64_t count = checked_count(path, info.rows, first, wanted);
  const nb::dlpack::dtype dtype = mapped_dtype(info.dtype);
  const MappedFile* const kept = opened.get();
  nb::capsule owner(opened.release(), [](void* pointer) noexcept { delete static_cast<MappedFile*>(pointer); });
  const void* data = count == 0 ? nullptr : static_cast<const std::byte*>(kept->data()) + first * kept->row_stride() * dtype.bits / 8;
  const size_t shape[] = {static_cast<size_t>(count), static_cast<size_t>(info.cols)};
  const int64_t strides[] = {kept->row_stride(), 1};
  return nb::ndarray<nb::numpy, nb::ro, nb::ndim<2>>(data, 2, shape, owner, strides, dtype).cast();
}

// "f32", "i64", ...: as the file stores it.
std::string stored_dtype(const nb::bytes& path) { return file_info(path_of(path)).dtype; }

std::optional<bool> holds_ids(const nb::bytes& path) {
  const std::optional<FileContent> content = content_by_extension(path_of(path));
  return content ? std::optional(*content == FileContent::ids) : std::nullopt;
}

void write(const nb::bytes& path, const HostVectorArray& vectors, const std::optional<std::string>& dtype, bool bits) {
  const MatrixView view = bits ? view_as(vectors, DType::bf16, "array") : view_of(vectors, "array");
  const DType wanted = dtype ? parse_dtype(*dtype) : view.dtype();
  Call call;
  call.run([&] { write_vectors(path_of(path), view, wanted, call.resources()); });
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
  module.def(
      "read_vectors", &read, nb::arg("path"), nb::arg("first"), nb::arg("count").none(), nb::arg("dtype").none(),
      nb::sig(
          "def read_vectors(path: bytes, first: int, count: int | None, dtype: str | None) -> " KITH_PY_HOST_VECTORS),
      "The vectors of a file, or int64 for ids; the array owns Kith's memory.");
  module.def("map_file", &map, nb::arg("path"), nb::arg("first"), nb::arg("count").none(),
             nb::sig("def map_file(path: bytes, first: int, count: int | None) -> " KITH_PY_HOST_VECTORS),
             "The values of a file where they lie, read-only; the array keeps the mapping.");
  module.def("stored_dtype", &stored_dtype, nb::arg("path"), "f32, f16, bf16, u8, i8, i32 or i64.");
  module.def("holds_ids", &holds_ids, nb::arg("path"), "By the ending alone; None where a file may hold either.");
  module.def(
      "write_vectors", &write, nb::arg("path"), nb::arg("array").noconvert(), nb::arg("dtype").none(), nb::arg("bits"),
      nb::sig("def write_vectors(path: bytes, array: " KITH_PY_HOST_VECTORS ", dtype: str | None, bits: bool) -> None"),
      "With `bits` the array is uint16 and holds bf16.");
  module.def("write_ids", &write_ids, nb::arg("path"), nb::arg("ids").noconvert());
}

}  // namespace kith::python
