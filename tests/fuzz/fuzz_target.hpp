// The fuzz targets: each takes any bytes, and throws std::logic_error when Kith breaks a promise about them. libFuzzer
// calls them through libfuzzer_main.cpp; the quick tests replay the corpus through them.
#pragma once

#include <cstdint>
#include <span>

namespace kith::fuzz {

using Input = std::span<const uint8_t>;

// The bytes are the beginning of an .npy file.
void npy_header(Input input);

// The first byte chooses the element, the others are the beginning of a file.
void bin_header(Input input);

// The first byte chooses the ending, the others are the file: the bin formats and .npy; and .fvecs, .bvecs, .ivecs.
void vector_file(Input input);
void vecs(Input input);

// The bytes are the file: IDX, plain or in gzip; HDF5.
void idx(Input input);
void hdf5(Input input);

// The bytes are the file: a .kith file; an index of FAISS; one of hnswlib.
void kith_file(Input input);
void faiss_file(Input input);
void hnswlib_file(Input input);

}  // namespace kith::fuzz
