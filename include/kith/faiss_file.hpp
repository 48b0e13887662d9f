// Indexes in FAISS's files, both ways: what it has trained is searched here, and the other way round.
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// An index that faiss.write_index has written; its "L2" is sqeuclidean here. Rows of an IVF file are numbered by
// ascending id. Unsupported, with its name in the file, for a kind that Kith lacks; CorruptFile for a damaged file.
KITH_EXPORT Index read_faiss_index(const std::string& path, const Resources& resources = Resources());

// A file that faiss.read_index reads. Both l2 and sqeuclidean become its "L2". Unsupported where it has no such index:
// another metric, lists of bytes.
KITH_EXPORT void write_faiss_index(const Index& index, const std::string& path,
                                   const Resources& resources = Resources());

}  // namespace kith
