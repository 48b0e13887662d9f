// Narrows rows: f64 rows, and rows from which an offset is subtracted, become f32 in memory of their own; others are
// used in place. kith/view.hpp explains the offset.
//
// Calls that take vectors narrow them once, on entry; no code behind them sees f64.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/within_limits.hpp"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

// A value for each column, subtracted in f64 before rounding; null: nothing is.
using Offset = std::shared_ptr<const std::vector<double>>;

inline bool has_offset(const Offset& offset, int64_t cols) {
  return offset != nullptr && static_cast<int64_t>(offset->size()) == cols;
}

// Whether rows are copied rather than read in place.
inline bool is_narrowed(const MatrixView& rows, const Offset& offset = nullptr) {
  return rows.dtype() == DType::f64 || has_offset(offset, rows.cols());
}

// Whether to warn if rounding may change results.
enum class OfRounding : uint8_t { silent, warns };

class NarrowedRows {
 public:
  // For vectors that others will be compared with: f64 vectors choose the offset, and warn. `name`: the caller's, for
  // errors.
  NarrowedRows(std::string_view name, const MatrixView& rows, Metric metric, const Resources& resources);
  // Subtracts a given offset. An offset of another length is ignored: the later comparison of columns will refuse the
  // rows.
  NarrowedRows(std::string_view name, const MatrixView& rows, Offset offset, OfRounding told,
               const Resources& resources);

  const MatrixView& view() const { return view_; }
  const Offset& offset() const { return offset_; }
  // What is_narrowed() rows on the host were copied to, which is given away.
  MatrixBuffer take() { return std::move(on_host_); }

 private:
  void narrow(std::string_view name, const MatrixView& rows, const Resources& resources);

  Offset offset_;
  MatrixBuffer on_host_;
  std::shared_ptr<const float> on_device_;
  MatrixView view_;
};

// Adds the offset to f32 rows again, as f32 or f64. `out` may be `rows`.
void restore_rows(const MatrixView& rows, const Offset& offset, const MutableMatrixView& out);

// Calls call(rows, resources) with narrowed rows, whose memory counts as part of the call. `job` as in
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

// The same with a given offset.
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
