// A cache of f32 panels for rows that are stored without them (lacks_panels): packed from the plain rows when a scan
// needs them, and kept until others replace them. So an index stores its rows once, and for screening a byte per value
// besides.
//
// If some hundred queries share panels, packing takes a few percent of the product's time. A ring belongs to one
// thread, and its panels stay in that core's second-level cache.
//
// Cost: a read of a row each time its panel is packed. Memory: the panels, and scratch for one.
#pragma once

#include <kith/view.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

class PanelRing {
 public:
  // Bytes for panels of `rows` rows, at least one panel, and scratch to pack one; a multiple of the panels' alignment.
  static int64_t bytes_for(int64_t rows, int64_t cols) {
    return round_up(array_bytes<float>((std::max(rows, kMostRowsPerPanel) + kMostRowsPerPanel) * cols), kAlignment);
  }

  // `packed` is of `rows`; `memory` has bytes_for(`room`, cols) bytes.
  PanelRing(const PackedRows& packed, const MatrixView& rows, int64_t room, std::byte* memory)
      : packed_(packed),
        rows_(rows),
        scratch_(reinterpret_cast<float*>(memory)),
        panels_(scratch_ + kMostRowsPerPanel * packed.cols()),
        held_(static_cast<size_t>(std::max(room, kMostRowsPerPanel) / packed.rows_per_panel()), -1) {}

  // How many consecutive panels it holds.
  int64_t size() const { return static_cast<int64_t>(held_.size()); }
  bool holds(int64_t panel) const { return held_[place(panel)] == panel; }
  // Packs the missing ones of panels first .. first + count - 1; count is at most size().
  void make(int64_t first, int64_t count) {
    for (int64_t panel = first; panel < first + count; ++panel) {
      if (holds(panel)) continue;
      const auto at = static_cast<int64_t>(place(panel)) * packed_.rows_per_panel() * packed_.cols();
      packed_.copy_panel(rows_, panel, scratch_, panels_ + at);
      held_[place(panel)] = panel;
    }
  }
  // The panel as input of a scan, once it is packed.
  PanelBase panels() const {
    PanelBase base = packed_.panels();
    base.panels = panels_;
    base.format = PanelFormat::f32;
    base.ring = size();
    return base;
  }

 private:
  static constexpr int64_t kAlignment = 64;  // enough for the SIMD vectors of every instruction set

  size_t place(int64_t panel) const { return static_cast<size_t>(panel) % held_.size(); }

  const PackedRows& packed_;
  const MatrixView rows_;
  float* const scratch_;
  float* const panels_;
  std::vector<int64_t> held_;  // per slot: the number of its panel
};

}  // namespace kith
