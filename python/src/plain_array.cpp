#include "plain_array.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace kith::python {
namespace {

// How an array begins (PyArrayObject), which is the same in every numpy.
struct NumpyArray {
  PyObject head;
  void* data;
  int axes;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // bytes
  PyObject* base;
  PyObject* dtype;
  int flags;
};
constexpr int kWritable = 0x0001 | 0x0100 | 0x0400;  // C-contiguous, aligned, writeable

struct NumpyDType {
  PyObject* object;
  DType dtype;
};

// numpy's own function behind numpy.empty(), which spends as long again on its arguments. It takes over a reference to
// the dtype.
using MakeEmpty = PyObject* (*)(int axes, const Py_ssize_t* shape, PyObject* dtype, int by_columns);

// Kept for ever: at exit numpy may be gone before static objects are.
struct Numpy {
  PyObject* ndarray;
  MakeEmpty empty;
  PyObject* int64;
  PyObject* float32;
  std::array<NumpyDType, 5> dtypes;
  bool readable;  // arrays lie as NumpyArray
};

nb::object empty(const Numpy& numpy, std::initializer_list<Py_ssize_t> shape, PyObject* dtype) {
  Py_INCREF(dtype);
  nb::object array = nb::steal(numpy.empty(static_cast<int>(shape.size()), shape.begin(), dtype, 0));
  if (!array.is_valid()) throw nb::python_error();
  return array;
}

// From numpy's table of functions for compiled modules, whose numbers are the same in every version.
MakeEmpty find_empty() {
  constexpr size_t kNumberOfEmpty = 184;
  nb::object module;
  try {
    module = nb::module_::import_("numpy._core._multiarray_umath");
  } catch (nb::python_error&) {  // before numpy 2
    module = nb::module_::import_("numpy.core._multiarray_umath");
  }
  const nb::object capsule = module.attr("_ARRAY_API");
  auto* const* const table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (table == nullptr) throw nb::python_error();
  return reinterpret_cast<MakeEmpty>(table[kNumberOfEmpty]);
}

const NumpyArray& array_of(const nb::object& array) { return *reinterpret_cast<const NumpyArray*>(array.ptr()); }

// Whether an array lies as NumpyArray, by what the buffer protocol says of it. What is no pointer is not followed.
bool lies_so(const Numpy& numpy, const nb::object& array) {
  if (nb::cast<int64_t>(nb::handle(numpy.ndarray).attr("__basicsize__")) < int64_t{sizeof(NumpyArray)}) return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_STRIDED) != 0) {
    PyErr_Clear();
    return false;
  }
  const NumpyArray& fields = array_of(array);
  const bool same = fields.data == buffer.buf && fields.axes == buffer.ndim && fields.base == nullptr &&
                    fields.dtype == numpy.float32 && (fields.flags & kWritable) == kWritable &&
                    std::equal(buffer.shape, buffer.shape + buffer.ndim, fields.shape) &&
                    std::equal(buffer.strides, buffer.strides + buffer.ndim, fields.strides);
  PyBuffer_Release(&buffer);
  return same;
}

const Numpy& numpy() {
  static const Numpy known = [] {
    const nb::module_ module = nb::module_::import_("numpy");
    const auto dtype = [&](const char* name) { return nb::object(module.attr("dtype")(name)).release().ptr(); };
    Numpy made{nb::object(module.attr("ndarray")).release().ptr(),
               find_empty(),
               dtype("int64"),
               dtype("float32"),
               {},
               false};
    made.dtypes = {{{made.float32, DType::f32},
                    {dtype("float16"), DType::f16},
                    {dtype("uint8"), DType::u8},
                    {dtype("int8"), DType::i8},
                    {dtype("float64"), DType::f64}}};
    made.readable = lies_so(made, empty(made, {2, 3}, made.float32));
    return made;
  }();
  return known;
}

// Null where it is not an array of numpy's own.
const NumpyArray* plain_array(PyObject* array) {
  const Numpy& known = numpy();
  if (!known.readable || reinterpret_cast<PyObject*>(Py_TYPE(array)) != known.ndarray) return nullptr;
  return reinterpret_cast<const NumpyArray*>(array);
}

