// From a dtype to the C++ type that holds its values.
#pragma once

#include <kith/dtype.hpp>

#include "core/half.hpp"

#include <cstdint>
#include <utility>

namespace kith {

template <typename T>
struct ElementType {
  using type = T;
};

// Calls use(ElementType<T>()) with the T that holds one value.
template <typename Use>
decltype(auto) with_element_type(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::f16: return std::forward<Use>(use)(ElementType<Half>());
    case DType::bf16: return std::forward<Use>(use)(ElementType<BFloat16>());
    case DType::u8: return std::forward<Use>(use)(ElementType<uint8_t>());
    case DType::i8: return std::forward<Use>(use)(ElementType<int8_t>());
    default: return std::forward<Use>(use)(ElementType<float>());
  }
}

}  // namespace kith
