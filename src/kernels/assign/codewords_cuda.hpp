// The nearest codeword of sub-vectors, exactly, on a GPU: the values and bounds of codewords_cpu.hpp, a thread
// for two rows, the codewords of a part in shared memory.
//
// A value carries its codeword's number in its lowest eight bits, which the bound allows for: one comparison keeps
// both. What the two best values of a row cannot decide, its warp settles together, by canonical keys.
//
// Cost: rows x codewords x columns fused multiply-adds, and four operations of half their rate for each codeword.
#pragma once

#include "core/host_device.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/assign/codewords_cpu.hpp"
#include "kernels/codes/code_format.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith {

// Table sizes of one part.
struct ProductPart {
  int32_t count = 0;  // distinct codewords
  float constant = 0;
  float linear = 0;
  float quadratic = 0;
};

// Where the tables of all parts begin, and how they are laid out.
struct ProductTableLayout : WorkspaceLayout {
  int64_t parts = 0;
  int64_t cols = 0;         // of a part
  int64_t padded_cols = 0;  // as a kernel is compiled for, or `cols` itself where there are many
  int64_t codewords = 0;
  Slot<ProductPart> part_infos;
  Slot<float> origins;    // parts x cols
  Slot<float> groups;     // parts x codewords / 4 x (padded_cols + 1) x 4
  Slot<float> words;      // parts x codewords x cols
  Slot<uint8_t> numbers;  // parts x codewords

  explicit ProductTableLayout(const CodeFormat& format);
};

// Fills layout.bytes of host memory with the tables of one part or of all, to be copied to the device
// unchanged.
void fill_product_part(const ProductTableLayout& layout, int64_t p, const NearestCodeword& part, std::byte* out);
void fill_product_tables(const ProductTableLayout& layout, const std::vector<NearestCodeword>& parts, std::byte* out);

struct NearestCodewordRows {
  const float* values = nullptr;  // row i of part p begins at i * row_stride + p * part_stride
  int64_t row_stride = 0;
  int64_t part_stride = 0;
  int64_t count = 0;
  uint8_t* labels = nullptr;
  int64_t label_row_stride = 0;
  int64_t label_part_stride = 0;
};

void launch_nearest_codewords(const ProductTableLayout& layout, const std::byte* tables,
                              const NearestCodewordRows& rows, cudaStream_t stream);

// Adds contiguous rows, part by part, to the sums of their labels (parts x codewords x cols), and counts them. Values
// have few enough digits for sums to be exact.
void launch_add_rows_by_label(const ProductTableLayout& layout, const float* rows, const uint8_t* labels, int64_t count,
                              double* sums, uint32_t* counts, cudaStream_t stream);

}  // namespace kith
