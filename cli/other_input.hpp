// Inputs that only kith convert reads: numpy arrays of float64, of wide integers or in Fortran order, tables of numbers
// (.csv, .tsv, .txt), .npy from a pipe ("-"), and through the Python package .npz and
// .parquet.
#pragma once

#include <kith/vector_file.hpp>

#include <string>

namespace kith::cli {

bool is_other_input(const std::string& path);

bool is_table(const std::string& path);

// Rows must be read in order from the first, except for .npy files. InvalidArgument, with the place, for input that is
// not a matrix of numbers. Unless `whole_table`, a table's heading and a column of row names are left out; `note`, if
// given, says so if that was a guess.
VectorFile open_other_input(const std::string& path, bool whole_table = false, std::string* note = nullptr);

// A description for kith info: "numpy array, float64, 1000 x 20, in Fortran order".
std::string describe_other_input(const std::string& path);

}  // namespace kith::cli
