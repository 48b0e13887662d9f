#include "device_array.hpp"

#include "module.hpp"

#include <kith/device_memory.hpp>
#include <kith/error.hpp>
#include <kith/host_buffer.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace kith::python {
namespace {

using nb::dlpack::dtype_code;

// numpy's name of a dtype, the letter that __cuda_array_interface__ has for its kind, and DLPack's description.
struct NamedDtype {
  const char* name;
  const char* kind;
  nb::dlpack::dtype dtype;
};

constexpr nb::dlpack::dtype described(dtype_code code, uint8_t bits) { return {static_cast<uint8_t>(code), bits, 1}; }

constexpr NamedDtype kDtypes[] = {
    {"float32", "f", described(dtype_code::Float, 32)},
    {"float16", "f", described(dtype_code::Float, 16)},
    {"bfloat16", "", described(dtype_code::Bfloat, 16)},
    {"uint8", "u", described(dtype_code::UInt, 8)},
    {"int8", "i", described(dtype_code::Int, 8)},
    {"float64", "f", described(dtype_code::Float, 64)},
    {"int16", "i", described(dtype_code::Int, 16)},
    {"uint16", "u", described(dtype_code::UInt, 16)},
    {"int32", "i", described(dtype_code::Int, 32)},
    {"uint32", "u", described(dtype_code::UInt, 32)},
    {"int64", "i", described(dtype_code::Int, 64)},
    {"uint64", "u", described(dtype_code::UInt, 64)},
    {"bool", "b", described(dtype_code::Bool, 8)},
    {"complex64", "c", described(dtype_code::Complex, 64)},
    {"complex128", "c", described(dtype_code::Complex, 128)},
};

// What the library reads.
std::optional<DType> stored_dtype(nb::dlpack::dtype dtype) {
  if (dtype == described(dtype_code::Float, 32)) return DType::f32;
  if (dtype == described(dtype_code::Float, 16)) return DType::f16;
  if (dtype == described(dtype_code::Bfloat, 16)) return DType::bf16;
  if (dtype == described(dtype_code::UInt, 8)) return DType::u8;
  if (dtype == described(dtype_code::Int, 8)) return DType::i8;
  if (dtype == described(dtype_code::Float, 64)) return DType::f64;
  return std::nullopt;
}

// "<f4": little-endian as every CUDA host is, or '|' where there is no order.
nb::dlpack::dtype of_type_string(const std::string& text, const std::string& name) {
  for (const NamedDtype& known : kDtypes) {
    const std::string letters = fmt::format("{}{}", known.kind, known.dtype.bits / 8);
    if (*known.kind != '\0' && text.size() > 1 && (text[0] == '<' || text[0] == '|') && text.substr(1) == letters) {
      return known.dtype;
    }
  }
  throw InvalidArgument(
      fmt::format("{}: __cuda_array_interface__ has the typestr '{}', which Kith does not know", name, text));
}

std::vector<int64_t> packed_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

}  // namespace

DeviceArray DeviceArray::from_dlpack(const nb::object& given, const std::string& name) {
  nb::ndarray<nb::ro> array;
  if (given.is_none() || !nb::try_cast(given, array, false)) {
    throw nb::type_error(fmt::format("{}: __dlpack__ gives a {} that is no DLPack capsule, or one that was used before",
                                     name, nb::type_name(given.type()).c_str())
                             .c_str());
  }
  if (array.device_type() != nb::device::cuda::value) {
    throw nb::type_error(fmt::format("{} lies on a device of DLPack's type {}; Kith reads host memory and that of CUDA "
                                     "devices",
                                     name, array.device_type())
                             .c_str());
  }
  DeviceArray made;
  made.data_ = const_cast<void*>(array.data());
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    made.shape_.push_back(static_cast<int64_t>(array.shape(axis)));
    made.strides_.push_back(array.stride(axis));
  }
  made.dtype_ = array.dtype();
  made.device_ = array.device_id();
  made.owner_ = nb::capsule(new nb::ndarray<nb::ro>(array),
                            [](void* kept) noexcept { delete static_cast<nb::ndarray<nb::ro>*>(kept); });
  return made;
}

DeviceArray DeviceArray::from_interface(const Interface& told, nb::object owner, const std::string& name) {
  DeviceArray made;
  made.data_ = reinterpret_cast<void*>(told.data);
  made.read_only_ = told.read_only;
  made.shape_ = told.shape;
  made.dtype_ = of_type_string(told.typestr, name);
  made.strides_ = told.strides ? *told.strides : packed_strides(made.shape_);
  if (told.strides) {
    const int64_t size = made.dtype_.bits / 8;
    for (int64_t& step : made.strides_) {
      if (step % size != 0) {
        throw InvalidArgument(fmt::format("{}: __cuda_array_interface__ has strides of broken elements", name));
      }
      step /= size;
    }
  }
  made.device_ = made.data_ == nullptr ? 0 : device_of(made.data_);
  made.owner_ = std::move(owner);
  return made;
}

