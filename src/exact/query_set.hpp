// A batch of queries as the CPU search needs them: widened to f32 for the canonical distances, and packed for one base.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/screen.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

class QuerySet {
 public:
  // Without a format they are not packed.
  QuerySet(KeyKind kind, int64_t capacity, int64_t cols, std::optional<PanelFormat> format, const Resources& resources);
  // With what packing by so many threads needs.
  static int64_t bytes_for(int64_t queries, int64_t cols, std::optional<PanelFormat> format, int threads);

  // Takes the rows in. Where `check_finite`, one with a NaN or an infinity is InvalidArgument.
  void load(const MatrixView& queries, bool check_finite, int64_t first_query);
  // Packs them against a base with this centre (PackedBase).
  void pack(const std::vector<float>& centre, ProgressMeter& meter, const Resources& resources);

  int64_t size() const { return size_; }
  int64_t panel_width() const { return shape_.queries_per_panel; }
  const float* row(int64_t i) const { return rows_.as<float>() + i * cols_; }
  double squared_norm(int64_t i) const { return facts()[i].squared_norm; }
  CanonicalQuery canonical(int64_t i) const { return {row(i), facts()[i].inverse_norm}; }

  // Of the packed queries: key = value + offset, within the bound.
  float offset(int64_t i) const { return facts()[i].offset; }
  // Those from `first`, the first of a panel, on. The limits are the caller's.
  PanelQueries panels(int64_t first, int64_t count, float* limits) const;
  // Beside panels() where the format is screened.
  RoundedQueries screen_panels(int64_t first, int64_t count, float* limits) const {
    return screen_.panels(first, count, limits);
  }
  // The same for bytes: the exact sum = value + offset.
  int32_t byte_offset(int64_t i) const { return facts()[i].byte_offset; }
  BytePanelQueries byte_panels(int64_t first, int64_t count, int32_t* limits) const;

 private:
  struct Facts {
    double squared_norm;
    double inverse_norm;
    float offset;
    int32_t byte_offset;
  };
  Facts* facts() const { return facts_.as<Facts>(); }
  // `scratch` has room for a vector of floats, and for a panel of packed ones.
  void pack_floats(int64_t panel, const std::vector<float>& centre, float* row, uint32_t* scratch);
  void pack_bytes(int64_t panel, uint32_t* scratch);
  // Moves the panel's vectors from scratch, where they lie one by one, to their place.
  void place(int64_t panel, int64_t count, const uint32_t* scratch);

  KeyKind kind_;
  int64_t cols_;
  PanelFormat format_ = PanelFormat::f32;
  PanelShape shape_;
  int64_t size_ = 0;
  HostBuffer rows_;
  HostBuffer facts_;
  HostBuffer panels_;
  HostBuffer bounds_;  // arrays of padded_ coefficients: three, and two for the wide bounds
  int64_t padded_ = 0;
  QueryScreen screen_;
};

}  // namespace kith
