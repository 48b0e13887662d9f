// The nearest centre of each row, exactly: the first of all centres by (canonical key, centre).
//
// A block of rows is packed like queries and multiplied by all packed centres. The product's values never leave the
// registers except where one is low enough, within its error bound, to be the nearest (kernels/panels). The canonical
// distance decides among those; in most blocks there is one candidate for each row. A row that comes with a guess, its
// centre of the iteration before, starts from that centre's distance, so that little else passes.
//
// Cost: 2 rows x centres x columns operations, f32 or bytes, and about two canonical distances a row.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

#include "cluster/centre_panels.hpp"
#include "cluster/row_panels.hpp"

#include <cstdint>

namespace kith {

inline constexpr int32_t kNoLabel = -1;

class NearestCentre {
 public:
  // Working memory of one thread.
  static int64_t bytes_for(int64_t cols);
  NearestCentre(KeyKind kind, int64_t cols, const Resources& resources);

  // Rows that are best given together.
  static int64_t block_rows(int64_t cols);

  // For any number of rows. `labels` holds guesses or kNoLabel, and the centres afterwards; `keys` the canonical keys.
  void assign(const CentrePanels& centres, const MatrixView& rows, int32_t* labels, float* keys);

 private:
  class Block;
  RowPanels panels_;
  HostBuffer rows_;        // a block as f32
  HostBuffer best_;        // the nearest scored so far, packed neighbours
  HostBuffer candidates_;  // of each row
  HostBuffer sizes_;
};

}  // namespace kith
