// Reading and writing of FAISS's index files, from and to the parts of an index. docs/file-formats.md lists the
// kinds.
//
// The files have no checksums, so reading trusts nothing: every length is compared with the size of the file, and the
// parts are checked like those of .kith files. A damaged file is CorruptFile; a kind that Kith lacks is Unsupported
// with its tag; contents that Kith cannot represent (negative or repeated ids, an untrained index) are InvalidArgument.
#pragma once

#include <kith/resources.hpp>

#include "index/index_parts.hpp"

#include <string>

namespace kith {

// Rows are in the order of FAISS's ids. FAISS's L2 is sqeuclidean; nprobe becomes the default number of probes.
IndexParts read_faiss(const std::string& path, const Resources& resources);

// Unsupported, with the reason, for what FAISS lacks: cosine, chi_square and hamming, and vectors of bytes. `l2`
// becomes FAISS's L2, whose distances are squared.
void write_faiss(const IndexParts& parts, const std::string& path, const Resources& resources);

}  // namespace kith
