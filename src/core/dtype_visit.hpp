// From a dtype to the C++ type that holds its values.
#pragma once

#include <kith/dtype.hpp>
#include <kith/error.hpp>

#include "core/half.hpp"

#include <cstdint>
#include <utility>

namespace kith {

template <typename T>
struct StoredAs {
  using type = T;
};

// Calls use(StoredAs<T>()) with the T that holds one value. Unsupported for f64, which no call that narrows it lets in.
template <typename Use>
decltype(auto) visit_dtype(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::f16: return std::forward<Use>(use)(StoredAs<Half>());
    case DType::bf16: return std::forward<Use>(use)(StoredAs<BFloat16>());
    case DType::u8: return std::forward<Use>(use)(StoredAs<uint8_t>());
    case DType::i8: return std::forward<Use>(use)(StoredAs<int8_t>());
    case DType::f64: throw Unsupported("f64 values are not taken here; give them as f32");
    default: return std::forward<Use>(use)(StoredAs<float>());
  }
}

}  // namespace kith
