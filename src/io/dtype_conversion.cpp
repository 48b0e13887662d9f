#include "io/dtype_conversion.hpp"

#include <kith/error.hpp>

#include "core/dtype_visit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace kith {
namespace {

// The nearest value of type To; what it cannot hold becomes something else, which held_by() finds.
template <typename To>
To narrowed(float value) {
  if constexpr (std::is_same_v<To, float>) {
    return value;
  } else if constexpr (std::is_same_v<To, Half>) {
    return half_of(value);
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return bfloat16_of(value);
  } else {
    constexpr float kLowest = std::numeric_limits<To>::lowest();
    constexpr float kLargest = std::numeric_limits<To>::max();
    // Outside of the range, and for NaN, the cast would be undefined.
    return static_cast<To>(value >= kLowest && value <= kLargest ? value : 0.0F);
  }
}

// Whether `made` is what became of `value` without more than rounding.
template <typename To>
bool held_by(float value, To made) {
  if constexpr (std::is_same_v<To, float>) {
    return true;
  } else if constexpr (std::is_same_v<To, Half>) {
    return (made.bits & 0x7FFFU) != 0x7C00U || std::fabs(value) > std::numeric_limits<float>::max();
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return (made.bits & 0x7FFFU) != 0x7F80U || std::fabs(value) > std::numeric_limits<float>::max();
  } else {
    return static_cast<float>(made) == value;
  }
}

template <typename To>
std::string what_fits() {
  if constexpr (std::is_same_v<To, uint8_t>) return "only whole numbers from 0 to 255 fit";
  if constexpr (std::is_same_v<To, int8_t>) return "only whole numbers from -128 to 127 fit";
  if constexpr (std::is_same_v<To, Half>) return "only values up to 65504 fit";
  return "only values up to 3.3895e+38 fit";
}

template <typename From, typename To>
void convert(const From* from, To* to, int64_t count, DType to_dtype, const ConversionPlace& place) {
  constexpr int64_t kBlock = 1024;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    unsigned lost = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<float>(from[i]);
      to[i] = narrowed<To>(value);
      lost |= static_cast<unsigned>(!held_by(value, to[i]));
    }
    if (lost == 0) continue;
    int64_t culprit = begin;
    while (held_by(static_cast<float>(from[culprit]), to[culprit])) ++culprit;
    const int64_t at = place.first + culprit;
    throw InvalidArgument(fmt::format("row {}, column {} of '{}' holds {}, which {} cannot; {}", at / place.cols,
                                      at % place.cols, place.path, static_cast<float>(from[culprit]), name_of(to_dtype),
                                      what_fits<To>()));
  }
}

}  // namespace

void convert_values(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count,
                    const ConversionPlace& place) {
  if (from_dtype == to_dtype) {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(count * size_of(to_dtype)));
    return;
  }
  visit_dtype(from_dtype, [&](auto source) {
    visit_dtype(to_dtype, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      if constexpr (!std::is_same_v<From, To>) {
        convert(static_cast<const From*>(from), static_cast<To*>(to), count, to_dtype, place);
      }
    });
  });
}

}  // namespace kith
