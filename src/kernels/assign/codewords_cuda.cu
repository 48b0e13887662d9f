#include "kernels/assign/codewords_cuda.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kGroup = static_cast<int>(kCentreGroup);
constexpr uint32_t kNumberBits = 0xFF;
constexpr double kNumberError = 0x1p-15 * 1.01;  // of a value whose lowest bits are replaced
constexpr float kNoCodeword = 1.5e38f;           // the term of what fills up a group: never near, and a number

struct PartView {
  ProductPart info;
  const float* origin;
  const float* groups;
  const float* words;
  const uint8_t* numbers;
};

__device__ PartView part_of(const ProductTableLayout& layout, const std::byte* tables, int64_t p) {
  PartView part;
  part.info = layout.part_infos.in(tables)[p];
  part.origin = layout.origins.in(tables) + p * layout.cols;
  part.groups = layout.groups.in(tables) + p * layout.codewords * (layout.padded_cols + 1);
  part.words = layout.words.in(tables) + p * layout.codewords * layout.cols;
  part.numbers = layout.numbers.in(tables) + p * layout.codewords;
  return part;
}

// The exact nearest codeword of one row, by a whole warp: canonical keys of the codewords within the limit.
__device__ uint32_t settle(const ProductTableLayout& layout, const PartView& part, const float* row, float limit) {
  uint64_t best = kPadding;
  for (int w = static_cast<int>(threadIdx.x % 32); w < part.info.count; w += 32) {
    const float* const group = part.groups + w / kGroup * kGroup * (layout.padded_cols + 1) + w % kGroup;
    float value = group[0];
    for (int64_t c = 0; c < layout.cols; ++c) value = fmaf(row[c] - part.origin[c], group[(c + 1) * kGroup], value);
    if (value > limit) continue;  // NaN stays
    const float key = canonical_pair<KeyKind::squared_l2>(row, part.words + w * layout.cols, layout.cols);
    const uint64_t found = pack_neighbor(ordered_key(key), static_cast<uint32_t>(w));
    best = found < best ? found : best;
  }
  return row_of(warp_least(best));
}

__device__ void keep(float value, uint32_t number, float& best, float& second) {
  const float marked = __uint_as_float((__float_as_uint(value) & ~kNumberBits) | number);
  second = fminf(second, fmaxf(marked, best));
  best = fminf(best, marked);
}

// Decides doubtful rows exactly and writes the label. Called by every thread of a warp.
__device__ void finish_row(const ProductTableLayout& layout, const PartView& part, const NearestCodewordRows& rows,
                           int64_t p, int64_t row, float best, float second, float squared_norm) {
  const float norm = sqrtf(squared_norm) * 1.001f;  // covers its rounding
  const float slack = 2 * (part.info.constant + norm * (part.info.linear + norm * part.info.quadratic));
  const bool bounded = squared_norm < static_cast<float>(kLargestSquaredNorm);
  const bool sure = bounded && second - best > slack;
  uint32_t word = __float_as_uint(best) & kNumberBits;
  const bool exists = row < rows.count;
  for (unsigned doubt = __ballot_sync(kAllLanes, exists && !sure); doubt != 0; doubt &= doubt - 1) {
    const int lane = __ffs(static_cast<int>(doubt)) - 1;
    const int64_t settled = __shfl_sync(kAllLanes, row, lane);
    const float limit = __shfl_sync(kAllLanes, bounded ? best + slack : HUGE_VALF, lane);
    const uint32_t found = settle(layout, part, rows.values + settled * rows.row_stride + p * rows.part_stride, limit);
    if (static_cast<int>(threadIdx.x % 32) == lane) word = found;
  }
  if (exists) rows.labels[row * rows.label_row_stride + p * rows.label_part_stride] = part.numbers[word];
}

