// The nearest of some centres for every row, exactly, on the CPU: the first by (canonical key, centre). Few centres are
// a table (centre_table_cpu.hpp), more are packed (nearest_centre_cpu.hpp); the labels and keys are the same.
#pragma once

#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/assign/centre_table_cpu.hpp"
#include "kernels/assign/nearest_centre_cpu.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace kith {

class CentreAssigner {
 public:
  static bool has_few(int64_t centres) { return centres <= kMostFewCentres; }

  // For up to `capacity` centres, which are packed in `format` if they are. By squared L2, with an origin near the mean
  // of the rows, or by inner products.
  CentreAssigner(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity,
                 const Resources& resources);

  // f32; they must stay as they are until the next call.
  void set(const MatrixView& centres, ProgressMeter& meter, const Resources& resources);

  // Rows that are best given together.
  int64_t block_rows() const { return block_; }
  // For the thread `slot`. `labels` holds guesses or kNoLabel, and the centres afterwards; `keys` gets the canonical
  // keys, null where only labels are wanted. False where few centres have shown that values may not be finite.
  bool assign(const MatrixView& rows, int32_t* labels, float* keys, int slot);

 private:
  int64_t block_;
  MatrixView centres_;
  // Either few centres,
  std::optional<CentreTable> few_;
  int64_t scratch_floats_ = 0;
  HostArray<float> scratch_;  // of all threads
  // or many.
  std::optional<PackedRows> packed_;
  std::deque<NearestCentre> nearest_;  // one for each thread
};

}  // namespace kith
