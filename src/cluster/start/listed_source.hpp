// Some rows of a source, listed by ascending numbers, or all, as a source of their own on the host: they are gathered
// anew at each fetch. Memory: what one fetch brings.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "rows/row_sample.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

// `count` of the numbers listed, from place `first` on; an empty list has all rows.
inline std::vector<uint32_t> numbers_of(const std::vector<uint32_t>& list, int64_t first, int64_t count) {
  if (list.empty()) return row_numbers(first, count);
  return {list.begin() + first, list.begin() + first + count};
}

class ListedSource final : public RowSource {
 public:
  // Both outlive it. An empty list has all rows. Up to `most` rows are fetched at a time.
  ListedSource(RowSource& from, const std::vector<uint32_t>& rows, int64_t most, const Resources& resources)
      : from_(from),
        rows_(rows),
        resources_(resources),
        buffer_(from.info().dtype, std::min(most, ListedSource::info().rows), from.info().cols, "sampled rows",
                resources) {}

  RowsInfo info() const override {
    RowsInfo info = from_.info();
    if (!rows_.empty()) info.rows = static_cast<int64_t>(rows_.size());
    info.space = {};
    return info;
  }
  MatrixView fetch(int64_t first, int64_t count) override {
    const MutableMatrixView out = buffer_.mutable_view().slice(0, count);
    kith::gather(from_, numbers_of(rows_, first, count), out, resources_);
    return out;
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    std::vector<uint32_t> numbers(static_cast<size_t>(count));
    std::transform(rows, rows + count, numbers.begin(),
                   [&](uint32_t place) { return rows_.empty() ? place : rows_[place]; });
    kith::gather(from_, numbers, out, resources);
  }

 private:
  RowSource& from_;
  const std::vector<uint32_t>& rows_;
  const Resources& resources_;
  MatrixBuffer buffer_;
};

}  // namespace kith
