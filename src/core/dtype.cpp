#include <kith/dtype.hpp>

#include <kith/error.hpp>

#include "core/name_table.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr NameTable<DType, 5> kDTypeNames{
    {{{DType::f32, "f32"}, {DType::f16, "f16"}, {DType::bf16, "bf16"}, {DType::u8, "u8"}, {DType::i8, "i8"}}}};

// What numpy and others call them.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"float32", "f32"}, {"float", "f32"},  {"float16", "f16"}, {"half", "f16"},   {"bfloat16", "bf16"},
    {"uint8", "u8"},    {"int8", "i8"},    {"float64", "f32"}, {"double", "f32"}, {"f64", "f32"},
};

}  // namespace

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::u8:
    case DType::i8: return 1;
  }
  return 0;
}

std::string_view name_of(DType dtype) { return dtype == DType::f64 ? "f64" : kDTypeNames.name(dtype); }

DType parse_dtype(std::string_view name) {
  for (const auto& [elsewhere, ours] : kElsewhere) {
    if (name == elsewhere) throw InvalidArgument(fmt::format("unknown dtype '{}'; did you mean {}?", name, ours));
  }
  return kDTypeNames.parse(name, "dtype");
}

}  // namespace kith
