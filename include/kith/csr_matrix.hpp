// A sparse rows x rows matrix of distances, in compressed rows: row i has the entries offsets[i] .. offsets[i + 1] - 1.
#pragma once

#include <kith/host_buffer.hpp>

#include <cstdint>

namespace kith {

class CsrMatrix {
 public:
  CsrMatrix() = default;
  CsrMatrix(int64_t rows, int64_t entries, const Resources& resources)
      : offsets_((rows + 1) * 8, "the matrix's offsets", resources),
        columns_(entries * 8, "the matrix's columns", resources),
        values_(entries * 4, "the matrix's values", resources),
        rows_(rows) {}

  int64_t rows() const { return rows_; }
  int64_t size() const { return offsets()[rows_]; }
  int64_t* offsets() const { return offsets_.as<int64_t>(); }
  int64_t* columns() const { return columns_.as<int64_t>(); }  // ascending within a row
  float* values() const { return values_.as<float>(); }

 private:
  HostBuffer offsets_;
  HostBuffer columns_;
  HostBuffer values_;
  int64_t rows_ = 0;
};

}  // namespace kith
