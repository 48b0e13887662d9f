// FAISS's index files, as faiss.write_index makes them, read into parts of an index and written from them.
// docs/file-formats.md says which kinds.
//
// Reading trusts nothing, as the files have no checksums: every length is compared with the file, and the parts are
// checked as those of .kith files. A damaged file is CorruptFile; a kind that Kith lacks is Unsupported with its tag;
// what Kith has no place for (negative or repeated ids, an index that is not trained) is InvalidArgument.
#pragma once

#include <kith/resources.hpp>

#include "index/index_parts.hpp"

#include <string>

namespace kith {

// Rows are in the order of FAISS's ids; its metric L2 is sqeuclidean, nprobe the default number of probes.
IndexParts read_faiss(const std::string& path, const Resources& resources);

// Unsupported, with the reason, for what FAISS has not: cosine, chi_square and hamming, bytes as they are. `l2` becomes
// FAISS's L2, whose distances are squared.
void write_faiss(const IndexParts& parts, const std::string& path, const Resources& resources);

}  // namespace kith
