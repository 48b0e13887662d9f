// The rows of a collection on a GPU while a graph of them is built: where they lie there already, or a copy; checked, and
// with their inverse norms for cosine.
//
// Memory: cols x size a row where they are copied; 8 bytes a row for cosine.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_array.hpp"
#include "graph/lists/graph_lists.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class GraphRowsCuda {
 public:
  GraphRowsCuda(std::shared_ptr<const DeviceContext> context, const MatrixView& x, const GraphRowsWish& wish,
                const Resources& resources);

  const DeviceRowsView& rows() const { return rows_; }
  // The same as a matrix in the device's memory.
  const MatrixView& view() const { return view_; }
  int64_t cols() const { return view_.cols(); }

 private:
  void bring(std::shared_ptr<const DeviceContext> context, const Resources& resources);

  DeviceBuffer matrix_;
  DeviceArray<double> norms_;
  MatrixView view_;
  DeviceRowsView rows_;
};

}  // namespace kith
