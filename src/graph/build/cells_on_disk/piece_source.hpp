// The source of the rows of blocks: all rows of a collection in the order of their cells, in pieces, with their numbers
// and probes. A CellStore has them on disk.
#pragma once

#include <kith/resources.hpp>

#include <cstddef>
#include <cstdint>

namespace kith {

class PieceLayout;
struct StoredRecord;

// Memory for rows being read: their packed vectors, their numbers, and their probes in a record's format.
struct RowPlanes {
  std::byte* rows = nullptr;
  uint32_t* numbers = nullptr;
  std::byte* probes = nullptr;
};

class PieceSource {
 public:
  virtual ~PieceSource() = default;
  virtual const PieceLayout& layout() const = 0;
  virtual const StoredRecord& record() const = 0;
  // Reads pieces first .. end - 1 on all threads; takes up to a MiB per thread.
  virtual void read(int64_t first, int64_t end, const RowPlanes& to, const Resources& resources) const = 0;
};

}  // namespace kith
