// What stands behind an Index: one class for each kind that a factory string can name.
#pragma once

#include <kith/index.hpp>

#include <memory>
#include <string_view>

namespace kith {

class IndexType {
 public:
  virtual ~IndexType() = default;
  // Publishes a new version; on an exception the old one stays.
  virtual void add(const MatrixView& rows, Ownership ownership, const Resources& resources) = 0;
  virtual void search(const MatrixView& queries, const NeighborsView& out, const RowFilter& filter,
                      const Resources& resources) const = 0;
  virtual RangeNeighbors range_search(const MatrixView& queries, float radius, const RowFilter& filter,
                                      const Resources& resources) const = 0;
  virtual int64_t size() const = 0;
  virtual int64_t dimension() const = 0;
};

std::unique_ptr<IndexType> make_flat(const IndexParams& params);

}  // namespace kith
