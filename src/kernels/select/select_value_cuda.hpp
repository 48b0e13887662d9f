// Conversion between matrix values and selection entries. The largest values are the smallest of the negated ones, so
// that NaN comes last in both orders.
#pragma once

#include "kernels/select/select_entry.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <cstdint>

namespace kith {

__device__ inline uint32_t select_key(float value, bool largest) { return ordered_key(largest ? -value : value); }

__device__ inline float selected_value(uint32_t key, bool largest) {
  const float value = key_of_ordered(key);
  return largest && key != kNanKey ? 0.0f - value : value;  // avoids -0.0
}

// Ordered keys of a row of values, as BlockSelector reads them.
struct ValueKeys {
  const float* values;
  bool largest;

  __device__ uint32_t operator[](int64_t i) const { return select_key(values[i], largest); }
};

// A SelectTask over values.
struct ValueSelectTask {
  uint64_t* list;
  uint32_t* bound;
  ValueKeys keys;
  int64_t count;
  int64_t have;
  int64_t k;
  uint32_t first_row;
  const uint32_t* numbers = nullptr;
};

__device__ inline int64_t row_length(const SelectInput& input, int64_t row) {
  if (input.lengths == nullptr) return input.cols;
  const int64_t length = input.lengths[row];
  return length < 0 ? 0 : length < input.cols ? length : input.cols;
}

template <typename Entry>
__device__ inline void write_selected(const SelectOutput& output, int64_t place, const Entry& entry, bool largest) {
  const bool real = !(entry == EntryOf<Entry>::padding());
  const float infinity = __int_as_float(0x7F800000);
  output.values[place] = real ? selected_value(EntryOf<Entry>::key(entry), largest) : largest ? -infinity : infinity;
  const int64_t payload = EntryOf<Entry>::payload(entry);
  if constexpr (sizeof(Entry) == sizeof(uint64_t)) {
    output.columns[place] = static_cast<int32_t>(payload);
  } else {
    output.ids[place] = payload;
  }
}

}  // namespace kith
