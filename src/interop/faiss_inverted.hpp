// Inverted files of a FAISS file: centres, a code, and lists (faiss_lists.hpp). They begin behind their tag.
#pragma once

#include "index/index_parts.hpp"
#include "interop/faiss_source.hpp"

namespace kith {

IndexParts read_faiss_inverted_flat(FaissSource& source);
// `fast`: codes lie in blocks for fast scans.
IndexParts read_faiss_inverted_product(FaissSource& source, bool fast);
IndexParts read_faiss_inverted_scalar(FaissSource& source);
IndexParts read_faiss_inverted_additive(FaissSource& source, const CodeEncoder* code);

}  // namespace kith
