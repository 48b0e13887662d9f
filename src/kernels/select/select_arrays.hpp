// The arrays of a selection from rows, on the device.
#pragma once

#include <cstdint>

namespace kith {

struct SelectInput {
  const float* values = nullptr;  // on the device
  int64_t rows = 0;
  int64_t cols = 0;  // below 2^31
  int64_t row_stride = 0;
  const int32_t* lengths = nullptr;  // of each row, on the device, at most cols; null: all are cols
  const int64_t* ids = nullptr;      // laid out as the values; null: columns are asked for
};

struct SelectOutput {
  float* values = nullptr;     // rows x k
  int32_t* columns = nullptr;  // rows x k
  int64_t* ids = nullptr;      // rows x k; where the input has ids, in the place of columns. Ties go to the smaller id.
};

}  // namespace kith
