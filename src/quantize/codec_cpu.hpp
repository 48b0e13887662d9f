// Codes of rows and rows of codes on the CPU, blocks of rows side by side.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/codec_tables.hpp"

namespace kith {

// All in host memory, of shapes that have been checked; `codes` without gaps.
void encode_cpu(const CodecTables& codec, const MatrixView& rows, const MutableMatrixView& codes,
                const Resources& resources);
// What encode_cpu() of so many rows takes beside them and the codes, at least.
int64_t encode_cpu_bytes(const CodeFormat& format, int64_t rows, DType dtype, int threads);
void decode_cpu(const CodecTables& codec, const MatrixView& codes, const MutableMatrixView& out,
                const Resources& resources);
// What decode_cpu() takes beside the codes and the rows.
int64_t decode_cpu_bytes(const CodeFormat& format, int threads);

}  // namespace kith
