// The nearest codeword of sub-vectors, exactly, on the CPU: what training and encoding of a product quantizer do all
// day. Vectors of rows are compared (assign_columns_cpu-inl.hpp). Equal codewords are taken once: else every row would
// be in doubt.
//
// Cost: rows x codewords x columns fused multiply-adds, and five operations for each row and codeword. Memory: 16 bytes
// a value of the codewords.
#pragma once

#include "kernels/assign/compare_task.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// The codewords of one sub-space, up to 256.
class NearestCodeword {
 public:
  NearestCodeword() = default;
  NearestCodeword(NearestCodeword&&) = default;  // the task points into the tables, which stay where they are
  NearestCodeword& operator=(NearestCodeword&&) = default;

  // count x cols.
  void set(const float* codewords, int64_t count, int64_t cols);

  // The first codeword by (canonical squared distance, number) of each row, to labels[i * label_stride]. Rows are
  // `stride` values apart. `scratch`: of one thread.
  void nearest(const float* rows, int64_t stride, int64_t count, uint8_t* labels, int64_t label_stride,
               float* scratch) const;
  static int64_t scratch_floats(int64_t cols);

  // For comparisons on another device.
  const CompareTask& task() const { return task_; }

  int64_t bytes() const { return static_cast<int64_t>(values_.size() * sizeof(float) + number_.size()); }
  // Upper bound of the bytes for this many codewords.
  static int64_t bytes_for(int64_t count, int64_t cols);

 private:
  CompareTask task_;
  std::vector<float> values_;  // all tables
  std::vector<uint8_t> number_;
};

// The same without a proof, for codewords that only have to be near: the first of the least |c|^2 / 2 - x c in f32,
// with the same bytes for every instruction set. Half the time, since nothing beside the least value is kept. `groups`
// as in CompareTask; scratch as above.
void set_groups(const float* codewords, int64_t count, int64_t cols, float* groups);
void least_codewords_cpu(const float* groups, int64_t codewords, int64_t cols, const float* rows, int64_t stride,
                         int64_t count, uint8_t* labels, float* scratch);

}  // namespace kith