// Parts blockIdx.y, blockIdx.y + gridDim.y, ... of kThreads * kRows rows. Up to kCols columns.
template <int kCols, int kRows>
__global__ void __launch_bounds__(kThreads)
    nearest_kernel(ProductTableLayout layout, const std::byte* tables, NearestCodewordRows rows) {
  extern __shared__ float4 table[];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kRows + threadIdx.x;
  for (int64_t p = blockIdx.y; p < layout.parts; p += gridDim.y) {
    const PartView part = part_of(layout, tables, p);
    const int groups = (part.info.count + kGroup - 1) / kGroup;
    __syncthreads();  // the table of the part before is no longer read
    for (int i = static_cast<int>(threadIdx.x); i < groups * (kCols + 1); i += kThreads) {
      table[i] = vectors<float4>(part.groups)[i];
    }
    __syncthreads();
    float x[kRows][kCols];
    float norms[kRows];
    float best[kRows];
    float second[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = first + r * kThreads;
      const float* const from = rows.values + (row < rows.count ? row : 0) * rows.row_stride + p * rows.part_stride;
      norms[r] = 0;
#pragma unroll
      for (int c = 0; c < kCols; ++c) {
        x[r][c] = c < layout.cols ? from[c] - part.origin[c] : 0.0f;
        norms[r] = fmaf(x[r][c], x[r][c], norms[r]);
      }
      best[r] = second[r] = HUGE_VALF;
    }
    for (int g = 0; g < groups; ++g) {
      const float4* const group = table + g * (kCols + 1);
      const float4 terms = group[0];
      float values[kRows][kGroup];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        values[r][0] = terms.x;
        values[r][1] = terms.y;
        values[r][2] = terms.z;
        values[r][3] = terms.w;
      }
#pragma unroll
      for (int c = 0; c < kCols; ++c) {
        const float4 factors = group[c + 1];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          values[r][0] = fmaf(x[r][c], factors.x, values[r][0]);
          values[r][1] = fmaf(x[r][c], factors.y, values[r][1]);
          values[r][2] = fmaf(x[r][c], factors.z, values[r][2]);
          values[r][3] = fmaf(x[r][c], factors.w, values[r][3]);
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          keep(values[r][j], static_cast<uint32_t>(g * kGroup + j), best[r], second[r]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      finish_row(layout, part, rows, p, first + r * kThreads, best[r], second[r], norms[r]);
    }
  }
}

// Any number of columns; rows are read again for every two groups of codewords.
__global__ void __launch_bounds__(kThreads)
    nearest_wide_kernel(ProductTableLayout layout, const std::byte* tables, NearestCodewordRows rows) {
  constexpr int kTogether = 2;  // groups
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t p = blockIdx.y; p < layout.parts; p += gridDim.y) {
    const PartView part = part_of(layout, tables, p);
    const int groups = (part.info.count + kGroup - 1) / kGroup;
    const int64_t group_values = layout.cols + 1;
    const float* const from = rows.values + (row < rows.count ? row : 0) * rows.row_stride + p * rows.part_stride;
    float squared_norm = 0;
    float best = HUGE_VALF;
    float second = HUGE_VALF;
    for (int64_t c = 0; c < layout.cols; ++c) {
      const float x = from[c] - part.origin[c];
      squared_norm = fmaf(x, x, squared_norm);
    }
    for (int g = 0; g < groups; g += kTogether) {
      const float4* group[kTogether];
      float4 values[kTogether];
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {  // an odd last group is computed twice
        group[t] = vectors<float4>(part.groups) + min(g + t, groups - 1) * group_values;
        values[t] = group[t][0];
      }
      for (int64_t c = 0; c < layout.cols; ++c) {
        const float x = from[c] - part.origin[c];
#pragma unroll
        for (int t = 0; t < kTogether; ++t) {
          const float4 factors = group[t][c + 1];
          values[t].x = fmaf(x, factors.x, values[t].x);
          values[t].y = fmaf(x, factors.y, values[t].y);
          values[t].z = fmaf(x, factors.z, values[t].z);
          values[t].w = fmaf(x, factors.w, values[t].w);
        }
      }
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {
        if (g + t >= groups) break;
        const auto number = static_cast<uint32_t>((g + t) * kGroup);
        keep(values[t].x, number, best, second);
        keep(values[t].y, number + 1, best, second);
        keep(values[t].z, number + 2, best, second);
        keep(values[t].w, number + 3, best, second);
      }
    }
    finish_row(layout, part, rows, p, row, best, second, squared_norm);
  }
}

__global__ void __launch_bounds__(kThreads)
    add_rows_kernel(ProductTableLayout layout, const float* rows, const uint8_t* labels, int64_t count, double* sums,
                    uint32_t* counts) {
  const int64_t values = count * layout.cols;  // of a part
  const int64_t p = blockIdx.y;
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < values; i += apart) {
    const int64_t row = i / layout.cols;
    const int64_t column = i % layout.cols;
    const int64_t word = p * layout.codewords + labels[p * count + row];
    atomicAdd(sums + word * layout.cols + column, static_cast<double>(rows[p * values + i]));
    if (column == 0) atomicAdd(counts + word, 1u);
  }
}

int64_t padded_columns(int64_t cols) {
  int64_t padded = 2;
  while (padded < cols) padded *= 2;
  return padded <= 32 ? padded : cols;
}

