// The inverted lists of a FAISS file: codes and ids, list by list.
#pragma once

#include "index/index_parts.hpp"
#include "interop/faiss_source.hpp"
#include "interop/fast_scan_codes.hpp"

#include <cstdint>
#include <optional>

namespace kith {

struct FaissLists {
  HostArray<int64_t> offsets;  // lists + 1
  HostArray<uint8_t> codes;
  HostArray<int64_t> ids;  // of the codes
};

// `blocked`: codes lie in blocks for fast scans, of `rows` vectors in all.
FaissLists read_inverted_lists(FaissSource& source, int64_t lists, int64_t code_bytes,
                               const std::optional<FastScanLayout>& blocked, int64_t rows);

// Puts them into parts, whose numbers of rows and lists and whose code are known: rows are numbered by ascending id,
// and those of a list ascend.
void number_rows(FaissSource& source, FaissLists lists, IndexParts& parts);

}  // namespace kith
