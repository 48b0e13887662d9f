// The blocks of metadata that were read last. Neighbouring chunks are found through the same blocks of an index: each
// is then read once, and its checksum verified once.
#pragma once

#include "io/hdf5/source.hpp"

#include <cstdint>
#include <list>
#include <string_view>

namespace kith {

class Hdf5BlockCache {
 public:
  // Valid until as many others as are kept were asked for.
  const Hdf5Block& read(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what);
  // A block whose last four bytes are its checksum, which is verified and left out.
  const Hdf5Block& read_checked(const Hdf5Source& source, int64_t at, int64_t bytes, std::string_view what);

 private:
  static constexpr size_t kMostKept = 8;

  struct Entry {
    int64_t at;
    int64_t bytes;
    Hdf5Block block;
  };
  const Hdf5Block* find(int64_t at, int64_t bytes);
  const Hdf5Block& keep(int64_t bytes, Hdf5Block block);

  std::list<Entry> kept_;  // the latest first
};

}  // namespace kith
