#include "kernels/dense/dense.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/dense.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#ifndef KITH_KERNELS_DENSE_ONCE
#define KITH_KERNELS_DENSE_ONCE
namespace kith {
namespace {

constexpr int64_t kTaskRows = 96;  // of C: a multiple of every block's rows
constexpr int64_t kTaskCols = 192;
constexpr int64_t kDepth = 256;  // packed at a time
constexpr int64_t kMostBlockRows = 6;
constexpr int64_t kMostBlockCols = 64;
constexpr int64_t kLeastDepth = 2048;  // of a part

// A tile of C and what is multiplied for it, in the type V.
template <typename T, typename V>
struct TileTask {
  DenseView<const T> a;  // the tile's rows
  DenseView<const T> b;  // its columns
  DenseView<V> c;
  V scale;
  bool adds;
};

// In values of the type that is computed in.
template <typename V>
struct TileScratch {
  static constexpr int64_t kRows = kTaskRows * kDepth;
  static constexpr int64_t kCols = (kTaskCols + kMostBlockCols) * kDepth;
  static constexpr int64_t kSums = (kTaskRows + kMostBlockRows) * (kTaskCols + kMostBlockCols);
  static constexpr int64_t kValues = round_up(kRows + kCols + kSums, 16);

  V* rows;
  V* cols;
  V* sums;

