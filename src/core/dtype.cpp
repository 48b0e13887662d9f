#include <kith/dtype.hpp>

#include "core/name_table.hpp"

namespace kith {
namespace {

constexpr NameTable<DType, 5> kDTypeNames{
    {{{DType::f32, "f32"}, {DType::f16, "f16"}, {DType::bf16, "bf16"}, {DType::u8, "u8"}, {DType::i8, "i8"}}}};

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
DType parse_dtype(std::string_view name) { return kDTypeNames.parse(name, "dtype"); }

}  // namespace kith
