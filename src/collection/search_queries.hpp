// Queries of a collection, as searches of its parts take them.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "collection/state.hpp"

namespace kith {

// f64 becomes f32; values in host memory are checked.
class CollectionQueries {
 public:
  CollectionQueries(const MatrixView& given, const CollectionState& state, const Resources& resources);
  const MatrixView& view() const { return view_; }

 private:
  MatrixView view_;
  MatrixBuffer narrowed_;
};

// InvalidArgument naming the first row with a NaN or an infinity; of rows in host memory.
void check_finite_rows(const MatrixView& rows, const char* what);

}  // namespace kith