  explicit TileScratch(V* memory) : rows(memory), cols(memory + kRows), sums(memory + kRows + kCols) {}
};

// Panels of `width` rows of `from`, column after column; the last one fills up with zeros.
template <typename T, typename V>
void pack_panels(DenseView<const T> from, int64_t width, V* to) {
  for (int64_t first = 0; first < from.rows; first += width, to += width * from.cols) {
    const int64_t count = std::min(width, from.rows - first);
    const T* const at = from.row(first);
    if (from.row_step == 1) {
      for (int64_t k = 0; k < from.cols; ++k) {
        for (int64_t i = 0; i < count; ++i) to[k * width + i] = static_cast<V>(at[k * from.col_step + i]);
        for (int64_t i = count; i < width; ++i) to[k * width + i] = V{0};
      }
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const T* const row = at + i * from.row_step;
      for (int64_t k = 0; k < from.cols; ++k) to[k * width + i] = static_cast<V>(row[k * from.col_step]);
    }
    for (int64_t i = count; i < width; ++i) {
      for (int64_t k = 0; k < from.cols; ++k) to[k * width + i] = V{0};
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

template <typename V>
constexpr int64_t kBlockCols = kBlockVectors* static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<V>()));
static_assert(kTaskRows % kBlockRows == 0 && kBlockCols<float> <= kMostBlockCols && kBlockRows <= kMostBlockRows);

// A block of the sums, `depth` columns of it.
template <typename V>
HWY_NOINLINE void add_block(const V* rows, const V* cols, int64_t depth, bool first, V* sums, int64_t stride) {
  using D = hn::ScalableTag<V>;
  constexpr int64_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> block[kBlockRows][kBlockVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kBlockRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v) {
      block[i][v] = first ? hn::Zero(D()) : hn::LoadU(D(), sums + i * stride + v * kLanes);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<D> x[kBlockVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v) x[v] = hn::LoadU(D(), cols + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kBlockRows; ++i) {
      const hn::Vec<D> value = hn::Set(D(), rows[i]);
#pragma GCC unroll 4
      for (int v = 0; v < kBlockVectors; ++v) block[i][v] = fused(value, x[v], block[i][v]);
#if HWY_ARCH_ARM_A64
      __asm__ volatile("" ::: "memory");  // or else all values are loaded first, and two sums have no register left
#endif
    }
    rows += kBlockRows;
    cols += kBlockCols<V>;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kBlockRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v) hn::StoreU(block[i][v], D(), sums + i * stride + v * kLanes);
  }
}

template <typename T, typename V>
HWY_INLINE void run_tile(const TileTask<T, V>& task, V* memory) {
  const TileScratch<V> scratch(memory);
  const int64_t depth = task.a.cols;
  const int64_t stride = round_up(task.b.cols, kBlockCols<V>);
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t slab = std::min(kDepth, depth - k);
    pack_panels<T, V>(task.a.block(0, k, task.a.rows, slab), kBlockRows, scratch.rows);
    pack_panels<T, V>(task.b.block(k, 0, slab, task.b.cols).transposed(), kBlockCols<V>, scratch.cols);
    for (int64_t j = 0; j < task.b.cols; j += kBlockCols<V>) {
      for (int64_t i = 0; i < task.a.rows; i += kBlockRows) {
        add_block<V>(scratch.rows + i * slab, scratch.cols + j * slab, slab, k == 0, scratch.sums + i * stride + j,
                     stride);
      }
    }
  }
  for (int64_t i = 0; i < task.c.rows; ++i) {
    V* const to = task.c.row(i);
    const V* const sums = scratch.sums + i * stride;
    for (int64_t j = 0; j < task.c.cols; ++j) {
      const V value = depth > 0 ? task.scale * sums[j] : V{0};
      to[j] = task.adds ? to[j] + value : value;
    }
  }
}

void DoubleTile(const TileTask<double, double>& task, double* memory) { run_tile(task, memory); }
void WidenedTile(const TileTask<float, double>& task, double* memory) { run_tile(task, memory); }
void FloatTile(const TileTask<float, float>& task, float* memory) { run_tile(task, memory); }

double Dot(const double* x, const double* y, int64_t count) {
  constexpr int64_t kVectors = kCanonicalLanes / kDoubles;
  Doubles sums[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(F64());
  int64_t i = 0;
  for (; i + kCanonicalLanes <= count; i += kCanonicalLanes) {
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[v] = fused(hn::LoadU(F64(), x + i + v * kDoubles), hn::LoadU(F64(), y + i + v * kDoubles), sums[v]);
    }
  }
  HWY_ALIGN double lanes[kCanonicalLanes];
  for (int64_t v = 0; v < kVectors; ++v) hn::Store(sums[v], F64(), lanes + v * kDoubles);
  for (int64_t j = 0; i + j < count; ++j) lanes[j] = std::fma(x[i + j], y[i + j], lanes[j]);
  return canonical_tree(lanes);
}

void AddScaled(double scale, const double* x, int64_t count, double* y) {
  const Doubles factor = hn::Set(F64(), scale);
  int64_t i = 0;
  for (; i + kDoubles <= count; i += kDoubles) {
    hn::StoreU(fused(factor, hn::LoadU(F64(), x + i), hn::LoadU(F64(), y + i)), F64(), y + i);
  }
  for (; i < count; ++i) y[i] = std::fma(scale, x[i], y[i]);
}

// All rotations of some columns. They mostly follow each other upwards, so that the upper row of one is the lower of
// the next: it stays in registers, and a row is read once and written once.
template <int kVectors>
HWY_INLINE void rotate_columns(const RowRotation* rotations, int64_t count, double* values, int64_t stride) {
  if (count == 0) return;
  int64_t kept_row = rotations[0].row + 1;
  Doubles kept[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) kept[v] = hn::LoadU(F64(), values + kept_row * stride + v * kDoubles);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = rotations[r].row;
    if (row + 1 != kept_row) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(kept[v], F64(), values + kept_row * stride + v * kDoubles);
        kept[v] = hn::LoadU(F64(), values + (row + 1) * stride + v * kDoubles);
      }
    }
    double* const x = values + row * stride;
    const Doubles cosine = hn::Set(F64(), rotations[r].cosine);
    const Doubles sine = hn::Set(F64(), rotations[r].sine);
    const Doubles minus = hn::Set(F64(), -rotations[r].sine);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Doubles a = hn::LoadU(F64(), x + v * kDoubles);
      hn::StoreU(fused(cosine, kept[v], hn::Mul(sine, a)), F64(), x + stride + v * kDoubles);
      kept[v] = fused(cosine, a, hn::Mul(minus, kept[v]));
    }
    kept_row = row;
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(kept[v], F64(), values + kept_row * stride + v * kDoubles);
}

