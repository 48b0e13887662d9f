// The codes that a walk goes by: a signed byte for each column, or four bits that stand for such a byte.
//
//   u8, i8            their values (u8 less 128, which changes no order), for l2, sqeuclidean and inner_product
//   other dtypes      (x - offset) / step, rounded: one step for all columns, since an error of l2 counts alike in
//                     each, and an offset for each, the mean. The step lets 99.9 % of a sample's values fit, or more
//                     where that makes the error smaller; others are clipped, and counted. For inner_product, whose
//                     answers are the longest rows, all values fit
//   cosine            the same of rows of length 1, compared by squares
//   other metrics     no codes: rows as they are, compared by canonical keys; and so by l2 and sqeuclidean where codes
//                     do not tell near rows apart
//   four bits         the same for all dtypes with 16 levels, eight steps apart, so that queries and centres, which are
//                     bytes, are rounded more finely than rows. The step makes the error of a sample's values least,
//                     rounded or clipped
//
// A query is rounded with the rows' step, to words where it lies far outside the rows, so that it is not clipped;
// farther than sums can hold, it is moved towards the offset. For inner_product, where the rows' offset adds the same
// to all keys, it has a step of its own and no offset. Queries only choose candidates: what is returned is compared
// again.
//
// Memory of a place: the columns, rounded up to 16; with four bits half of them, rounded up to 32.
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

// Columns of codes of bytes, with those that they are padded by.
constexpr int64_t code_stride(int64_t cols) { return round_up(cols, kByteKeyColumns); }

enum class WalkBits : uint8_t { eight = 8, four = 4 };

// Whether codes serve a metric; by others walks compare the values of rows.
bool walks_by_codes(Metric metric);

class WalkCoder {
 public:
  // For rows like these, in host memory, of which a sample is drawn by the seed.
  static WalkCoder choose(const MatrixView& rows, Metric metric, uint64_t seed, const Resources& resources);
  // Codes of four bits for rows that these codes of bytes were chosen for; there are codes.
  WalkCoder with_four_bits(const MatrixView& rows, uint64_t seed, const Resources& resources) const;
  // What is coded, and by how many bits where there are codes.
  struct Form {
    Metric metric = Metric::l2;
    DType dtype = DType::f32;
    int64_t cols = 0;
    WalkBits bits = WalkBits::eight;
  };
  // As a file has it: step and offsets are those of the coder that was saved; no offsets where there are no codes.
  WalkCoder(const Form& form, float step, std::vector<float> offsets);
  // `scale`: the step and the offsets, one after the other, or nothing.
  static WalkCoder from_scale(const Form& form, const std::vector<float>& scale) {
    if (scale.empty()) return {form, 1, {}};
    return {form, scale[0], std::vector<float>(scale.begin() + 1, scale.end())};
  }

  WalkKind kind() const { return kind_; }
  KeyKind key() const { return key_; }
  int64_t cols() const { return form_.cols; }
  bool packed() const { return has_codes() && form_.bits == WalkBits::four; }
  bool has_codes() const { return kind_ != WalkKind::canonical; }
  bool unit_length() const { return form_.metric == Metric::cosine; }
  int64_t widest() const { return widest_; }  // the largest value of a query's word
  float step() const { return step_; }        // of the bytes
  const std::vector<float>& offsets() const { return offsets_; }  // empty without codes

  // Columns of queries' codes and centres' codes.
  int64_t code_columns() const {
    return form_.bits == WalkBits::four ? round_up(form_.cols, kNibbleColumns) : code_stride(form_.cols);
  }
  // What a place takes, and a centre, whose code is of bytes.
  int64_t place_bytes() const { return packed() ? nibble_bytes(code_columns()) : centre_bytes(); }
  int64_t centre_bytes() const { return has_codes() ? code_columns() : form_.cols * size_of(form_.dtype); }
  WalkRows rows_of(const void* data, int64_t places) const;
  WalkRows centres_of(const void* data, int64_t centres) const;

  // Rows of the coder's dtype; returns how many values were clipped. On any thread. `floats`: row_room() of them.
  int64_t encode(const MatrixView& rows, int64_t row, std::byte* out, float* floats) const;
  int64_t row_room() const { return packed() ? code_columns() : form_.cols; }
  // All rows, on all threads.
  int64_t encode_all(const MatrixView& rows, std::byte* out, const Resources& resources) const;

  // Memory for one query; it makes one at a time.
  struct QueryRoom {
    float* floats = nullptr;  // cols
    int8_t* bytes = nullptr;  // code_columns()
    int16_t* words = nullptr;
  };
  // Whether keys with queries of that dtype are the squared distances of the vectors, not of rounded ones.
  bool keys_are_exact(DType queries) const {
    return takes_values() && kind_ == WalkKind::squares && queries == form_.dtype && widest_ >= 128;
  }
  static int64_t query_bytes(int64_t cols) { return cols * 4 + round_up(cols, kNibbleColumns) * 3 + 3 * 64; }
  static QueryRoom query_room(std::byte* memory, int64_t cols);
  WalkQuery query(const MatrixView& queries, int64_t number, const QueryRoom& room) const;

 private:
  struct Sample;

  bool takes_values() const {
    return has_codes() && !packed() && !unit_length() && (form_.dtype == DType::u8 || form_.dtype == DType::i8);
  }
  // Whether floats of such a metric may turn out to have no codes.
  bool may_have_none() const { return kind_ == WalkKind::squares && !unit_length(); }
  // Sets offsets and step.
  void fit(const MatrixView& rows, const Sample& sample);
  bool tells_apart(const MatrixView& rows, const Resources& resources) const;
  void load(const MatrixView& rows, int64_t row, float* floats) const;

  Form form_;
  WalkKind kind_;
  KeyKind key_;
  int64_t widest_;
  float step_;
  std::vector<float> offsets_;
};

}  // namespace kith
