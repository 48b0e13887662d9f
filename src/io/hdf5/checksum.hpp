// The two checksums of HDF5 files: Bob Jenkins' lookup3 for metadata, Fletcher's for the values of chunks.
//
// In the fuzz targets every stored checksum matches: a fuzzer could not guess a right one, and nothing behind would
// ever be reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kith {

inline constexpr int64_t kChecksumBytes = 4;  // of either

// lookup3 ("hashlittle") with the initial value 0.
uint32_t hdf5_checksum(std::span<const std::byte> bytes);
bool matches_hdf5_checksum(std::span<const std::byte> bytes, uint32_t stored);

// Whether `stored` is the Fletcher checksum of these bytes, taken as big-endian numbers of 16 bits. Versions of libhdf5
// before 1.6.3 wrote it with the bytes of each half exchanged, and that counts too.
bool matches_fletcher32(std::span<const std::byte> bytes, uint32_t stored);

}  // namespace kith
