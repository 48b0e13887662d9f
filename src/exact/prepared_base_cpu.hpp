// A base packed for the CPU ahead of the search.
#pragma once

#include "exact/prepared_base.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <utility>

namespace kith {

class PreparedBaseCpu final : public PreparedBase {
 public:
  explicit PreparedBaseCpu(PackedRows packed) : packed_(std::move(packed)) {}
  bool serves(DType queries) const override;
  int64_t bytes() const override { return packed_.bytes(); }
  const PackedRows& packed() const { return packed_; }

 private:
  PackedRows packed_;
};

}  // namespace kith
