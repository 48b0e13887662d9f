#include "collection/search_queries.hpp"

#include <kith/error.hpp>

#include "io/dtype_conversion.hpp"

#include <fmt/format.h>

#include <string>

namespace kith {

CollectionQueries::CollectionQueries(const MatrixView& given, const CollectionState& state, const Resources& resources)
    : view_(given) {
  if (given.cols() != state.params->dimension) {
    throw InvalidArgument(fmt::format("queries have {} columns, and the collection's vectors {}", given.cols(),
                                      state.params->dimension));
  }
  if (!given.space().host_readable()) return;
  if (given.dtype() == DType::f64) {
    narrowed_ = MatrixBuffer(DType::f32, given.rows(), given.cols(), "queries as f32", resources);
    const std::string name = "the queries";
    for (int64_t i = 0; i < given.rows(); ++i) {
      convert_values(given.row(i), DType::f64, narrowed_.mutable_view().row(i), DType::f32, given.cols(),
                     {name, i * given.cols(), given.cols()});
    }
    view_ = narrowed_.view();
  }
  check_finite_rows(view_, "query");
}

void check_finite_rows(const MatrixView& rows, const char* what) {
  // Whether any value has all of its exponent's bits. All are looked at, so that the loop takes many at a time.
  const auto bad = [&](int64_t row) {
    const auto any = [&](const auto* values, auto exponent) {
      decltype(exponent) found = 0;
      for (int64_t i = 0; i < rows.cols(); ++i) {
        const auto missing = static_cast<decltype(exponent)>(~values[i] & exponent);
        found = static_cast<decltype(exponent)>(found | static_cast<decltype(exponent)>(missing == 0));
      }
      return found != 0;
    };
    switch (rows.dtype()) {
      case DType::f32: return any(reinterpret_cast<const uint32_t*>(rows.row(row)), uint32_t{0x7f800000});
      case DType::f16: return any(reinterpret_cast<const uint16_t*>(rows.row(row)), uint16_t{0x7c00});
      case DType::bf16: return any(reinterpret_cast<const uint16_t*>(rows.row(row)), uint16_t{0x7f80});
      default: return false;
    }
  };
  for (int64_t row = 0; row < rows.rows(); ++row) {
    if (bad(row)) throw InvalidArgument(fmt::format("{} {} has a NaN or an infinity; leave it out", what, row));
  }
}

}  // namespace kith
