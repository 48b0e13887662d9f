// f64 vectors as Kith compares them: f32, less an offset where rounding would lose what tells them apart. kith/view.hpp
// explains the offset. Calls that take f64 vectors narrow them alike; this is for those who narrow once, for many calls.
#pragma once

#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <string_view>
#include <vector>

namespace kith {

struct NarrowedVectors {
  MatrixBuffer rows;           // f32; empty where the given ones are used as they are
  std::vector<double> offset;  // one value for each column, subtracted in f64 before rounding; empty: none
  bool is_copy = false;
};

// Vectors in host memory that others will be compared with: f64 ones choose the offset. `name` is theirs in errors.
KITH_EXPORT NarrowedVectors narrow_vectors(std::string_view name, const MatrixView& vectors, Metric metric,
                                           const Resources& resources = Resources());
// The same by a given offset, or none.
KITH_EXPORT NarrowedVectors narrow_vectors(std::string_view name, const MatrixView& vectors,
                                           const std::vector<double>& offset,
                                           const Resources& resources = Resources());

}  // namespace kith
