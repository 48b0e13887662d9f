// Queries packed for products with packed rows (packed_rows.hpp), with the products' error bounds.
//
//   key(query, row) = value + offset(query), or its square for L2, within the query's bound for the row's panel
//
// Memory: the packed values, and per query 24 bytes, 24 for a screen, or both.
#pragma once

#include <kith/host_buffer.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/panels/screen.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kith {

class PackedQueries {
 public:
  PackedQueries() = default;
  PackedQueries(KeyKind kind, PanelFormat format, int64_t capacity, int64_t cols, const Resources& resources);
  static int64_t bytes_for(PanelFormat format, int64_t queries, int64_t cols);
  // Scratch bytes that one thread needs to pack.
  static int64_t scratch_bytes(PanelFormat format, int64_t cols);

  int64_t panel_width() const { return shape_.queries_per_panel; }
  // Sets the rows' scale (PackedRows::scale); offsets and limits refer to scaled vectors.
  void set_scale(float scale) { scale_ = scale; }

  // Packs `count` contiguous f32 vectors as the queries of a panel, from panel * panel_width() on.
  // Different panels may be packed at once. `origin` is that of the rows.
  void pack_panel(int64_t panel, const float* queries, int64_t count, std::span<const float> origin, std::byte* scratch);

  // Packs all queries, `count` vectors, on all threads.
  void pack(const float* queries, int64_t count, std::span<const float> origin, ProgressMeter& meter,
            const Resources& resources);

  float offset(int64_t query) const { return offsets_.as<float>()[query]; }
  // The queries from `first` on, the first of a panel. The limits are the caller's.
  PanelQueries panels(int64_t first, int64_t count, float* limits) const;
  // If the format has a screen.
  RoundedQueries screen_panels(int64_t first, int64_t count, float* limits) const {
    return screen_.panels(first, count, limits);
  }
  // For bytes and bits: value + offset is the exact sum.
  int32_t byte_offset(int64_t query) const { return offsets_.as<int32_t>()[query]; }
  BytePanelQueries byte_panels(int64_t first, int64_t count, int32_t* limits) const;

 private:
  void pack_floats(int64_t first, const float* queries, int64_t count, std::span<const float> origin, std::byte* scratch);
  void pack_bytes(int64_t first, const float* queries, int64_t count, std::byte* scratch);
  // Moves a panel's vectors from scratch, where they are contiguous, to their place.
  void place(int64_t first, int64_t count, const uint32_t* vectors);

  KeyKind kind_ = KeyKind::l2;
  PanelFormat format_ = PanelFormat::f32;
  PanelShape shape_;
  int64_t cols_ = 0;
  float scale_ = 1;
  int64_t padded_ = 0;  // queries, padded to whole panels
  HostBuffer panels_;
  HostBuffer offsets_;       // f32 or i32
  HostArray<float> bounds_;  // for floats: arrays of padded_ coefficients, three and two for the wide bounds
  QueryScreen screen_;
};

// Packed queries against packed rows, either in f32 or only rounded to bytes: one interface for scans and bounds.
class PackedProduct {
 public:
  // Queries from `first`, the first of a panel, on; below they count from there. Each accepts values up to its limit
  // and its bound; on_hit may lower limits, which are padded to whole panels.
  PackedProduct(const PackedQueries& queries, int64_t first, int64_t count, float* limits, const PackedRows& rows)
      : rounded_(rows.format() == PanelFormat::rounded), panels_(rows.panel_count()) {
    if (rounded_) {
      rounded_queries_ = queries.screen_panels(first, count, limits);
      rounded_rows_ = rows.screen_panels();
    } else {
      float_queries_ = queries.panels(first, count, limits);
      float_rows_ = rows.panels();
    }
  }

  void scan(PanelHits& hits) const {
    if (rounded_) return scan_rounded_panels(rounded_queries_, rounded_rows_, 0, panels_, hits);
    scan_panels(float_queries_, float_rows_, 0, panels_, hits);
  }
  float bound(int64_t query, int64_t panel) const {
    if (!rounded_) return float_queries_.bound(query).at(float_rows_.norms[panel]);
    return rounded_queries_.bound(query, rounded_rows_.norms[panel], rounded_rows_.residuals[panel]);
  }

 private:
  const bool rounded_;
  const int64_t panels_;
  PanelQueries float_queries_;
  PanelBase float_rows_;
  RoundedQueries rounded_queries_;
  RoundedBase rounded_rows_;
};

}  // namespace kith