void RotateRows(const RowRotation* rotations, int64_t count, double* values, int64_t cols, int64_t stride) {
  constexpr int kVectors = static_cast<int>(std::min<int64_t>(8, 32 / kDoubles));
  int64_t i = 0;
  for (; i + kVectors * kDoubles <= cols; i += kVectors * kDoubles) {
    rotate_columns<kVectors>(rotations, count, values + i, stride);
  }
  for (; i + kDoubles <= cols; i += kDoubles) rotate_columns<1>(rotations, count, values + i, stride);
  if (i == cols) return;
  for (int64_t r = 0; r < count; ++r) {
    const double c = rotations[r].cosine;
    const double s = rotations[r].sine;
    double* const x = values + rotations[r].row * stride;
    double* const y = x + stride;
    for (int64_t last = i; last < cols; ++last) {
      const double a = x[last];
      const double b = y[last];
      x[last] = std::fma(c, a, -s * b);
      y[last] = std::fma(c, b, s * a);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(DoubleTile);
HWY_EXPORT(WidenedTile);
HWY_EXPORT(FloatTile);
HWY_EXPORT(Dot);
HWY_EXPORT(AddScaled);
HWY_EXPORT(RotateRows);

int64_t product_parts(int64_t rows, int64_t cols, int64_t depth, const ProductTerms& terms) {
  return std::clamp<int64_t>(terms.tasks / (divide_up(rows, kTaskRows) * divide_up(cols, kTaskCols)), 1,
                             std::max<int64_t>(1, divide_up(depth, kLeastDepth)));
}

namespace {

void run_tile(const TileTask<double, double>& task, double* memory) { HWY_DYNAMIC_DISPATCH(DoubleTile)(task, memory); }
void run_tile(const TileTask<float, double>& task, double* memory) { HWY_DYNAMIC_DISPATCH(WidenedTile)(task, memory); }
void run_tile(const TileTask<float, float>& task, float* memory) { HWY_DYNAMIC_DISPATCH(FloatTile)(task, memory); }

// The upper half is there.
template <typename V>
void mirror(DenseView<V> c) {
  for (int64_t i = 1; i < c.rows; ++i) {
    for (int64_t j = 0; j < i; ++j) c(i, j) = c(j, i);
  }
}

// What a product takes beside its matrices.
template <typename V>
struct ProductMemory {
  ProductMemory(int64_t rows, int64_t cols, int64_t depth, const ProductTerms& terms, const Resources& resources)
      : parts(product_parts(rows, cols, depth, terms)),
        sums(parts > 1 ? parts * rows * cols : 0, "parts of a product", resources),
        scratch(resources.threads() * TileScratch<V>::kValues, "a tile of a product", resources) {}

  int64_t parts;      // that the columns of A are cut into
  HostArray<V> sums;  // of each part
  HostArray<V> scratch;
};

template <typename T, typename V>
void multiply_any(DenseView<const T> a, DenseView<const T> b, DenseView<V> c, const ProductTerms& terms,
                  const Resources& resources) {
  if (c.rows == 0 || c.cols == 0) return;
  const int64_t down = divide_up(c.rows, kTaskRows);
  const int64_t across = divide_up(c.cols, kTaskCols);
  const ProductMemory<V> memory(c.rows, c.cols, a.cols, terms, resources);
  if (resources.host_memory()->counts_only()) return;
  const int64_t parts = memory.parts;
  const HostArray<V>& sums = memory.sums;
  const int64_t depth = divide_up(a.cols, parts);
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
    TileTask<T, V> tile{a.block(i, first, rows, count), b.block(first, j, count, cols), c.block(i, j, rows, cols),
                        static_cast<V>(terms.scale), terms.adds};
    if (parts > 1) {
      const DenseView<V> own{sums.data() + part * c.rows * c.cols, c.rows, c.cols, c.cols, 1};
      tile.c = own.block(i, j, rows, cols);
      tile.scale = 1;
      tile.adds = false;
    }
    run_tile(tile, memory.scratch.data() + slot * TileScratch<V>::kValues);
  });
  if (parts > 1) {
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = terms.symmetric ? i : 0; j < c.cols; ++j) {
        double sum = 0;
        for (int64_t part = 0; part < parts; ++part) sum += static_cast<double>(sums[(part * c.rows + i) * c.cols + j]);
        sum *= terms.scale;
        c(i, j) = static_cast<V>(terms.adds ? static_cast<double>(c(i, j)) + sum : sum);
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

void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<float> c, const ProductTerms& terms,
              const Resources& resources) {
  multiply_any(a, b, c, terms, resources);
}

template <typename T>
Footprint product_footprint(int64_t rows, int64_t cols, int64_t depth, const Resources& resources,
                            const ProductTerms& terms) {
  return footprint_of<ProductMemory<T>>(resources, rows, cols, depth, terms);
}
template Footprint product_footprint<float>(int64_t, int64_t, int64_t, const Resources&, const ProductTerms&);
template Footprint product_footprint<double>(int64_t, int64_t, int64_t, const Resources&, const ProductTerms&);

double dot(const double* x, const double* y, int64_t count) { return HWY_DYNAMIC_DISPATCH(Dot)(x, y, count); }

void add_scaled(double scale, const double* x, int64_t count, double* y) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(scale, x, count, y);
}

void rotate_rows(const RowRotation* rotations, int64_t count, double* values, int64_t cols, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(RotateRows)(rotations, count, values, cols, stride);
}

}  // namespace kith
#endif