DeviceArray DeviceArray::empty(int64_t rows, int64_t cols, const std::string& dtype, int device) {
  DeviceArray made;
  const auto* const known =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const NamedDtype& d) { return dtype == d.name; });
  if (known == std::end(kDtypes)) throw InvalidArgument(fmt::format("unknown dtype '{}'", dtype));
  made.dtype_ = known->dtype;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, cols, &bytes) || __builtin_mul_overflow(bytes, made.dtype_.bits / 8, &bytes)) {
    throw InvalidArgument(fmt::format("{} x {} values are more than any memory holds", rows, cols));
  }
  auto memory = allocate_on_device(bytes, "a result", device, Resources());
  made.data_ = memory.get();
  made.shape_ = {rows, cols};
  made.strides_ = packed_strides(made.shape_);
  made.device_ = device;
  using Memory = std::shared_ptr<std::byte>;
  made.owner_ =
      nb::capsule(new Memory(std::move(memory)), [](void* kept) noexcept { delete static_cast<Memory*>(kept); });
  return made;
}

MatrixView DeviceArray::view(const char* name) const {
  const std::optional<DType> stored = stored_dtype(dtype_);
  if (!stored) {
    throw InvalidArgument(
        fmt::format("{} is {}; Kith reads float32, float16, bfloat16, uint8, int8 and float64", name, dtype()));
  }
  if (shape_.size() != 1 && shape_.size() != 2) {
    throw InvalidArgument(fmt::format("{} has {} axes; it must be 2-D, one vector per row", name, shape_.size()));
  }
  if (!readable_in_place()) throw InvalidArgument(fmt::format("{}: columns must be contiguous", name));
  MatrixShape shape;
  shape.rows = shape_.size() == 1 ? 1 : shape_[0];
  shape.cols = shape_.back();
  // Strides along an axis of one, or of an empty array, say nothing: any number may stand there.
  shape.row_stride = shape.rows > 1 && shape.cols > 0 ? strides_[0] : shape.cols;
  return {data_, *stored, shape, space()};
}

void DeviceArray::check_writable(const char* name, nb::dlpack::dtype dtype, int64_t rows, int64_t cols) const {
  if (read_only_) throw InvalidArgument(fmt::format("out: {} may only be read", name));
  if (dtype_ != dtype || !c_contiguous()) {
    throw InvalidArgument(fmt::format("out: {} are {} or not C-contiguous", name, this->dtype()));
  }
  const int64_t given_rows = shape_.size() == 1 ? 1 : shape_[0];
  if (given_rows != rows || shape_.back() != cols) {
    throw InvalidArgument(fmt::format("out: {} hold {} x {} values, but {} x {} are needed", name, given_rows,
                                      shape_.back(), rows, cols));
  }
}

std::string DeviceArray::dtype() const {
  for (const NamedDtype& known : kDtypes) {
    if (known.dtype == dtype_) return known.name;
  }
  return fmt::format("DLPack's dtype ({}, {}, {})", static_cast<int>(dtype_.code), static_cast<int>(dtype_.bits),
                     static_cast<int>(dtype_.lanes));
}

bool DeviceArray::readable_in_place() const {
  if (shape_.empty() || std::find(shape_.begin(), shape_.end(), 0) != shape_.end()) return true;
  if (reinterpret_cast<uintptr_t>(data_) % (dtype_.bits / 8u) != 0) return false;
  const bool columns = shape_.back() == 1 || strides_.back() == 1;
  return columns && (shape_.size() == 1 || shape_[0] == 1 || strides_[0] >= shape_[1]);
}

bool DeviceArray::c_contiguous() const {
  if (std::find(shape_.begin(), shape_.end(), 0) != shape_.end()) return true;
  int64_t step = 1;
  for (size_t axis = shape_.size(); axis-- > 0;) {
    if (shape_[axis] > 1 && strides_[axis] != step) return false;
    step *= shape_[axis];
  }
  return true;
}

// The first byte and the one after the last.
std::pair<uintptr_t, uintptr_t> DeviceArray::extent() const {
  auto first = reinterpret_cast<uintptr_t>(data_);
  auto last = first;
  const int64_t size = dtype_.bits / 8;
  for (size_t axis = 0; axis < shape_.size(); ++axis) {
    if (shape_[axis] == 0) return {first, first};
    const int64_t reach = (shape_[axis] - 1) * strides_[axis] * size;
    (reach < 0 ? first : last) += static_cast<uintptr_t>(reach);
  }
  return {first, last + static_cast<uintptr_t>(size)};
}

bool DeviceArray::overlaps(const DeviceArray& other) const {
  const auto [begin, end] = extent();
  const auto [other_begin, other_end] = other.extent();
  return device_ == other.device_ && begin < other_end && other_begin < end;
}

nb::object DeviceArray::dlpack(const nb::kwargs& arguments) const {
  const std::vector<size_t> shape(shape_.begin(), shape_.end());
  nb::ndarray<nb::array_api> array(data_, shape.size(), shape.data(), owner_, strides_.data(), dtype_,
                                   nb::device::cuda::value, device_);
  return array.cast().attr("__dlpack__")(**arguments);
}

