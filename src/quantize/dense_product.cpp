#include "quantize/dense_product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/dense_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"

#include <algorithm>
#include <cstdint>

#ifndef KITH_QUANTIZE_DENSE_PRODUCT_ONCE
#define KITH_QUANTIZE_DENSE_PRODUCT_ONCE
namespace kith {
namespace {

constexpr int64_t kTaskRows = 96;  // of C: a multiple of every block's rows
constexpr int64_t kTaskCols = 192;
constexpr int64_t kDepth = 256;  // packed at a time
constexpr int64_t kMostBlockRows = 6;
constexpr int64_t kMostBlockCols = 32;
constexpr int64_t kEnoughTasks = 16;
constexpr int64_t kLeastDepth = 2048;  // of a part

// A tile of C and what is multiplied for it.
template <typename T>
struct TileTask {
  DenseView<const T> a;  // the tile's rows
  DenseView<const T> b;  // its columns
  DenseView<double> c;
  double scale;
  bool adds;
};

struct TileScratch {
  static constexpr int64_t kRows = kTaskRows * kDepth;
  static constexpr int64_t kCols = (kTaskCols + kMostBlockCols) * kDepth;
  static constexpr int64_t kSums = (kTaskRows + kMostBlockRows) * (kTaskCols + kMostBlockCols);
  static constexpr int64_t kDoubles = round_up(kRows + kCols + kSums, 8);

  double* rows;
  double* cols;
  double* sums;

  explicit TileScratch(double* memory) : rows(memory), cols(memory + kRows), sums(memory + kRows + kCols) {}
};

// Panels of `width` rows of `from`, column after column; the last one fills up with zeros.
template <typename T>
void pack_panels(DenseView<const T> from, int64_t width, double* to) {
  for (int64_t first = 0; first < from.rows; first += width, to += width * from.cols) {
    const int64_t count = std::min(width, from.rows - first);
    const T* const at = from.row(first);
    if (from.row_step == 1) {
      for (int64_t k = 0; k < from.cols; ++k) {
        for (int64_t i = 0; i < count; ++i) to[k * width + i] = static_cast<double>(at[k * from.col_step + i]);
        for (int64_t i = count; i < width; ++i) to[k * width + i] = 0.0;
      }
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const T* const row = at + i * from.row_step;
      for (int64_t k = 0; k < from.cols; ++k) to[k * width + i] = static_cast<double>(row[k * from.col_step]);
    }
    for (int64_t i = count; i < width; ++i) {
      for (int64_t k = 0; k < from.cols; ++k) to[k * width + i] = 0.0;
    }
  }
}

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kBlockRows = 6;
constexpr int kBlockVectors = 4;
#else
constexpr int kBlockRows = 4;
constexpr int kBlockVectors = 3;
#endif
constexpr int64_t kBlockCols = kBlockVectors * kDoubles;
static_assert(kTaskRows % kBlockRows == 0 && kBlockCols <= kMostBlockCols && kBlockRows <= kMostBlockRows);

// A block of the sums, `depth` columns of it.
HWY_NOINLINE void add_block(const double* rows, const double* cols, int64_t depth, bool first, double* sums,
                            int64_t stride) {
  Doubles block[kBlockRows][kBlockVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kBlockRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v) {
      block[i][v] = first ? hn::Zero(F64()) : hn::LoadU(F64(), sums + i * stride + v * kDoubles);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    Doubles x[kBlockVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v) x[v] = hn::LoadU(F64(), cols + v * kDoubles);
#pragma GCC unroll 8
    for (int i = 0; i < kBlockRows; ++i) {
      const Doubles value = hn::Set(F64(), rows[i]);
#pragma GCC unroll 4
      for (int v = 0; v < kBlockVectors; ++v) block[i][v] = fused(value, x[v], block[i][v]);
    }
    rows += kBlockRows;
    cols += kBlockCols;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kBlockRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v) hn::StoreU(block[i][v], F64(), sums + i * stride + v * kDoubles);
  }
}

template <typename T>
HWY_INLINE void run_tile(const TileTask<T>& task, double* memory) {
  const TileScratch scratch(memory);
  const int64_t depth = task.a.cols;
  const int64_t stride = round_up(task.b.cols, kBlockCols);
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t slab = std::min(kDepth, depth - k);
    pack_panels<T>(task.a.block(0, k, task.a.rows, slab), kBlockRows, scratch.rows);
    pack_panels<T>(task.b.block(k, 0, slab, task.b.cols).transposed(), kBlockCols, scratch.cols);
    for (int64_t j = 0; j < task.b.cols; j += kBlockCols) {
      for (int64_t i = 0; i < task.a.rows; i += kBlockRows) {
        add_block(scratch.rows + i * slab, scratch.cols + j * slab, slab, k == 0, scratch.sums + i * stride + j,
                  stride);
      }
    }
  }
  for (int64_t i = 0; i < task.c.rows; ++i) {
    double* const to = task.c.row(i);
    const double* const sums = scratch.sums + i * stride;
    for (int64_t j = 0; j < task.c.cols; ++j) {
      const double value = depth > 0 ? task.scale * sums[j] : 0.0;
      to[j] = task.adds ? to[j] + value : value;
    }
  }
}

