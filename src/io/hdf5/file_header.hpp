// What Kith writes before the values of an HDF5 file: a superblock of version 2, a group for each step of the dataset's
// name, and the dataset, which lies in one piece behind them. Read by libhdf5 from 1.8 on. Holds no time, so that the
// same values make the same bytes.
#pragma once

#include "io/file_format.hpp"
#include "io/file_layout.hpp"

#include <string>
#include <vector>

namespace kith {

// The groups on the way to the dataset and the dataset itself. Throws InvalidArgument where its name is none.
std::vector<std::string> dataset_steps(const FileName& name);

// All bytes up to the first value, which lies at a multiple of 64. Throws InvalidArgument where the dataset's name is
// none.
std::string make_hdf5_header(const FileName& name, const FileLayout& shape);

}  // namespace kith
