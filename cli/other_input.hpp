// Vectors that kith convert alone reads, and makes files of that all commands read: arrays of numpy's in float64, in wide
// integers or in Fortran order, tables of numbers (.csv, .tsv, .txt), .npy from a pipe ("-"), and, through Python's
// package kith, .npz and .parquet.
#pragma once

#include <kith/vector_file.hpp>

#include <string>

namespace kith::cli {

bool is_other_input(const std::string& path);

bool is_table(const std::string& path);

// Its rows must be asked for from the first on, unless it is a file of numpy's. InvalidArgument for what is no matrix of
// numbers; the text says where. Of a table that is not taken as a whole a heading, and a column of row names, are left
// out; `note`, if given, says so where it was a guess.
VectorFile open_other_input(const std::string& path, bool whole_table = false, std::string* note = nullptr);

// "numpy array, float64, 1000 x 20, in Fortran order", for who asks what a file is.
std::string describe_other_input(const std::string& path);

}  // namespace kith::cli