void DoubleTile(const TileTask<double>& task, double* memory) { run_tile(task, memory); }
void FloatTile(const TileTask<float>& task, double* memory) { run_tile(task, memory); }

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(DoubleTile);
HWY_EXPORT(FloatTile);

namespace {

void run_tile(const TileTask<double>& task, double* memory) { HWY_DYNAMIC_DISPATCH(DoubleTile)(task, memory); }
void run_tile(const TileTask<float>& task, double* memory) { HWY_DYNAMIC_DISPATCH(FloatTile)(task, memory); }

// The upper half is there.
void mirror(DenseView<double> c) {
  for (int64_t i = 1; i < c.rows; ++i) {
    for (int64_t j = 0; j < i; ++j) c(i, j) = c(j, i);
  }
}

template <typename T>
void multiply_any(DenseView<const T> a, DenseView<const T> b, DenseView<double> c, const ProductTerms& terms,
                  const Resources& resources) {
  if (c.rows == 0 || c.cols == 0) return;
  const int64_t down = divide_up(c.rows, kTaskRows);
  const int64_t across = divide_up(c.cols, kTaskCols);
  const int64_t parts =
      std::clamp<int64_t>(kEnoughTasks / (down * across), 1, std::max<int64_t>(1, divide_up(a.cols, kLeastDepth)));
  const int64_t depth = divide_up(a.cols, parts);
  const HostArray<double> sums(parts > 1 ? parts * c.rows * c.cols : 0, "parts of a product", resources);
  const HostArray<double> scratch(resources.threads() * TileScratch::kDoubles, "a tile of a product", resources);
  ProgressMeter meter("product", down * across * parts, resources);
  parallel_for(down * across * parts, meter, resources, [&](int64_t task, int slot) {
    const int64_t part = task / (down * across);
    const int64_t i = task % (down * across) / across * kTaskRows;
    const int64_t j = task % across * kTaskCols;
    const int64_t rows = std::min(kTaskRows, c.rows - i);
    const int64_t cols = std::min(kTaskCols, c.cols - j);
    if (terms.symmetric && i >= j + cols) return;  // below the diagonal
    const int64_t first = std::min(part * depth, a.cols);
    const int64_t count = std::min(depth, a.cols - first);
    TileTask<T> tile{a.block(i, first, rows, count), b.block(first, j, count, cols), c.block(i, j, rows, cols),
                     terms.scale, terms.adds};
    if (parts > 1) {
      const DenseView<double> own{sums.data() + part * c.rows * c.cols, c.rows, c.cols, c.cols, 1};
      tile.c = own.block(i, j, rows, cols);
      tile.scale = 1;
      tile.adds = false;
    }
    run_tile(tile, scratch.data() + slot * TileScratch::kDoubles);
  });
  if (parts > 1) {
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = terms.symmetric ? i : 0; j < c.cols; ++j) {
        double sum = 0;
        for (int64_t part = 0; part < parts; ++part) sum += sums[(part * c.rows + i) * c.cols + j];
        c(i, j) = terms.adds ? c(i, j) + terms.scale * sum : terms.scale * sum;
      }
    }
  }
  if (terms.symmetric) mirror(c);
}

}  // namespace

void multiply(DenseView<const double> a, DenseView<const double> b, DenseView<double> c, const ProductTerms& terms,
              const Resources& resources) {
  multiply_any(a, b, c, terms, resources);
}

void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<double> c, const ProductTerms& terms,
              const Resources& resources) {
  multiply_any(a, b, c, terms, resources);
}

}  // namespace kith
#endif
