// An array in a GPU's memory, of any library or of Kith's own: where it lies, how it is laid out, and what keeps it
// alive. The package makes one from DLPack or from __cuda_array_interface__, and hands out those that are Kith's own,
// which speak both protocols in turn.
#pragma once

#include <kith/view.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith::python {

namespace nb = nanobind;

// What __cuda_array_interface__ says, with numbers that the package has found to be possible.
struct Interface {
  uintptr_t data;
  bool read_only;
  std::vector<int64_t> shape;
  std::optional<std::vector<int64_t>> strides;  // in bytes
  std::string typestr;
};

class DeviceArray {
 public:
  DeviceArray() = default;

  // A capsule, which is used up, or anything with __dlpack__. TypeError, with the argument's name, for what is neither
  // or lies in no CUDA device's memory.
  static DeviceArray from_dlpack(const nb::object& given, const std::string& name);
  // With the object that said it, and the argument's name.
  static DeviceArray from_interface(const Interface& told, nb::object owner, const std::string& name);
  // Kith's own memory, uninitialised.
  static DeviceArray empty(int64_t rows, int64_t cols, const std::string& dtype, int device);

  // Rows of one vector each; a single one where there is one axis. InvalidArgument, with the argument's name, for a
  // dtype or a layout that the library cannot read.
  MatrixView view(const char* name) const;
  // Where results go: rows x cols values of that type, C-contiguous. InvalidArgument where it is none such.
  template <typename T>
  T* writable(const char* name, int64_t rows, int64_t cols) const {
    check_writable(name, nb::dtype<T>(), rows, cols);
    return static_cast<T*>(data_);
  }

  MemorySpace space() const { return MemorySpace::cuda(device_); }
  int device() const { return device_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  std::string dtype() const;  // numpy's name for it, or "bfloat16"
  // Whether the columns of a row are contiguous and rows do not overlap.
  bool readable_in_place() const;
  bool c_contiguous() const;
  // Whether some byte may belong to both.
  bool overlaps(const DeviceArray& other) const;

  nb::object dlpack(const nb::kwargs& arguments) const;
  nb::dict interface() const;
  // A copy as a numpy array, once all work on the device is done. InvalidArgument where it is not C-contiguous.
  nb::object to_host() const;
  // The first of its rows, as an array of one axis in the same memory.
  DeviceArray first_row() const;

 private:
  void check_writable(const char* name, nb::dlpack::dtype dtype, int64_t rows, int64_t cols) const;
  std::pair<uintptr_t, uintptr_t> extent() const;

  void* data_ = nullptr;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;  // in elements
  nb::dlpack::dtype dtype_ = {};
  int device_ = 0;
  bool read_only_ = false;  // what __cuda_array_interface__ says; DLPack does not tell
  nb::object owner_;
};

}  // namespace kith::python
