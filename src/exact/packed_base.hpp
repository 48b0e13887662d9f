// Rows of a base laid out for a panel product: bytes as they are; other values centred (L2) or normalised (cosine); all
// packed, with their norms.
//
// Subtracting any vector from all rows and queries leaves L2 distances as they are, and a vector near the mean makes
// the numbers small, so that |x|^2 + |q|^2 - 2 q x loses little even where the mean is far larger than the spread. The
// subtraction itself is rounded relative to its small result. The centre comes from a sample: any choice is correct.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "exact/prepared_base.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/screen.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// What is subtracted from every row and query: zeros unless the key is made of differences.
std::vector<float> choose_centre(KeyKind kind, const MatrixView& base);

class PackedBase : public PreparedBase {
 public:
  // Room for `capacity` rows. For bytes the centre says no more than the number of columns.
  PackedBase(KeyKind kind, PanelFormat format, std::vector<float> centre, int64_t capacity, const Resources& resources);
  // With what packing by so many threads needs.
  static int64_t bytes_for(PanelFormat format, int64_t rows, int64_t cols, int threads);

  bool serves(DType queries) const override;
  int64_t bytes() const override { return panels_.bytes() + terms_.bytes() + norms_.bytes() + screen_.bytes(); }

  // Packs the rows of `base`, in place of what was there. Where `check_finite`, a row with a NaN or an infinity is
  // InvalidArgument, naming the first such row, counted from first_row.
  // The meter is told of `work_per_row` for each row.
  void pack(const MatrixView& base, bool check_finite, int64_t first_row, int64_t work_per_row, ProgressMeter& meter,
            const Resources& resources);

  const std::vector<float>& centre() const { return centre_; }
  int64_t rows() const { return rows_; }
  int64_t panel_count() const { return (rows_ + shape_.rows_per_panel - 1) / shape_.rows_per_panel; }
  int64_t rows_per_panel() const { return shape_.rows_per_panel; }
  PanelFormat format() const { return format_; }
  // Whether the product in use, for this format, takes these panels: with or without the screen.
  bool fits(PanelFormat format) const;
  PanelBase panels() const;
  BytePanelBase byte_panels() const;
  // Beside panels() where the format is screened.
  RoundedBase screen_panels() const { return screen_.panels(terms_.as<float>(), norms_.as<float>()); }

 private:
  // `scratch` has room for a vector of floats, and for a panel of packed ones.
  // False where the panel holds a value that is not finite.
  bool pack_floats(const MatrixView& base, int64_t panel, float* row, uint32_t* scratch);
  void pack_bytes(const MatrixView& base, int64_t panel, uint32_t* scratch);

  KeyKind kind_;
  PanelFormat format_;
  DType dtype_ = DType::f32;  // of what was packed
  PanelShape shape_;
  std::vector<float> centre_;
  int64_t rows_ = 0;
  HostBuffer panels_;
  HostBuffer terms_;
  HostBuffer norms_;
  BaseScreen screen_;
};

}  // namespace kith
