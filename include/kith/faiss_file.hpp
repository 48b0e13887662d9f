// Reading and writing FAISS's index files.
#pragma once

#include <kith/export.hpp>
#include <kith/index.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// Whether the file begins as an index of FAISS's does; IoError if it cannot be opened.
KITH_EXPORT bool is_faiss_file(const std::string& path);

// An index that faiss.write_index wrote; FAISS's "L2" is sqeuclidean. Rows of an IVF file are numbered by ascending id.
// Unsupported for a kind that Kith lacks, with the name it has in the file; CorruptFile for a damaged file.
KITH_EXPORT Index read_faiss_index(const std::string& path, const Resources& resources = Resources());

// A file that faiss.read_index reads. Both l2 and sqeuclidean become FAISS's "L2". Unsupported if FAISS has no such
// index: other metrics, lists of bytes.
KITH_EXPORT void write_faiss_index(const Index& index, const std::string& path,
                                   const Resources& resources = Resources());

}  // namespace kith
