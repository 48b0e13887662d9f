#include "kernels/dense/dense_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/device_core.hpp"
#include "cuda/launch.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kDepth = 16;  // columns of A in a slab
constexpr int kThreads = 256;
// From this number of values on, C fills the GPU in large tiles.
constexpr int64_t kManyValues = int64_t{1} << 21;

template <typename T, typename V>
struct TileProduct {
  DenseView<const T> a;
  DenseView<const T> b;
  DenseView<V> c;
  V* sums = nullptr;  // of the parts, each as large as C; none where there is one
  int64_t depth = 0;  // of a part
  V scale = 1;
  bool adds = false;
  bool symmetric = false;
};

// Loads rows first .. first + kTile - 1 and columns k .. k + kDepth - 1 of a matrix: each thread reads some to
// registers, then all are stored in shared memory, column by column. Values past the last row or column are 0.
// Neighbouring threads read neighbouring addresses, for both orientations.
template <typename T, typename V, int kTile, int kTileThreads>
class Slab {
 public:
  static constexpr int kStride = kTile + 16 / static_cast<int>(sizeof(V));

  __device__ Slab(const DenseView<const T>& from, int64_t first) : col_step_(from.col_step) {
    const auto thread = static_cast<int>(threadIdx.x);
    const bool along = from.col_step == 1;
    const int row = along ? thread / kDepth : thread % kTile;
    const int row_apart = along ? kTileThreads / kDepth : 0;
    column_ = along ? thread % kDepth : thread / kTile;
    column_apart_ = along ? 0 : kTileThreads / kTile;
    from_ = from.data + (first + row) * from.row_step + column_ * from.col_step;
    apart_ = row_apart * from.row_step + column_apart_ * from.col_step;
    to_ = column_ * kStride + row;
    to_apart_ = column_apart_ * kStride + row_apart;
    KITH_UNROLL
    for (int e = 0; e < kEach; ++e) {
      if (first + row + e * row_apart < from.rows) exists_ |= 1u << e;
    }
  }

  __device__ void load(int64_t k, int64_t end) {
    const T* const from = from_ + k * col_step_;
    const auto count = static_cast<int>(min(end - k, int64_t{kDepth}));  // may be negative
    KITH_UNROLL
    for (int e = 0; e < kEach; ++e) {
      const bool inside = (exists_ >> e & 1u) != 0 && column_ + e * column_apart_ < count;
      values_[e] = inside ? from[e * apart_] : T{0};
    }
  }
  __device__ void store(V* shared) const {
    KITH_UNROLL
    for (int e = 0; e < kEach; ++e) shared[to_ + e * to_apart_] = static_cast<V>(values_[e]);
  }

 private:
  static constexpr int kEach = kTile * kDepth / kTileThreads;
  static_assert(kTileThreads % kDepth == 0 && kTileThreads % kTile == 0);

  const T* from_;
  int64_t apart_;
  int64_t col_step_;
  int column_;
  int column_apart_;
  int to_;
  int to_apart_;
  unsigned exists_ = 0;  // a bit for each value
  T values_[kEach];
};

