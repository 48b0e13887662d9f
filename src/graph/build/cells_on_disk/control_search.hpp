// The true neighbours of the control rows (lists/control_rows.hpp) of vectors in files, by exact search.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith {

// The exact first k of queries among all rows of a file.
Neighbors search_file(const MatrixView& queries, const VectorFile& file, Metric metric, int64_t k,
                      const Resources& resources);

struct ControlSearch {
  Metric metric = Metric::l2;
  int64_t k = 15;
  uint64_t seed = 0;
};
// ControlRows::wanted() neighbours of the rows that ControlRows::draw() names; none where memory is only counted.
Neighbors search_control_rows(const VectorFile& x, const ControlSearch& search, const Resources& resources);

}  // namespace kith