// Nearly always the one object that numpy has for it; of an array that was pickled, an equal one.
bool is_dtype(PyObject* given, PyObject* wanted) {
  if (given == wanted) return true;
  const int equal = PyObject_RichCompareBool(given, wanted, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

std::optional<DType> dtype_of(PyObject* given) {
  for (const NumpyDType& one : numpy().dtypes) {
    if (given == one.object) return one.dtype;
  }
  for (const NumpyDType& one : numpy().dtypes) {
    if (is_dtype(given, one.object)) return one.dtype;
  }
  return std::nullopt;
}

bool is_aligned(const void* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

// Columns contiguous, rows apart by whole values and not overlapping, all of them aligned; as the package's
// readable_in_place() has it.
bool readable_in_place(const NumpyArray& array, const MatrixShape& shape, int64_t bytes) {
  if (!is_aligned(array.data, bytes)) return false;
  if (shape.cols > 1 && array.strides[array.axes - 1] != bytes) return false;
  return shape.rows <= 1 || (array.strides[0] >= shape.cols * bytes && array.strides[0] % bytes == 0);
}

// The values of an array of this shape and dtype that can be written to, row after row; null where it is another.
template <typename T>
T* writable(PyObject* given, PyObject* dtype, int64_t queries, int64_t k, bool single) {
  const NumpyArray* const array = plain_array(given);
  if (array == nullptr || (array->flags & kWritable) != kWritable || !is_dtype(array->dtype, dtype)) return nullptr;
  const bool shaped = single ? array->axes == 1 && array->shape[0] == k
                             : array->axes == 2 && array->shape[0] == queries && array->shape[1] == k;
  return shaped && is_aligned(array->data, sizeof(T)) ? static_cast<T*>(array->data) : nullptr;
}

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return first < second + static_cast<uintptr_t>(b_bytes) && second < first + static_cast<uintptr_t>(a_bytes);
}

}  // namespace

PlainRows::PlainRows(nb::handle given) {
  const NumpyArray* const array = plain_array(given.ptr());
  if (array == nullptr || (array->axes != 1 && array->axes != 2)) return;
  const std::optional<DType> dtype = dtype_of(array->dtype);
  if (!dtype) return;
  const int64_t bytes = size_of(*dtype);
  single_ = array->axes == 1;
  MatrixShape shape;
  shape.rows = single_ ? 1 : array->shape[0];
  shape.cols = array->shape[array->axes - 1];
  if (!readable_in_place(*array, shape, bytes)) return;
  shape.row_stride = shape.rows > 1 ? array->strides[0] / bytes : shape.cols;
  view_.emplace(array->data, *dtype, shape);
}

PlainNeighbors::PlainNeighbors(int64_t queries, int64_t k, bool single) {
  const auto made = [&](PyObject* dtype) {
    return single ? empty(numpy(), {k}, dtype) : empty(numpy(), {queries, k}, dtype);
  };
  ids_ = made(numpy().int64);
  distances_ = made(numpy().float32);
  view_ = {static_cast<int64_t*>(array_of(ids_).data), static_cast<float*>(array_of(distances_).data), queries, k, {}};
}

std::optional<NeighborsView> given_neighbors(nb::handle out, const MatrixView& queries, int64_t k, bool single) {
  if (!PyTuple_CheckExact(out.ptr()) || PyTuple_Size(out.ptr()) != 2) return std::nullopt;
  auto* const ids = writable<int64_t>(PyTuple_GetItem(out.ptr(), 0), numpy().int64, queries.rows(), k, single);
  auto* const distances = writable<float>(PyTuple_GetItem(out.ptr(), 1), numpy().float32, queries.rows(), k, single);
  if (ids == nullptr || distances == nullptr) return std::nullopt;
  const int64_t count = queries.rows() * k;
  const int64_t id_bytes = count * int64_t{sizeof(int64_t)};
  const int64_t distance_bytes = count * int64_t{sizeof(float)};
  const int64_t read = queries.rows() * queries.row_stride() * size_of(queries.dtype());
  if (overlap(ids, id_bytes, distances, distance_bytes) || overlap(ids, id_bytes, queries.data(), read) ||
      overlap(distances, distance_bytes, queries.data(), read)) {
    return std::nullopt;
  }
  return NeighborsView{ids, distances, queries.rows(), k, {}};
}

PlainMatrix::PlainMatrix(int64_t rows, int64_t cols)
    : values_(empty(numpy(), {rows, cols}, numpy().float32)),
      view_(static_cast<float*>(array_of(values_).data), rows, cols) {}

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
