// HDF5 datasets of two axes, in the layout of ann-benchmarks: `train` and `test` are vectors, `neighbors` ids,
// `distances` f32.
//
// The format is read by our own code in hdf5/, from its public specification (versions 1.0 to 4.0): superblock, object
// headers, groups, and a dataset that lies in one piece, in its header, in chunks or nowhere. A dataset in one piece is
// then like any other file, and can be mapped.
//
// Why not libhdf5: it crashes on hostile files, and a crash inside of it cannot become an error of ours. One such file
// is kept as tests/fuzz/corpus/hdf5/crashes_libhdf5: a dataset of 6 x 4 int32 in chunks of 4 x 3 with the filter
// scale-offset. One bit of the filter's message is flipped, so that a chunk has 8,388,620 elements instead of 12.
// libhdf5 2.0.0 (in h5py 3.16) unpacks that many from a few bytes and ends with SIGSEGV. In a sample of 13,440 files,
// each of that corpus with one byte changed, it crashed on two; the other was a virtual dataset, where opening was
// enough. Here the first is Unsupported, as the second is, and known filters are held to the size of the chunk.
//
// The reader is to grow no further: what it does not read h5repack turns into what it does.
#pragma once

#include "io/file_format.hpp"
#include "io/value_reader.hpp"

namespace kith {

OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name);

// Whether an HDF5 file may be replaced. A file that Kith writes holds one dataset; an older file of that name may hold
// more, and whoever names a dataset in it may expect the others to stay.
//
// Throws InvalidArgument where the file of that name holds anything but that dataset, or cannot be read as HDF5. One
// that is not there, is empty or holds nothing may be replaced.
void check_hdf5_target(const FileName& name);

}  // namespace kith
