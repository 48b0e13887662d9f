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
  const auto bad = [&](int64_t row) {
    const auto find = [&](const auto* values, auto is_bad) {
      for (int64_t i = 0; i < rows.cols(); ++i) {
        if (is_bad(values[i])) return true;
      }
      return false;
    };
    switch (rows.dtype()) {
      case DType::f32:
        return find(reinterpret_cast<const uint32_t*>(rows.row(row)), [](uint32_t v) { return (~v & 0x7f800000U) == 0; });
      case DType::f16:
        return find(reinterpret_cast<const uint16_t*>(rows.row(row)), [](uint16_t v) { return (~v & 0x7c00U) == 0; });
      case DType::bf16:
        return find(reinterpret_cast<const uint16_t*>(rows.row(row)), [](uint16_t v) { return (~v & 0x7f80U) == 0; });
      default: return false;
    }
  };
  for (int64_t row = 0; row < rows.rows(); ++row) {
    if (bad(row)) throw InvalidArgument(fmt::format("{} {} has a NaN or an infinity; leave it out", what, row));
  }
}

}  // namespace kith
