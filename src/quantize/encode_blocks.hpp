// Codes of rows that do not depend on each other, on the CPU: blocks of rows side by side.
#pragma once

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "quantize/codec_tables.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// Memory of a block, one thread's: as f32, where rows are of another dtype, then what the code asks for; and a byte for
// each sub-code or column of each row, where they are packed.
struct BlockScratch {
  static constexpr int64_t kRows = 512;

  BlockScratch(const CodeFormat& format, DType dtype, int64_t rows, int64_t more_floats)
      : widened(dtype == DType::f32 ? 0 : std::min(kRows, rows) * format.cols),
        floats(widened + more_floats),
        bytes(format.bits == 8 ? 0 : std::min(kRows, rows) * std::max(format.parts, format.cols)) {}

  int64_t memory(int threads) const { return threads * (array_bytes<float>(floats) + bytes); }

  int64_t widened;
  int64_t floats;
  int64_t bytes;
};

// Calls use(f32 rows, stride, count, codes, floats, bytes) for each block.
template <typename Use>
void encode_blocks(const EncodeTask& task, const BlockScratch& scratch, const Resources& resources, const Use& use) {
  const MatrixView& rows = task.rows;
  const int64_t cols = rows.cols();
  const HostArray<float> floats(resources.threads() * scratch.floats, "a block of rows", resources);
  const HostArray<uint8_t> bytes(resources.threads() * scratch.bytes, "a block of codes", resources);
  ProgressMeter meter("encode", rows.rows(), resources);
  parallel_for(divide_up(rows.rows(), BlockScratch::kRows), meter, resources, [&](int64_t block, int slot) {
    const int64_t first = block * BlockScratch::kRows;
    const MatrixView some = rows.slice(first, std::min(BlockScratch::kRows, rows.rows() - first));
    float* const own = floats.data() + slot * scratch.floats;
    const bool widens = scratch.widened > 0;
    for (int64_t i = 0; widens && i < some.rows(); ++i) widen_row(some, i, own + i * cols);
    use(widens ? own : static_cast<const float*>(some.data()), widens ? cols : some.row_stride(), some.rows(),
        static_cast<uint8_t*>(task.codes.data()) + first * task.codec.format.bytes(), own + scratch.widened,
        bytes.data() + slot * scratch.bytes);
    meter.add(some.rows());
  });
  meter.finish();
}

}  // namespace kith
