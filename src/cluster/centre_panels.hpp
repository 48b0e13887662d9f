// The centres laid out for the panel products: moved by an origin near the data's mean (L2), packed as f32 or as bytes.
//
// Made anew whenever the centres move. Which layout is used changes only which centres become candidates for a row
// (nearest_centre.hpp), never the result.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/screen.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class CentrePanels {
 public:
  // Bytes where the processor multiplies them faster and their sums cannot overflow.
  static bool takes_bytes(int64_t cols);
  static int64_t bytes_for(int64_t clusters, int64_t cols);

  CentrePanels(KeyKind kind, int64_t clusters, int64_t cols, const Resources& resources);

  // `centres` is f32; it must stay as it is while rows are assigned.
  void pack(const MatrixView& centres, const std::vector<float>& origin);

  KeyKind kind() const { return kind_; }
  bool bytes() const { return bytes_; }
  const MatrixView& centres() const { return centres_; }
  const std::vector<float>& origin() const { return origin_; }
  int64_t count() const { return centres_.rows(); }
  int64_t cols() const { return cols_; }
  int64_t rows_per_panel() const { return width_; }
  int64_t panel_count() const { return (count() + width_ - 1) / width_; }
  PanelBase panels() const {
    return {values_.as<float>(), terms_.as<float>(), norms_.as<float>(), PanelFormat::f32, cols_};
  }
  RoundedBase rounded_panels() const { return screen_.panels(terms_.as<float>(), norms_.as<float>()); }

 private:
  void pack_one(int64_t panel);

  KeyKind kind_;
  bool bytes_;
  int64_t cols_;
  int64_t width_;
  MatrixView centres_;
  std::vector<float> origin_;
  HostBuffer values_;   // the centres packed as f32,
  BaseScreen screen_;   // or as bytes
  HostBuffer terms_;    // |c|^2, or 0 for inner products; +inf for those that only fill up
  HostBuffer norms_;    // the largest norm in each panel
  HostBuffer scratch_;  // one panel's centres before they are packed
};

}  // namespace kith