nb::dict DeviceArray::interface() const {
  nb::dict described;
  const auto* const known =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const NamedDtype& d) { return d.dtype == dtype_; });
  if (known == std::end(kDtypes) || *known->kind == '\0') {
    throw nb::type_error(fmt::format("__cuda_array_interface__ has no name for {}", dtype()).c_str());
  }
  const int64_t size = dtype_.bits / 8;
  nb::list strides;
  for (const int64_t step : strides_) strides.append(step * size);
  described["shape"] = nb::tuple(nb::cast(shape_));
  described["typestr"] = fmt::format("{}{}{}", size == 1 ? '|' : '<', known->kind, size);
  described["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(data_), false);
  described["strides"] = nb::tuple(strides);
  described["stream"] = nb::none();  // what it holds is complete
  described["version"] = 3;
  return described;
}

nb::object DeviceArray::to_host() const {
  if (!c_contiguous()) throw InvalidArgument("only a C-contiguous array is copied to the host");
  const std::vector<size_t> shape(shape_.begin(), shape_.end());
  int64_t bytes = dtype_.bits / 8;
  for (const int64_t length : shape_) bytes *= length;
  auto* const kept = new HostBuffer(bytes, "a copy on the host", Resources());
  const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<HostBuffer*>(pointer); });
  {
    const nb::gil_scoped_release released;
    if (bytes > 0) copy_to_host(data_, bytes, device_, kept->data());
  }
  return nb::ndarray<nb::numpy>(kept->data(), shape.size(), shape.data(), owner, nullptr, dtype_).cast();
}

DeviceArray DeviceArray::first_row() const {
  DeviceArray row = *this;
  row.shape_ = {shape_.back()};
  row.strides_ = {strides_.back()};
  return row;
}

void bind_device_array(nb::module_& module) {
  nb::class_<DeviceArray>(
      module, "DeviceArray",
      "An array in a GPU's memory that Kith made, for libraries that it does not know.\n\n"
      "It speaks DLPack and ``__cuda_array_interface__``, so that others can take it where it lies: "
      "``numba.cuda.as_cuda_array(x)``, ``cupy.asarray(x)``, ``torch.from_dlpack(x)``. What it holds "
      "is complete.")
      .def_prop_ro(
          "shape", [](const DeviceArray& self) { return nb::tuple(nb::cast(self.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The length of each axis.")
      .def_prop_ro("dtype", &DeviceArray::dtype, "Numpy's name of the dtype.")
      .def_prop_ro("device", &DeviceArray::device, "The number of the CUDA device.")
      .def("__dlpack__", &DeviceArray::dlpack, nb::sig("def __dlpack__(self, **arguments: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const DeviceArray& self) { return nb::make_tuple(int{nb::device::cuda::value}, self.device()); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("__cuda_array_interface__", &DeviceArray::interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"))
      .def("__repr__", [](const DeviceArray& self) {
        return fmt::format("kith.DeviceArray(shape=({}), dtype={}, device=cuda:{})", fmt::join(self.shape(), ", "),
                           self.dtype(), self.device());
      });
  module.def("import_dlpack", &DeviceArray::from_dlpack, nb::arg("array").none(), nb::arg("name") = "the array",
             nb::sig("def import_dlpack(array: typing.Any, name: str = ...) -> DeviceArray"));
  module.def(
      "import_interface",
      [](uintptr_t data, bool read_only, std::vector<int64_t> shape, std::optional<std::vector<int64_t>> strides,
         std::string typestr, nb::object owner, const std::string& name) {
        const Interface told{data, read_only, std::move(shape), std::move(strides), std::move(typestr)};
        return DeviceArray::from_interface(told, std::move(owner), name);
      },
      nb::arg("data"), nb::arg("read_only"), nb::arg("shape"), nb::arg("strides").none(), nb::arg("typestr"),
      nb::arg("owner"), nb::arg("name"), "What __cuda_array_interface__ says, checked before; strides in bytes.");
  module.def("empty_on_device", &DeviceArray::empty, nb::arg("rows"), nb::arg("cols"), nb::arg("dtype"),
             nb::arg("device"));
  module.def("copy_to_host", &DeviceArray::to_host, nb::arg("array"),
             nb::sig("def copy_to_host(array: DeviceArray) -> numpy.typing.NDArray[typing.Any]"));
  module.def("first_row", &DeviceArray::first_row, nb::arg("array"));
  module.def("overlap", &DeviceArray::overlaps, nb::arg("a"), nb::arg("b"));
  module.def("readable_in_place", &DeviceArray::readable_in_place, nb::arg("array"));
  module.def("c_contiguous", &DeviceArray::c_contiguous, nb::arg("array"));
  module.def("wait_for_device", &wait_for_device, nb::arg("device"), nb::call_guard<nb::gil_scoped_release>(),
             "Until all that was enqueued on that CUDA device is done.");
}

}  // namespace kith::python