// Launches enough blocks side by side that rows alone need not fill the GPU.
Grid grid_for(const ProductTableLayout& layout, int64_t rows, int64_t rows_each) {
  constexpr int64_t kBlocks = 1024;
  const int64_t row_blocks = divide_up(rows, rows_each);
  const int64_t most = std::min<int64_t>(layout.parts, 65535);
  return Grid::of(row_blocks, std::clamp<int64_t>(divide_up(kBlocks, row_blocks), 1, most), kThreads);
}

template <int kCols, int kRows>
void launch_short(const ProductTableLayout& layout, const std::byte* tables, const NearestCodewordRows& rows,
                  cudaStream_t stream) {
  static_assert(256 * (kCols + 1) * sizeof(float) <= 48 * 1024);
  const Grid grid = grid_for(layout, rows.count, kThreads * kRows);
  launch(nearest_kernel<kCols, kRows>, grid.with_shared(array_bytes<float>(layout.codewords * (kCols + 1))), stream,
         layout, tables, rows);
}

}  // namespace

ProductTableLayout::ProductTableLayout(const CodeFormat& format)
    : parts(format.parts),
      cols(format.part_cols()),
      padded_cols(padded_columns(format.part_cols())),
      codewords(format.codewords()) {
  part_infos = take<ProductPart>(parts);
  origins = take<float>(parts, cols);
  groups = take<float>(parts * codewords, padded_cols + 1);
  words = take<float>(parts * codewords, cols);
  numbers = take<uint8_t>(parts * codewords);
}

void fill_product_part(const ProductTableLayout& layout, int64_t p, const NearestCodeword& part, std::byte* out) {
  const CompareTask& task = part.task();
  // The bound of a value grows by what its lowest bits can change: a part of the same (|row| + |codeword|)^2.
  const double grown = 1 + kNumberError / static_cast<double>(task.bound.quadratic);
  ProductPart& info = layout.part_infos.in(out)[p];
  info.count = static_cast<int32_t>(task.count);
  info.constant = static_cast<float>(static_cast<double>(task.bound.constant) * grown);
  info.linear = static_cast<float>(static_cast<double>(task.bound.linear) * grown);
  info.quadratic = static_cast<float>(static_cast<double>(task.bound.quadratic) * grown);
  std::copy_n(task.origin, layout.cols, layout.origins.in(out) + p * layout.cols);
  float* const groups = layout.groups.in(out) + p * layout.codewords * (layout.padded_cols + 1);
  const int64_t wide = (layout.padded_cols + 1) * kGroup;
  for (int64_t g = 0; g < divide_up(task.count, kGroup); ++g) {
    const float* const from = task.groups + g * (layout.cols + 1) * kGroup;
    float* const to = groups + g * wide;
    std::copy_n(from, (layout.cols + 1) * kGroup, to);
    std::fill(to + (layout.cols + 1) * kGroup, to + wide, 0.0f);
    for (int64_t j = task.count - g * kGroup; j < kGroup; ++j) to[j] = kNoCodeword;
  }
  float* const words = layout.words.in(out) + p * layout.codewords * layout.cols;
  for (int64_t w = 0; w < task.count; ++w) {
    std::copy_n(task.words + w * task.padded, layout.cols, words + w * layout.cols);
  }
  std::copy_n(task.number, task.count, layout.numbers.in(out) + p * layout.codewords);
}

void fill_product_tables(const ProductTableLayout& layout, const std::vector<NearestCodeword>& parts, std::byte* out) {
  for (int64_t p = 0; p < layout.parts; ++p) fill_product_part(layout, p, parts[static_cast<size_t>(p)], out);
}

void launch_nearest_codewords(const ProductTableLayout& layout, const std::byte* tables,
                              const NearestCodewordRows& rows, cudaStream_t stream) {
  if (rows.count == 0) return;
  switch (layout.padded_cols) {
    case 2: return launch_short<2, 2>(layout, tables, rows, stream);
    case 4: return launch_short<4, 2>(layout, tables, rows, stream);
    case 8: return launch_short<8, 2>(layout, tables, rows, stream);
    case 16: return launch_short<16, 2>(layout, tables, rows, stream);
    case 32: return launch_short<32, 1>(layout, tables, rows, stream);
    default: launch(nearest_wide_kernel, grid_for(layout, rows.count, kThreads), stream, layout, tables, rows);
  }
}

void launch_add_rows_by_label(const ProductTableLayout& layout, const float* rows, const uint8_t* labels, int64_t count,
                              double* sums, uint32_t* counts, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(divide_up(count * layout.cols, kThreads), 4096);
  launch(add_rows_kernel, Grid::of(blocks, layout.parts, kThreads), stream, layout, rows, labels, count, sums, counts);
}

}  // namespace kith
