#include "plain_array.hpp"

namespace kith::python {
namespace {

// Kept for ever: at exit numpy may be gone before static objects are.
struct Numpy {
  PyObject* ndarray;
  PyObject* empty;
  PyObject* int64;
  PyObject* float32;
};

const Numpy& numpy() {
  static const Numpy known = [] {
    const nb::module_ module = nb::module_::import_("numpy");
    const auto dtype = [&](const char* name) { return nb::object(module.attr("dtype")(name)).release().ptr(); };
    return Numpy{nb::object(module.attr("ndarray")).release().ptr(), nb::object(module.attr("empty")).release().ptr(),
                 dtype("int64"), dtype("float32")};
  }();
  return known;
}

std::optional<DType> dtype_of(const char* format) {
  if (format == nullptr || format[0] == '\0' || format[1] != '\0') return std::nullopt;
  switch (format[0]) {
    case 'f': return DType::f32;
    case 'e': return DType::f16;
    case 'B': return DType::u8;
    case 'b': return DType::i8;
    case 'd': return DType::f64;
    default: return std::nullopt;
  }
}

// Columns contiguous, rows apart by whole values and not overlapping, all of them aligned; as the package's
// readable_in_place() has it.
bool readable_in_place(const Py_buffer& buffer, const MatrixShape& shape) {
  const auto bytes = static_cast<int64_t>(buffer.itemsize);
  if (reinterpret_cast<uintptr_t>(buffer.buf) % static_cast<uintptr_t>(bytes) != 0) return false;
  if (shape.cols > 1 && buffer.strides[buffer.ndim - 1] != bytes) return false;
  return shape.rows <= 1 || (buffer.strides[0] >= shape.cols * bytes && buffer.strides[0] % bytes == 0);
}

nb::object empty(PyObject* shape, PyObject* dtype) {
  PyObject* const arguments[] = {shape, dtype};
  nb::object array = nb::steal(PyObject_Vectorcall(numpy().empty, arguments, 2, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  return array;
}

// Where a fresh array begins, which does not move.
template <typename T>
T* begin_of(const nb::object& array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_CONTIG) != 0) throw nb::python_error();
  PyBuffer_Release(&buffer);
  return static_cast<T*>(buffer.buf);
}

// Takes hold of an array of numpy's that can be written to, row after row, with values of so many bytes and one of these
// formats; false where it is something else.
bool take_writable(PyObject* array, Py_ssize_t bytes, std::string_view formats, Py_buffer& buffer) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(array)) != numpy().ndarray) return false;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_CONTIG | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    buffer = {};
    return false;
  }
  const std::string_view format = buffer.format == nullptr ? "" : buffer.format;
  return buffer.itemsize == bytes && format.size() == 1 && formats.find(format[0]) != std::string_view::npos &&
         reinterpret_cast<uintptr_t>(buffer.buf) % static_cast<uintptr_t>(bytes) == 0;
}

bool has_shape(const Py_buffer& buffer, int64_t queries, int64_t k, bool single) {
  if (single) return buffer.ndim == 1 && buffer.shape[0] == k;
  return buffer.ndim == 2 && buffer.shape[0] == queries && buffer.shape[1] == k;
}

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return first < second + static_cast<uintptr_t>(b_bytes) && second < first + static_cast<uintptr_t>(a_bytes);
}

}  // namespace

PlainRows::PlainRows(nb::handle array) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(array.ptr())) != numpy().ndarray) return;
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // a dtype that the protocol has no word for
    buffer_ = {};
    return;
  }
  const std::optional<DType> dtype = dtype_of(buffer_.format);
  if (!dtype || (buffer_.ndim != 1 && buffer_.ndim != 2)) return;
  MatrixShape shape;
  shape.rows = single() ? 1 : buffer_.shape[0];
  shape.cols = buffer_.shape[buffer_.ndim - 1];
  if (!readable_in_place(buffer_, shape)) return;
  shape.row_stride = shape.rows > 1 ? buffer_.strides[0] / buffer_.itemsize : shape.cols;
  view_.emplace(buffer_.buf, *dtype, shape);
}

PlainRows::~PlainRows() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

PlainNeighbors::PlainNeighbors(int64_t queries, int64_t k, bool single) {
  const nb::tuple shape = single ? nb::make_tuple(k) : nb::make_tuple(queries, k);
  ids_ = empty(shape.ptr(), numpy().int64);
  distances_ = empty(shape.ptr(), numpy().float32);
  view_ = {begin_of<int64_t>(ids_), begin_of<float>(distances_), queries, k, {}};
}

GivenNeighbors::GivenNeighbors(nb::handle out, const MatrixView& queries, int64_t k, bool single) {
  if (!PyTuple_CheckExact(out.ptr()) || PyTuple_Size(out.ptr()) != 2) return;
  const bool plain = take_writable(PyTuple_GetItem(out.ptr(), 0), sizeof(int64_t), "lq", ids_) &&
                     take_writable(PyTuple_GetItem(out.ptr(), 1), sizeof(float), "f", distances_);
  if (!plain || !has_shape(ids_, queries.rows(), k, single) || !has_shape(distances_, queries.rows(), k, single)) return;
  const int64_t read = queries.rows() * queries.row_stride() * size_of(queries.dtype());
  if (overlap(ids_.buf, ids_.len, distances_.buf, distances_.len) ||
      overlap(ids_.buf, ids_.len, queries.data(), read) ||
      overlap(distances_.buf, distances_.len, queries.data(), read)) {
    return;
  }
  view_ = {static_cast<int64_t*>(ids_.buf), static_cast<float*>(distances_.buf), queries.rows(), k, {}};
}

GivenNeighbors::~GivenNeighbors() {
  for (Py_buffer* const buffer : {&ids_, &distances_}) {
    if (buffer->obj != nullptr) PyBuffer_Release(buffer);
  }
}

PlainMatrix::PlainMatrix(int64_t rows, int64_t cols)
    : values_(empty(nb::make_tuple(rows, cols).ptr(), numpy().float32)),
      view_(begin_of<float>(values_), rows, cols) {}

std::optional<int64_t> plain_number(nb::handle value) {
  if (!PyLong_CheckExact(value.ptr())) return std::nullopt;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0 ? std::optional<int64_t>(number) : std::nullopt;
}

std::optional<std::string_view> plain_text(nb::handle value) {
  if (!PyUnicode_CheckExact(value.ptr())) return std::nullopt;
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string_view(text, static_cast<size_t>(size));
}

}  // namespace kith::python