// Tile (blockIdx.y, blockIdx.x) of part blockIdx.z: kTile x kTile values, kMicro x kMicro for each thread.
template <typename T, typename V, int kTile, int kMicro>
__global__ void __launch_bounds__((kTile / kMicro) * (kTile / kMicro), kTile == 32 ? 1 : 2)
    multiply_kernel(TileProduct<T, V> product) {
  constexpr int kAcross = kTile / kMicro;
  constexpr int kTileThreads = kAcross * kAcross;
  constexpr int kTogether = 4;  // values side by side in shared memory
  using Operand = Slab<T, V, kTile, kTileThreads>;
  __shared__ alignas(16) V left[2][kDepth * Operand::kStride];
  __shared__ alignas(16) V right[2][kDepth * Operand::kStride];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile;
  if (product.symmetric && blockIdx.y > blockIdx.x) return;  // mirrored
  const int64_t first = min(static_cast<int64_t>(blockIdx.z) * product.depth, product.a.cols);
  const int64_t end = min(first + product.depth, product.a.cols);
  const int y = static_cast<int>(threadIdx.x) / kAcross;
  const int x = static_cast<int>(threadIdx.x) % kAcross;
  // The i-th of a thread's rows or columns in the tile: fours, apart from each other.
  const auto place = [](int thread, int i) {
    return i / kTogether * (kTile / (kMicro / kTogether)) + thread * kTogether + i % kTogether;
  };

  V values[kMicro][kMicro] = {};
  Operand a(product.a, row);
  Operand b(product.b.transposed(), column);
  a.load(first, end);
  b.load(first, end);
  int turn = 0;
  for (int64_t k = first; k < end; k += kDepth, turn ^= 1) {
    a.store(left[turn]);
    b.store(right[turn]);
    __syncthreads();
    a.load(k + kDepth, end);
    b.load(k + kDepth, end);
    const auto step = [&](int depth) {
      V l[kMicro];
      V r[kMicro];
      KITH_UNROLL
      for (int i = 0; i < kMicro; ++i) l[i] = left[turn][depth * Operand::kStride + place(y, i)];
      KITH_UNROLL
      for (int i = 0; i < kMicro; ++i) r[i] = right[turn][depth * Operand::kStride + place(x, i)];
      KITH_UNROLL
      for (int i = 0; i < kMicro; ++i) {
        KITH_UNROLL
        for (int j = 0; j < kMicro; ++j) values[i][j] = fma(l[i], r[j], values[i][j]);
      }
    };
    if (end - k >= kDepth) {
      KITH_UNROLL
      for (int depth = 0; depth < kDepth; ++depth) step(depth);
    } else {
      for (int depth = 0; depth < static_cast<int>(end - k); ++depth) step(depth);
    }
  }

  V* const own = product.sums == nullptr ? nullptr : product.sums + blockIdx.z * product.c.rows * product.c.cols;
  KITH_UNROLL
  for (int i = 0; i < kMicro; ++i) {
    KITH_UNROLL
    for (int j = 0; j < kMicro; ++j) {
      const int64_t r = row + place(y, i);
      const int64_t c = column + place(x, j);
      if (r >= product.c.rows || c >= product.c.cols) continue;
      if (own != nullptr) {
        own[r * product.c.cols + c] = values[i][j];
        continue;
      }
      const V value = product.scale * values[i][j];
      const V result = product.adds ? product.c(r, c) + value : value;
      product.c(r, c) = result;
      if (product.symmetric && blockIdx.y < blockIdx.x) product.c(c, r) = result;
    }
  }
}

// The parts in their order, in float64. Of a symmetric product the lower half takes what the upper has.
template <typename T, typename V>
__global__ void __launch_bounds__(kThreads) add_parts_kernel(TileProduct<T, V> product, int64_t parts, double scale) {
  const int64_t values = product.c.rows * product.c.cols;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= values) return;
  const int64_t i = at / product.c.cols;
  const int64_t j = at % product.c.cols;
  const int64_t from = product.symmetric && j < i ? j * product.c.cols + i : at;
  double sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += static_cast<double>(product.sums[part * values + from]);
  sum *= scale;
  product.c(i, j) = static_cast<V>(product.adds ? static_cast<double>(product.c(i, j)) + sum : sum);
}

template <int kTile, int kMicro, typename T, typename V>
void launch_tiles(const TileProduct<T, V>& product, int64_t parts, cudaStream_t stream) {
  Grid grid = Grid::of(divide_up(product.c.cols, int64_t{kTile}), divide_up(product.c.rows, int64_t{kTile}),
                       (kTile / kMicro) * (kTile / kMicro));
  grid.blocks.z = static_cast<unsigned>(parts);
  launch(multiply_kernel<T, V, kTile, kMicro>, grid, stream, product);
}

template <typename T, typename V>
void launch_any(const DenseView<const T>& a, const DenseView<const T>& b, const DenseView<V>& c,
                const ProductTerms& terms, V* sums, cudaStream_t stream) {
  if (c.rows == 0 || c.cols == 0) return;
  const int64_t parts = product_parts(c.rows, c.cols, a.cols, terms);
  TileProduct<T, V> product{a, b, c, parts > 1 ? sums : nullptr, divide_up(a.cols, parts)};
  product.scale = static_cast<V>(terms.scale);
  product.adds = terms.adds;
  product.symmetric = terms.symmetric;
  if constexpr (sizeof(V) > sizeof(float)) {
    launch_tiles<64, 4>(product, parts, stream);
  } else if (c.rows * c.cols * parts >= kManyValues) {
    launch_tiles<128, 8>(product, parts, stream);
  } else {
    launch_tiles<32, 4>(product, parts, stream);
  }
  if (parts > 1)
    launch(add_parts_kernel<T, V>, Grid::over(c.rows * c.cols, kThreads), stream, product, parts, terms.scale);
}

}  // namespace

int64_t product_part_values(int64_t rows, int64_t cols, int64_t depth, const ProductTerms& terms) {
  const int64_t parts = product_parts(rows, cols, depth, terms);
  return parts > 1 ? parts * rows * cols : 0;
}

void launch_multiply(DenseView<const float> a, DenseView<const float> b, DenseView<float> c, const ProductTerms& terms,
                     float* sums, cudaStream_t stream) {
  launch_any(a, b, c, terms, sums, stream);
}

void launch_multiply(DenseView<const float> a, DenseView<const float> b, DenseView<double> c, const ProductTerms& terms,
                     double* sums, cudaStream_t stream) {
  launch_any(a, b, c, terms, sums, stream);
}

}  // namespace kith
