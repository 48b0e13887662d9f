// Encoding of independent rows on the CPU: threads take blocks of rows.
#pragma once

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "quantize/code_encoder.hpp"
#include "rows/row_blocks.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// Scratch of one thread for a block of rows: the rows as f32, if they have another dtype, then the encoder's own; and a
// byte per sub-code or column of each row, if these are packed afterwards.
struct BlockMemory {
  static constexpr int64_t kRows = 512;

  BlockMemory(const CodeFormat& format, const RowsInfo& rows, int64_t more_floats, const Resources& resources)
      : widened(rows.dtype == DType::f32 ? 0 : std::min(kRows, rows.rows) * format.cols),
        each_floats(widened + more_floats),
        each_bytes(format.bits == 8 ? 0 : std::min(kRows, rows.rows) * std::max(format.parts, format.cols)),
        floats(resources.threads() * each_floats, "a block of rows", resources),
        bytes(resources.threads() * each_bytes, "a block of codes", resources) {}

  int64_t widened;
  int64_t each_floats;
  int64_t each_bytes;
  HostArray<float> floats;
  HostArray<uint8_t> bytes;
};

// Calls use(f32 rows, stride, count, codes, floats, bytes) for each block.
template <typename Use>
void encode_blocks(const EncodeTask& task, int64_t more_floats, const Resources& resources, const Use& use) {
  const MatrixView& rows = task.rows;
  const int64_t cols = rows.cols();
  const BlockMemory memory(task.codec.format, RowsInfo(rows), more_floats, resources);
  const auto encode_some = [&](int64_t first, int64_t end, int slot) {
    const MatrixView some = rows.slice(first, end - first);
    float* const own = memory.floats.data() + slot * memory.each_floats;
    const bool widens = memory.widened > 0;
    for (int64_t i = 0; widens && i < some.rows(); ++i) widen_row(some, i, own + i * cols);
    use(widens ? own : static_cast<const float*>(some.data()), widens ? cols : some.row_stride(), some.rows(),
        static_cast<uint8_t*>(task.codes.data()) + first * task.codec.format.bytes(), own + memory.widened,
        memory.bytes.data() + slot * memory.each_bytes);
  };
  for_row_blocks("encode", rows.rows(), resources, encode_some, BlockMemory::kRows);
}

}  // namespace kith
