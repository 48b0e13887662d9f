// A fractal heap: the place of many small objects, in blocks whose sizes double from row to row of a table. Here it
// holds the links of large groups, so only what they need is read: objects inside of unfiltered blocks.
#pragma once

#include "io/hdf5/source.hpp"

#include <cstdint>
#include <span>

namespace kith {

class Hdf5FractalHeap {
 public:
  Hdf5FractalHeap(const Hdf5Source& source, int64_t at);

  int64_t id_bytes() const { return id_bytes_; }

  // The object that an id names.
  Hdf5Block read(Hdf5Cursor id) const;

 private:
  struct Place {
    int64_t block_at;
    int64_t block_bytes;
    int64_t offset;  // in the block
  };

  Place locate(int64_t offset) const;
  int64_t row_bytes(int64_t row) const;

  const Hdf5Source& source_;
  int64_t at_;
  int64_t id_bytes_ = 0;
  int64_t offset_width_ = 0;
  int64_t length_width_ = 0;
  int64_t table_width_ = 0;
  int64_t first_block_bytes_ = 0;
  int64_t most_direct_bytes_ = 0;
  int64_t root_at_ = kHdf5Nowhere;
  int64_t root_rows_ = 0;  // 0 where the root is a block of objects itself
};

}  // namespace kith
