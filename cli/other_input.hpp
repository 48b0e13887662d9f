// Vectors that kith convert alone reads, and makes files of that all commands read: arrays of numpy's in float64, in wide
// integers or in Fortran order, tables of numbers (.csv, .tsv, .txt), .npy from a pipe ("-"), and, through Python's
// package kith, .npz and .parquet.
#pragma once

#include <kith/vector_file.hpp>

#include <string>

namespace kith::cli {

bool is_other_input(const std::string& path);

// Its rows must be asked for from the first on, unless it is a file of numpy's. InvalidArgument for what is no matrix of
// numbers; the text says where.
VectorFile open_other_input(const std::string& path);

// "numpy array, float64, 1000 x 20, in Fortran order", for who asks what a file is.
std::string describe_other_input(const std::string& path);

}  // namespace kith::cli
