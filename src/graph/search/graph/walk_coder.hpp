// The codes compared during a walk: a signed byte per column, or four bits that encode such a byte.
//
//   u8, i8            their values (u8 minus 128, which keeps the order), for l2, sqeuclidean and inner_product
//   other dtypes      (x - offset) / step, rounded: a single step for all columns, since an l2 error counts the same in
//                     each, and an offset per column, the mean. The step is such that 99.9 % of a sample's values fit,
//                     or more if that makes the error smaller; others are clipped, and counted. For inner_product,
//                     whose results are the longest rows, all values fit
//   cosine            the same for normalized rows, compared by squares
//   other metrics     no codes: the rows themselves, compared by canonical keys; also for l2 and sqeuclidean if codes
//                     cannot distinguish near rows
//   four bits         the same for all dtypes with 16 levels, eight steps apart, so that queries and centres, which are
//                     bytes, are rounded more finely than rows. The step minimizes the rounding and clipping error of a
//                     sample's values
//
// A query is rounded with the rows' step, to 16-bit words if it is far outside the rows' range, so that it is not
// clipped; if sums could overflow, it is moved towards the offset. For inner_product, where the rows' offset adds the
// same to all keys, it has a step of its own and no offset. Query codes only choose candidates: results are compared
// again exactly.
//
// Memory per place: the columns, rounded up to 16; with four bits half of them, rounded up to 32.
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

inline constexpr int64_t kMostWalkColumns = 32768;  // sums over more columns could overflow

// The padded number of columns of byte codes.
constexpr int64_t code_stride(int64_t cols) { return round_up(cols, kByteKeyColumns); }

enum class WalkBits : uint8_t { eight = 8, four = 4 };

// Whether a metric uses codes; for others, walks compare the values of rows.
bool walks_by_codes(Metric metric);

class WalkCoder {
 public:
  // Chooses a coder for rows like these, in host memory, from a sample drawn with the seed.
  static WalkCoder choose(const MatrixView& rows, Metric metric, uint64_t seed, const Resources& resources);
  // Four-bit codes for the rows that these byte codes were chosen for; must have codes.
  WalkCoder with_four_bits(const MatrixView& rows, uint64_t seed, const Resources& resources) const;
  // The vectors to encode, and the number of bits if there are codes.
  struct Form {
    Metric metric = Metric::l2;
    DType dtype = DType::f32;
    int64_t cols = 0;
    WalkBits bits = WalkBits::eight;
  };
  // From a file: step and offsets are those of the saved coder; no offsets if there are no codes.
  WalkCoder(const Form& form, float step, std::vector<float> offsets);
  // `scale`: the step followed by the offsets, or empty.
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
  int64_t widest() const { return widest_; }                      // the largest value of a query's word
  float step() const { return step_; }                            // of the bytes
  const std::vector<float>& offsets() const { return offsets_; }  // empty without codes

  // The number of columns of codes of queries and centres.
  int64_t code_columns() const {
    return form_.bits == WalkBits::four ? round_up(form_.cols, kNibbleColumns) : code_stride(form_.cols);
  }
  // The size of the code of a place, and of a centre, which has byte codes.
  int64_t place_bytes() const { return packed() ? nibble_bytes(code_columns()) : centre_bytes(); }
  int64_t centre_bytes() const { return has_codes() ? code_columns() : form_.cols * size_of(form_.dtype); }
  WalkRows rows_of(const void* data, int64_t places) const;
  WalkRows centres_of(const void* data, int64_t centres) const;

  // Encodes a row of the coder's dtype; returns how many values were clipped. On any thread. `floats`: row_room().
  int64_t encode(const MatrixView& rows, int64_t row, std::byte* out, float* floats) const;
  int64_t row_room() const { return packed() ? code_columns() : form_.cols; }
  // Encodes all rows, on all threads.
  int64_t encode_all(const MatrixView& rows, std::byte* out, const Resources& resources) const;

  // Memory for encoding one query at a time.
  struct QueryRoom {
    float* floats = nullptr;  // cols
    int8_t* bytes = nullptr;  // code_columns()
    int16_t* words = nullptr;
  };
  // Whether keys with queries of that dtype are exact squared distances, without rounding.
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
  // Whether codes may turn out to be useless for f32 rows of such a metric.
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
