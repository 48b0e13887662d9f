// Rows as the library reads them: those of f64, and any from which an offset is subtracted, as f32 in memory of their
// own; others as they are. kith/view.hpp says what is subtracted, and why.
//
// Calls that take vectors come through here once, at their door; behind it there is no f64.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/within_limits.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace kith {

// A value for each column, subtracted in f64 before rounding; null: nothing is.
using Offset = std::shared_ptr<const std::vector<double>>;

inline bool has_offset(const Offset& offset, int64_t cols) {
  return offset != nullptr && static_cast<int64_t>(offset->size()) == cols;
}

// Whether rows are not read where they lie.
inline bool is_narrowed(const MatrixView& rows, const Offset& offset = nullptr) {
  return rows.dtype() == DType::f64 || has_offset(offset, rows.cols());
}

// Whether rounding that may change results is told of.
enum class OfRounding : uint8_t { silent, warns };

class NarrowedRows {
 public:
  // Vectors that others will be compared with: they choose the offset where they are f64, and warn. `name` is the
  // caller's, for errors.
  NarrowedRows(std::string_view name, const MatrixView& rows, Metric metric, const Resources& resources);
  // Vectors that lose a given offset. One of another length is not subtracted: whoever compares columns refuses the
  // rows.
  NarrowedRows(std::string_view name, const MatrixView& rows, Offset offset, OfRounding told,
               const Resources& resources);

  const MatrixView& view() const { return view_; }
  const Offset& offset() const { return offset_; }

 private:
  void narrow(std::string_view name, const MatrixView& rows, const Resources& resources);

  Offset offset_;
  MatrixBuffer on_host_;
  std::shared_ptr<const float> on_device_;
  MatrixView view_;
};

// f32 rows where they were before the offset was subtracted, as f32 or f64. `out` may be `rows`.
void restore_rows(const MatrixView& rows, const Offset& offset, const MutableMatrixView& out);

// call(rows, resources) with rows that were f64, counted with the call; others are handed on. `job` as in
// within_limits().
template <typename Call>
decltype(auto) with_narrowed(std::string_view job, std::string_view name, const MatrixView& rows, Metric metric,
                             const Resources& resources, const Call& call) {
  if (!is_narrowed(rows)) return call(rows, resources);
  return within_limits(job, resources, [&](const Resources& used) {
    const NarrowedRows narrowed(name, rows, metric, used);
    return call(narrowed.view(), used);
  });
}

// The same with rows that lose a given offset.
template <typename Call>
decltype(auto) with_narrowed(std::string_view job, std::string_view name, const MatrixView& rows, const Offset& offset,
                             OfRounding told, const Resources& resources, const Call& call) {
  if (!is_narrowed(rows, offset)) return call(rows, resources);
  return within_limits(job, resources, [&](const Resources& used) {
    const NarrowedRows narrowed(name, rows, offset, told, used);
    return call(narrowed.view(), used);
  });
}

// Two sets of rows that are compared: the second chooses the offset.
struct ComparedRows {
  std::string_view query_name;
  const MatrixView& queries;
  std::string_view base_name;
  const MatrixView& base;
};

template <typename Call>
decltype(auto) with_narrowed(std::string_view job, const ComparedRows& rows, Metric metric, const Resources& resources,
                             const Call& call) {
  if (!is_narrowed(rows.queries) && !is_narrowed(rows.base)) return call(rows.queries, rows.base, resources);
  return within_limits(job, resources, [&](const Resources& used) {
    const NarrowedRows base(rows.base_name, rows.base, metric, used);
    const NarrowedRows queries(rows.query_name, rows.queries, base.offset(), OfRounding::silent, used);
    return call(queries.view(), base.view(), used);
  });
}

}  // namespace kith
