// Checks and converts arguments from C. All functions throw InvalidArgument that names the argument.
//
// Structs grow: `taken` reads one of any version. A shorter one comes from an older program; its missing fields are 0,
// which is their default. A longer one comes from a newer program, and is accepted if all bytes that this version does
// not know are 0.
#pragma once

#include <kith/kith.h>
#include <kith/error.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

struct kith_resources {
  kith::Resources resources;
};

namespace kith::capi {

// Throws an error about an argument that must not be NULL.
[[noreturn]] void refuse_null(const char* name);

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) refuse_null(name);
  return *pointer;
}

inline const char* required_text(const char* text, const char* name) { return &required(text, name); }

// The size of a struct in the first version that had it. Specialise it once the struct has grown.
template <typename T>
inline constexpr size_t kLeastSize = sizeof(T);

// Throws if no version of the struct has this size.
void check_struct_size(size_t given, size_t least, const char* type);
// Throws where bytes of a newer program's struct are not 0.
void check_unknown_fields(const void* given, size_t known, size_t size, const char* type);

// `type` is the struct's name, for errors.
template <typename T>
T taken(const T* given, const char* type) {
  T known = {};
  if (given == nullptr) return known;
  const size_t size = given->struct_size;
  check_struct_size(size, kLeastSize<T>, type);
  std::memcpy(static_cast<void*>(&known), given, std::min(size, sizeof(T)));
  check_unknown_fields(given, sizeof(T), size, type);
  if constexpr (requires { known.reserved; }) {
    if (known.reserved != 0) throw InvalidArgument(std::string(type) + ".reserved must be 0");
  }
  return known;
}

// Writes as much of `value` as the caller's struct has room for.
template <typename T>
void give(T* out, T value, const char* name, const char* type) {
  const size_t size = required(out, name).struct_size;
  check_struct_size(size, kLeastSize<T>, type);
  value.struct_size = size;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(static_cast<void*>(out), &value, std::min(size, sizeof(T)));
}

// Where a new handle goes; set to NULL until it exists.
template <typename T>
T*& handle_place(T** out) {
  T*& place = required(out, "out");
  place = nullptr;
  return place;
}

// "l2" of NULL.
Metric metric_of(const char* name);
// Reads a switch: a given value, or the default.
bool is_on(int32_t given, bool by_default, const char* name);

MatrixView view_of(const kith_matrix* matrix, const char* name);
MutableMatrixView view_of(const kith_mutable_matrix* matrix, const char* name);
NeighborsView view_of(const kith_neighbors* neighbors);
MemorySpace space_of(int32_t space, int32_t cuda_index, const char* name);
kith_space space_of(MemorySpace space);

template <typename T>
VectorView<const T> values_of(const T* values, int64_t count, const char* name) {
  if (count < 0) throw InvalidArgument(std::string(name) + ": their number is negative");
  if (count > 0) required(values, name);
  return {values, count, {}};
}

RowFilter filter_of(const kith_filter* filter);

// The caller's, or the default.
inline Resources resources_of(const kith_resources* resources) {
  return resources == nullptr ? Resources() : resources->resources;
}

}  // namespace kith::capi
