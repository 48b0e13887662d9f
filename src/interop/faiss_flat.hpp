// Indexes of a FAISS file that hold vectors or codes one after the other, in the order of rows: flat ones, product
// codes, also in blocks for fast scans, scalar and additive codes. They begin behind their tag.
#pragma once

#include "index/index_parts.hpp"
#include "interop/faiss_codes.hpp"
#include "interop/faiss_source.hpp"

#include <cstdint>

namespace kith {

IndexParts read_faiss_flat(FaissSource& source);
IndexParts read_faiss_product(FaissSource& source);
IndexParts read_faiss_fast_product(FaissSource& source);
IndexParts read_faiss_scalar(FaissSource& source);
IndexParts read_faiss_additive(FaissSource& source, const CodeEncoder* code);

// Shared with inverted files: blocks of so many vectors, and codes that can lie in them.
FastScanLayout fast_scan_layout(FaissSource& source, int64_t parts, int32_t block_rows);
void require_fast_bits(FaissSource& source, const CodeFormat& format);
// Bytes that FAISS has with another sign bit.
void undo_offset(const HostArray<uint8_t>& codes);

}  // namespace kith
