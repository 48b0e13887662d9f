// A B-tree of version 2: sorted records of one length, in nodes of one length. Finds the links of large groups, and the
// chunks of datasets that grow along both axes.
//
// A node does not say its level; the levels are counted down from the root, so that no circle can hold a search.
// Every node's checksum is verified.
#pragma once

#include "io/hdf5/source.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace kith {

class Hdf5TreeV2 {
 public:
  Hdf5TreeV2(const Hdf5Source& source, Hdf5BlockCache& cache, int64_t at, int64_t record_type);

  int64_t record_bytes() const { return record_bytes_; }

  // Down to the record to which `order` answers 0: less says that what is looked for stands before the given record,
  // more that it stands behind.
  void find(const std::function<int(Hdf5Cursor record)>& order) const;

  // Calls visit(record) in order until it returns false; stops too when a damaged tree leads on for too long.
  void visit(const std::function<bool(Hdf5Cursor record)>& visit) const;

 private:
  struct Child {
    int64_t at = kHdf5Nowhere;
    int64_t records = 0;
  };

  int64_t child_bytes(int64_t level) const;
  const Hdf5Block& read_node(Child node, int64_t level) const;
  Hdf5Block record(const Hdf5Block& node, int64_t i) const;
  Child child(const Hdf5Block& node, int64_t records, int64_t level, int64_t i) const;
  bool visit_node(Child here, int64_t level, int64_t& budget, const std::function<bool(Hdf5Cursor)>& visit) const;

  const Hdf5Source& source_;
  Hdf5BlockCache& cache_;
  int64_t type_ = 0;
  int64_t record_bytes_ = 0;
  Child root_;
  int64_t levels_ = 0;                // above the leaves
  int64_t count_bytes_ = 0;           // of the field that says how many records a child has
  std::vector<int64_t> total_bytes_;  // and how many are below it, by the parent's level; the lowest does not say
};

}  // namespace kith
