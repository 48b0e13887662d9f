// The codes that a walk goes by: a signed byte for each column.
//
//   u8, i8            their values (u8 less 128, which changes no order), for l2, sqeuclidean and inner_product
//   other dtypes      (x - offset) / step, rounded: one step for all columns, since an error of l2 counts alike in
//                     each, and an offset for each, the mean. The step lets 99.9 % of a sample's values fit, or more
//                     where that makes the error smaller; others are clipped, and counted. For inner_product, whose
//                     answers are the longest rows, all values fit
//   cosine            the same of rows of length 1, compared by squares
//   other metrics     no codes: rows as they are, compared by canonical keys; and so by l2 and sqeuclidean where codes
//                     do not tell the rows of a sample apart
//
// A query is rounded with the rows' step, to words where it lies far outside the rows, so that it is not clipped;
// farther than sums can hold, it is moved towards the offset. For inner_product, where the rows' offset adds the same
// to all keys, it has a step of its own and no offset. Queries only choose candidates: what is returned is compared
// again.
//
// Memory of a place: the columns, rounded up to 16.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "graph/search/graph/walk_rows.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kMostWalkColumns = 32768;  // sums over more would not fit

constexpr int64_t code_stride(int64_t cols) { return round_up(cols, kByteKeyColumns); }

class WalkCoder {
 public:
  // For rows like these, in host memory, of which a sample is drawn by the seed.
  static WalkCoder choose(const MatrixView& rows, Metric metric, uint64_t seed, const Resources& resources);
  // As a file has it: step and offsets are those of the coder that was saved; no offsets where there are no codes.
  WalkCoder(Metric metric, DType dtype, int64_t cols, float step, std::vector<float> offsets);
  // `scale`: the step and the offsets, one after the other, or nothing.
  static WalkCoder from_scale(Metric metric, DType dtype, int64_t cols, const std::vector<float>& scale) {
    if (scale.empty()) return {metric, dtype, cols, 1, {}};
    return {metric, dtype, cols, scale[0], std::vector<float>(scale.begin() + 1, scale.end())};
  }

  WalkKind kind() const { return kind_; }
  KeyKind key() const { return key_; }
  int64_t cols() const { return cols_; }
  bool has_codes() const { return kind_ != WalkKind::canonical; }
  bool unit_length() const { return unit_length_; }
  int64_t widest() const { return widest_; }  // the largest value of a query's word
  float step() const { return step_; }
  const std::vector<float>& offsets() const { return offsets_; }  // empty without codes

  // What a place takes, in bytes, and as a matrix of so many.
  int64_t place_bytes() const;
  MatrixView view_of(const void* data, int64_t places) const;
  WalkRows rows_of(const void* data, int64_t places) const { return {kind_, key_, view_of(data, places)}; }

  // Rows of the coder's dtype; returns how many values were clipped. On any thread.
  int64_t encode(const MatrixView& rows, int64_t row, std::byte* out, float* floats) const;
  // All rows, on all threads.
  int64_t encode_all(const MatrixView& rows, std::byte* out, const Resources& resources) const;

  // Memory for one query; it makes one at a time.
  struct QueryRoom {
    float* floats = nullptr;  // cols
    int8_t* bytes = nullptr;  // code_stride(cols)
    int16_t* words = nullptr;
  };
  // Whether keys with queries of that dtype are the squared distances of the vectors, not of rounded ones.
  bool keys_are_exact(DType queries) const {
    return takes_values() && kind_ == WalkKind::squares && queries == dtype_ && widest_ >= 128;
  }
  static int64_t query_bytes(int64_t cols) { return cols * 4 + code_stride(cols) * 3 + 3 * 64; }
  static QueryRoom query_room(std::byte* memory, int64_t cols);
  WalkQuery query(const MatrixView& queries, int64_t number, const QueryRoom& room) const;

 private:
  bool takes_values() const { return has_codes() && !unit_length_ && (dtype_ == DType::u8 || dtype_ == DType::i8); }
  // Whether floats of such a metric may turn out to have no codes.
  bool may_have_none() const { return kind_ == WalkKind::squares && !unit_length_; }
  bool tells_apart(const MatrixView& sample, const Resources& resources) const;
  void load(const MatrixView& rows, int64_t row, float* floats) const;

  WalkKind kind_;
  KeyKind key_;
  bool unit_length_;
  DType dtype_;
  int64_t cols_;
  int64_t widest_;
  float step_;
  std::vector<float> offsets_;
};

}  // namespace kith
