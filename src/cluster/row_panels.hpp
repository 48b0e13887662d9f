// Rows laid out as the queries of a panel product with centres: widened, moved by the same origin as the centres,
// packed as f32 or bytes like them, with the error bounds of their products.
//
//   key(row, centre) = value + offset(row), within bound(row, panel)
//
// Cost: the packed values, 1 or 4 bytes each, and 20 (of bytes 40) bytes a row.
#pragma once

#include <kith/host_buffer.hpp>

#include "cluster/centre_panels.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class RowPanels {
 public:
  // Rows are packed, and scanned, from multiples of this on: a multiple of every panel's width.
  static constexpr int64_t kAlignment = 24;

  static int64_t bytes_for(int64_t capacity, int64_t cols);
  RowPanels(KeyKind kind, int64_t capacity, int64_t cols, const Resources& resources);

  // Puts `count` f32 rows at `first` on; their limits are +inf. The room up to the next multiple of kAlignment is lost.
  void pack(const float* rows, int64_t first, int64_t count, const std::vector<float>& origin);

  // What a row accepts: values up to its limit and the bound. Calls on_hit with rows counted from `first`; it may lower
  // the limits.
  void scan(const CentrePanels& centres, int64_t first, int64_t count, PanelHits& hits) const;

  float& limit(int64_t row) const { return limits_[row]; }
  float offset(int64_t row) const { return offsets_[row]; }
  float bound(int64_t row, const CentrePanels& centres, int64_t panel) const;

 private:
  void pack_panel_of(const float* rows, int64_t first, int64_t count, const std::vector<float>& origin);

  KeyKind kind_;
  bool bytes_;
  int64_t cols_;
  int64_t width_;
  HostBuffer packed_;   // the rows as f32,
  QueryScreen screen_;  // or as bytes
  HostBuffer moved_;    // one panel's rows before they are packed
  HostBuffer arrays_;
  float* limits_;
  float* offsets_;
  float* constant_;
  float* linear_;
  float* quadratic_;
};

}  // namespace kith
