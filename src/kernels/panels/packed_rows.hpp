// Rows laid out for a panel product: bytes as they are; other values less an origin (L2) or normalised (cosine); all
// packed in one of the formats, with their norms.
//
// Subtracting any vector from all rows and queries leaves L2 distances as they are, and a vector near the mean makes
// the numbers small, so that |x|^2 + |q|^2 - 2 q x loses little even where the mean is far larger than the spread. The
// subtraction itself is rounded relative to its small result. The origin comes from a sample: any choice is correct.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/screen.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

// What is subtracted from every row and query: zeros unless the key is made of differences.
std::vector<float> choose_origin(KeyKind kind, const MatrixView& rows);
// What every row and query is multiplied by then: a power of two that keeps squares of very large and very small values
// in the range of f32, or 1. Where the key is not made of differences it is 1.
float choose_scale(KeyKind kind, const MatrixView& rows, const std::vector<float>& origin);
// What a column adds to a value of which such keys are made.
PanelStep panel_step(KeyKind kind);

// Rows of a collection in the caller's order: those with the given numbers, or all in their order. A view; copies
// nothing.
class RowGather {
 public:
  RowGather(const MatrixView& rows) : collection_(rows), count_(rows.rows()) {}
  RowGather(const MatrixView& collection, const uint32_t* numbers, int64_t count)
      : collection_(collection), numbers_(numbers), count_(count) {}

  const MatrixView& collection() const { return collection_; }
  int64_t rows() const { return count_; }
  DType dtype() const { return collection_.dtype(); }
  // The number of row i in the collection.
  int64_t number(int64_t i) const { return numbers_ == nullptr ? i : numbers_[i]; }

 private:
  MatrixView collection_;
  const uint32_t* numbers_ = nullptr;
  int64_t count_ = 0;
};

struct PackOptions {
  bool check_finite = false;  // a row with a NaN or an infinity is InvalidArgument, naming the first such row,
  int64_t first_row = 0;      // counted from here
  int64_t work_per_row = 0;   // reported to the meter
  bool count_repeats = false;
};

class PackedRows {
 public:
  // Room for `capacity` rows. For bytes the origin says no more than the number of columns.
  PackedRows(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity, const Resources& resources);
  // Sets the scale of the rows to come (choose_scale).
  void set_scale(float scale) { scale_ = scale; }
  int64_t bytes() const {
    return panels_.bytes() + terms_.bytes() + norms_.bytes() + row_norms_.bytes() + repeats_.bytes() + screen_.bytes();
  }
  // Including the scratch of `threads` threads.
  static int64_t bytes_for(PanelFormat format, int64_t rows, int64_t cols, int threads);

  // Packs rows of any order in place of those before.
  void pack(const RowGather& rows, const PackOptions& options, ProgressMeter& meter, const Resources& resources);
  // The same on one thread, for small sets that are packed often: with scratch_bytes() of memory, nothing is checked.
  void pack(const RowGather& rows, std::byte* scratch);
  static int64_t scratch_bytes(PanelFormat format, int64_t cols);
  // Packs rows first .. first + count - 1 of those that `known` was packed from, which the caller keeps: their norms
  // are known. `first` begins a panel.
  void pack_known(const PackedRows& known, const MatrixView& rows, int64_t first, int64_t count, ProgressMeter& meter,
                  const Resources& resources);
  // One panel in f32 of the rows that were packed, which the caller keeps; their norms are known. `scratch` has room
  // for a panel.
  void copy_panel(const MatrixView& rows, int64_t panel, float* scratch, float* out) const;

  KeyKind kind() const { return kind_; }
  PanelFormat format() const { return format_; }
  DType dtype() const { return dtype_; }
  const std::vector<float>& origin() const { return origin_; }
  float scale() const { return scale_; }
  int64_t cols() const { return static_cast<int64_t>(origin_.size()); }
  int64_t rows() const { return rows_; }
  int64_t rows_per_panel() const { return shape_.rows_per_panel; }
  int64_t panel_count() const { return divide_up(rows_, shape_.rows_per_panel); }
  // Whether the product in use for this format can work on these panels, with or without the screen, or on panels made
  // from the rows on the fly.
  bool fits(PanelFormat format) const;
  PanelBase panels() const;
  BytePanelBase byte_panels() const;
  // Where the format has a screen.
  RoundedBase screen_panels() const { return screen_.panels(terms_.as<float>(), norms_.data(), row_norms_.data()); }
  // How many rows before it are known to equal each row, up to kMostRepeats; null where none is: a row that equals k
  // before it is none of the k nearest of any query.
  static constexpr int64_t kMostRepeats = 255;
  const uint8_t* repeats() const { return has_repeats_ ? repeats_.data() : nullptr; }

 private:
  void begin(const RowGather& rows);
  // False where the panel holds a value that is not finite.
  bool fill_panel(const RowGather& rows, int64_t panel, std::byte* scratch) {
    return holds_bytes(format_) ? pack_bytes(rows, panel, scratch) : pack_floats(rows, panel, scratch);
  }
  bool pack_floats(const RowGather& rows, int64_t panel, std::byte* scratch);
  bool pack_bytes(const RowGather& rows, int64_t panel, std::byte* scratch);
  void count_repeats(const RowGather& rows);
  // Whether rows are packed without conversion.
  bool packs_as_given(DType dtype) const {
    return dtype == DType::f32 && !has_differences(kind_) && kind_ != KeyKind::cosine;
  }
  // A row as it is packed, in `out`.
  void move_known(const MatrixView& rows, int64_t row, float* out) const;

  KeyKind kind_;
  PanelFormat format_;
  DType dtype_ = DType::f32;  // of what was packed
  PanelShape shape_;
  std::vector<float> origin_;
  float scale_ = 1;
  int64_t rows_ = 0;
  HostBuffer panels_;
  HostBuffer terms_;        // f32 or i32
  HostArray<float> norms_;  // of floats: the largest in each panel,
  HostArray<float> row_norms_;  // and each row's
  HostArray<uint8_t> repeats_;
  bool has_repeats_ = false;
  BaseScreen screen_;
};

}  // namespace kith
