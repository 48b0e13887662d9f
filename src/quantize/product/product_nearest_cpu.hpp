// The nearest codeword of sub-vectors, exactly: what training and encoding of a product quantizer do all day, on the
// CPU.
//
// A vector holds a column of several rows; each codeword is a broadcast value for each column. Products in f32 of
// vectors less an origin give each lane its nearest and second nearest; where a bound on every rounding
// (error_bound.hpp) cannot tell these apart, canonical keys of all that it cannot rule out decide. Equal codewords are
// taken once: else every row would be in doubt.
//
// Cost: rows x codewords x columns fused multiply-adds, and five operations for each row and codeword. Memory: 16 bytes
// a value of the codewords.
#pragma once

#include <cstdint>
#include <vector>

namespace kith {

// What the code that is compiled once for each instruction set works with.
struct NearestCodewordTask {
  int64_t cols = 0;
  int64_t count = 0;                // distinct codewords
  int64_t width = 0;                // the same, padded to whole vectors
  const float* origin = nullptr;    // cols
  const float* groups = nullptr;    // for each group of codewords: their terms, then cols x kWordGroup factors
  const float* columns = nullptr;   // cols x width factors
  const float* terms = nullptr;     // width; infinite past the last
  const float* words = nullptr;     // count x padded columns, as they are
  const uint8_t* number = nullptr;  // what the caller calls them, ascending
  // How far a value can be from the truth, for a row of a norm: constant + norm (linear + norm quadratic).
  float constant = 0;
  float linear = 0;
  float quadratic = 0;
};

// The codewords of one sub-space, up to 256.
class NearestCodeword {
 public:
  static constexpr int64_t kWordGroup = 4;

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

  // For those who compare on another device.
  const NearestCodewordTask& task() const { return task_; }

  int64_t bytes() const { return static_cast<int64_t>(values_.size() * sizeof(float) + number_.size()); }
  // At most that, for so many codewords.
  static int64_t bytes_for(int64_t count, int64_t cols);

 private:
  NearestCodewordTask task_;
  std::vector<float> values_;  // all tables
  std::vector<uint8_t> number_;
};

// Adds each row to the sums of its label, labels x cols, and counts it.
void add_rows_by_label_cpu(const float* rows, int64_t count, int64_t cols, const uint8_t* labels, double* sums,
                           int64_t* counts);

}  // namespace kith
