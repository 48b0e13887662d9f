#include "kernels/distance/canonical_block.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/linf_block_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/slot.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "rows/load_cpu-inl.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>

#ifndef KITH_KERNELS_DISTANCE_LINF_BLOCK_CPU_ONCE
#define KITH_KERNELS_DISTANCE_LINF_BLOCK_CPU_ONCE
namespace kith {
namespace {

constexpr int64_t kPanelRows = 64;  // a multiple of every tile's
constexpr int64_t kLinfQueries = 4;
constexpr int64_t kLinfColumns = 1024;  // packed at a time

// Some columns of a panel's rows.
struct LinfPanelPlace {
  const float* panel;
  int64_t first_row;
  int64_t rows;
  int64_t first_col;
  int64_t cols;
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kWide = hn::MaxLanes(F32());
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kLinfVectors = 4;
#else
constexpr int kLinfVectors = 2;
#endif
constexpr int64_t kLinfRows = kLinfVectors * kWide;
static_assert(kPanelRows % kLinfRows == 0);

using Magnitude = hn::Vec<hn::RebindToSigned<F32>>;

// kLinfRows rows of a panel, from `panel` on, and some queries: fewer repeat the last one.
void linf_tile(const float* const (&queries)[kLinfQueries], const float* panel, int64_t cols,
               Magnitude (&largest)[kLinfQueries][kLinfVectors]) {
  const F32 d;
  const hn::RebindToSigned<F32> bits;
  Magnitude found[kLinfQueries][kLinfVectors];
#pragma GCC unroll 4
  for (int q = 0; q < kLinfQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kLinfVectors; ++v) found[q][v] = hn::Zero(bits);
  }
  for (int64_t c = 0; c < cols; ++c) {
    hn::Vec<F32> x[kLinfVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kLinfVectors; ++v) x[v] = hn::LoadU(d, panel + c * kPanelRows + v * kWide);
#pragma GCC unroll 4
    for (int q = 0; q < kLinfQueries; ++q) {
      const auto value = hn::Set(d, queries[q][c]);
#pragma GCC unroll 4
      for (int v = 0; v < kLinfVectors; ++v) {
        found[q][v] = hn::Max(found[q][v], hn::BitCast(bits, hn::Abs(hn::Sub(value, x[v]))));
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kLinfQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kLinfVectors; ++v) largest[q][v] = found[q][v];
  }
}

// All queries and the rows of a panel. The keys of other columns, which came before, are those of the block.
void LinfPanel(const CanonicalBlock& block, const LinfPanelPlace& place) {
  const F32 d;
  const hn::RebindToSigned<F32> bits;
  for (int64_t first = 0; first < block.query_count; first += kLinfQueries) {
    const float* queries[kLinfQueries];
    for (int64_t q = 0; q < kLinfQueries; ++q) {
      queries[q] = block.queries[std::min(first + q, block.query_count - 1)].values + place.first_col;
    }
    const int64_t query_count = std::min(kLinfQueries, block.query_count - first);
    for (int64_t tile = 0; tile < place.rows; tile += kLinfRows) {
      Magnitude largest[kLinfQueries][kLinfVectors];
      linf_tile(queries, place.panel + tile, place.cols, largest);
      for (int64_t q = 0; q < query_count; ++q) {
        float* const keys = block.keys + (first + q) * block.stride + place.first_row + tile;
        for (int v = 0; v < kLinfVectors; ++v) {
          const int64_t left = std::min(place.rows - tile - v * kWide, kWide);
          if (left <= 0) break;
          HWY_ALIGN float some[kWide] = {};
          float* const to = left == kWide ? keys + v * kWide : some;
          if (place.first_col > 0) {
            if (to == some) std::copy_n(keys + v * kWide, left, some);
            largest[q][v] = hn::Max(largest[q][v], hn::BitCast(bits, hn::LoadU(d, to)));
          }
          hn::StoreU(hn::BitCast(d, largest[q][v]), d, to);
          if (to == some) std::copy_n(some, left, keys + v * kWide);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(LinfPanel);

// A panel and some columns of a row, widened.
int64_t linf_block_bytes(int64_t cols) {
  return (kPanelRows + 1) * std::min(cols, kLinfColumns) * static_cast<int64_t>(sizeof(float));
}

void linf_block_cpu(const CanonicalBlock& block, std::byte* memory) {
  float* const scratch = Slot<float>{}.in(memory);
  const MatrixView& all = block.rows;
  for (int64_t col = 0; col < all.cols(); col += kLinfColumns) {
    const int64_t cols = std::min(kLinfColumns, all.cols() - col);
    float* const widened = scratch + kPanelRows * cols;
    for (int64_t first = 0; first < all.rows(); first += kPanelRows) {
      const int64_t count = std::min(kPanelRows, all.rows() - first);
      const MatrixView rows(all.row(first) + col * size_of(all.dtype()), all.dtype(), {count, cols, all.row_stride()},
                            all.space());
      if (rows.dtype() == DType::f32) {
        pack_units(static_cast<const float*>(rows.data()), rows.row_stride(), count, cols, kPanelRows, scratch);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          widen_row(rows, i, widened);
          for (int64_t c = 0; c < cols; ++c) scratch[c * kPanelRows + i] = widened[c];
        }
      }
      HWY_DYNAMIC_DISPATCH(LinfPanel)(block, {scratch, first, count, col, cols});
    }
  }
}

}  // namespace kith
#endif
