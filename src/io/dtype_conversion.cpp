#include "io/dtype_conversion.hpp"

#include <kith/error.hpp>

#include "core/dtype_visit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace kith {
namespace {

// The conversions of core/half.hpp with every case computed and one selected: branches would keep the compiler from
// vectorising, which doubles the speed and more.
float widened(Half half) {
  const uint32_t rest = half.bits & 0x7FFFU;
  const uint32_t special = rest << 13 | 0x7F800000U;
  const uint32_t normal = (rest << 13) + (112U << 23);
  const uint32_t subnormal = bits_of_float(static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24F);
  const uint32_t magnitude = rest >= 0x7C00U ? special : rest >= 0x0400U ? normal : subnormal;
  return float_of_bits(static_cast<uint32_t>(half.bits & 0x8000U) << 16 | magnitude);
}

template <typename From>
float widened(From value) {
  return static_cast<float>(value);
}

uint16_t half_bits(float value) {
  const uint32_t bits = bits_of_float(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  const uint32_t nan = 0x7E00U | (magnitude >> 13 & 0x3FFU);
  const uint32_t normal = (magnitude - (112U << 23) + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  const uint32_t subnormal = bits_of_float(float_of_bits(magnitude) + 0.5F) - bits_of_float(0.5F);
  const uint32_t finite = magnitude >= 0x38800000U ? normal : subnormal;
  const uint32_t large = magnitude > 0x7F800000U ? nan : 0x7C00U;
  return static_cast<uint16_t>((bits >> 16 & 0x8000U) | (magnitude >= 0x477FF000U ? large : finite));
}

uint16_t bfloat16_bits(float value) {
  const uint32_t bits = bits_of_float(value);
  const uint32_t nan = bits >> 16 | 0x40U;
  const uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded);
}

// A 16-bit float as the integer it is: a struct would be copied as memory, which the vectoriser does not look into.
template <typename To>
struct Plain {
  using type = To;
};
template <>
struct Plain<Half> {
  using type = uint16_t;
};
template <>
struct Plain<BFloat16> {
  using type = uint16_t;
};

uint16_t& plain(Half& half) { return half.bits; }
uint16_t& plain(BFloat16& bfloat) { return bfloat.bits; }
template <typename To>
To& plain(To& value) {
  return value;
}

// The nearest value of type To; what it cannot hold becomes something else, which lost_in() finds.
template <typename To>
typename Plain<To>::type narrowed(float value) {
  if constexpr (std::is_same_v<To, float>) {
    return value;
  } else if constexpr (std::is_same_v<To, Half>) {
    return half_bits(value);
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return bfloat16_bits(value);
  } else {
    constexpr float kLowest = std::numeric_limits<To>::lowest();
    constexpr float kLargest = std::numeric_limits<To>::max();
    // Outside the range, and for NaN, the cast would be undefined.
    const float raised = value > kLowest ? value : kLowest;
    return static_cast<To>(static_cast<int32_t>(raised < kLargest ? raised : kLargest));
  }
}

// 1 where `made` is not what `value` becomes by rounding alone, else 0.
template <typename To>
uint32_t lost_in(float value, typename Plain<To>::type made) {
  if constexpr (std::is_same_v<To, float>) {
    return 0;
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    constexpr uint32_t kInfinity = std::is_same_v<To, Half> ? 0x7C00U : 0x7F80U;
    const auto infinite = static_cast<uint32_t>((made & 0x7FFFU) == kInfinity);
    return infinite & static_cast<uint32_t>((bits_of_float(value) & 0x7FFFFFFFU) < 0x7F800000U);
  } else {
    return static_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(made)) != value);
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
    uint32_t lost = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float value = widened(from[i]);
      const auto made = narrowed<To>(value);
      plain(to[i]) = made;
      lost |= lost_in<To>(value, made);
    }
    if (lost == 0) continue;
    int64_t culprit = begin;
    while (lost_in<To>(widened(from[culprit]), plain(to[culprit])) == 0) ++culprit;
    const int64_t at = place.first + culprit;
    throw InvalidArgument(fmt::format("row {}, column {} of '{}' holds {}, which {} cannot; {}", at / place.cols,
                                      at % place.cols, place.path, widened(from[culprit]), name_of(to_dtype),
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
