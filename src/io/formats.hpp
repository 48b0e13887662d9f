// The formats of matrix files: how each begins, and how its values are read. `head` is how a file begins, up to the
// bytes that a format says, or all of it if it is shorter; `path` is for the errors alone.
#pragma once

#include "io/file_format.hpp"
#include "io/file_layout.hpp"
#include "io/value_reader.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// --- vecs

// .fvecs, .bvecs and .ivecs, the formats of the TEXMEX collections: every row is its number of columns, a little-endian
// int32, and then its values. There is no other header, so an empty file has neither rows nor columns.
//
// The first row says how long all are. Opening compares the file's size and the last row with it; the rows between are
// checked when they are read.
inline constexpr int64_t kVecsRowHeaderBytes = 4;

// `head` is how a file of `size` bytes begins: its first four, or all of it if it is shorter.
FileLayout parse_vecs_header(std::string_view head, int64_t size, ElementType element, const std::string& path);

OpenedMatrix open_vecs(OpenedFile opened, ElementType element, const std::string& path);

// --- bin

// The header of .fbin, .f16bin, .bf16bin, .u8bin, .i8bin and .ibin: rows and columns, each a little-endian uint32; the
// values follow.

inline constexpr int64_t kBinHeaderBytes = 8;

// `head` is how the file begins, all of it if it is shorter than a header. `path` is for the errors alone.
FileLayout parse_bin_header(std::string_view head, ElementType element, const std::string& path);

// Throws InvalidArgument for a shape that uint32 cannot hold.
std::string make_bin_header(int64_t rows, int64_t cols, const std::string& path);

// --- npy

// The header of .npy files, versions 1.0 to 3.0: a magic string, a length, and a Python dictionary as text with the
// keys 'descr' (the dtype), 'fortran_order' and 'shape'.
//
// One axis of bool, uint8, int32 or int64 is a mask or a list of ids: one column. Vectors have two.
//
// The parser takes what numpy writes, in any order of keys, with any white space and either quotes. It reads from
// memory that the caller bounds, so a header that lies about its length costs nothing.

// The longest header that is read. Those of plain matrices have 128 bytes.
inline constexpr int64_t kNpyHeadLimit = 64 * 1024;

// Which arrays of one axis are taken, as one column. Ids, bytes and bools are lists and masks, as numpy makes them; of
// other values it may as well be one vector, unless the caller knows better.
enum class OneAxis : uint8_t { of_lists, of_all };

// `head` is how the file begins: its first kNpyHeadLimit bytes, or all of it if it is shorter. `path` is for the errors
// alone: CorruptFile for what is no .npy header, InvalidArgument for one whose array Kith does not take.
FileLayout parse_npy_header(std::string_view head, const std::string& path, OneAxis one_axis = OneAxis::of_lists);

// A header of version 1.0, padded as numpy does, so that the values begin at a multiple of 64.
std::string make_npy_header(ElementType element, int64_t rows, int64_t cols);

// --- IDX

// IDX, the format of MNIST and its relatives: two zero bytes, a type, the number of axes, their lengths as big-endian
// uint32, then the values. The first axis counts rows; the others are flattened into columns. Files of bytes (u8, i8)
// are taken, plain or in gzip, which the first bytes tell.
//
// A compressed file is unpacked as it is read: going forward costs the unpacking once, going back begins anew. It takes
// no memory in proportion to the file. Reads from several threads wait for each other.

// The longest header that is taken: four axes.
inline constexpr int64_t kIdxHeadLimit = 4 + 4 * 4;

// `head` is how the content begins: its first kIdxHeadLimit bytes, or all of it if it is shorter.
FileLayout parse_idx_header(std::string_view head, const std::string& path);

OpenedMatrix open_idx(OpenedFile opened, const std::string& path);

// --- HDF5

// HDF5 datasets of two axes, in the layout of ann-benchmarks: `train` and `test` are vectors, `neighbors` ids,
// `distances` f32.
//
// The format is read by our own code in hdf5/, from its public specification (versions 1.0 to 4.0): superblock, object
// headers, groups, and a dataset that lies in one piece, in its header, in chunks or nowhere. A dataset in one piece is
// then like any other file, and can be mapped.
OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name);

// Whether an HDF5 file may be replaced. A file that Kith writes holds one dataset; an older file of that name may hold
// more, and whoever names a dataset in it may expect the others to stay.
//
// Throws InvalidArgument where the file of that name holds anything but that dataset, or cannot be read as HDF5. One
// that is not there, is empty or holds nothing may be replaced.
void check_hdf5_target(const FileName& name);

// What Kith writes before the values of an HDF5 file: a superblock of version 2, a group for each step of the dataset's
// name, and the dataset, which lies in one piece behind them. Read by libhdf5 from 1.8 on. Holds no time, so that the
// same values make the same bytes.
//
// The groups on the way to the dataset and the dataset itself. Throws InvalidArgument where its name is none.
std::vector<std::string> dataset_steps(const FileName& name);

// All bytes up to the first value, which lies at a multiple of 64. Throws InvalidArgument where the dataset's name is
// none.
std::string make_hdf5_header(const FileName& name, const FileLayout& shape);

}  // namespace kith
