// A piece of a list for few queries, from one byte a column (list_screen.hpp): nothing is decoded.
//
// Scalar codes: with m the middle code of a column, z = base + step m, and x = c + z + step (code - m) + d, where d is
// what the roundings of the held vector add, |d| <= 1.01 u (2 |z + ...| + |c|),
//
//   |q - x|^2 = |a|^2 - 2 sum b step (code - m) + t,     t = sum (step (code - m))^2 + 2 (c - o) step (code - m)
//   -q x      = -q (c + z) - sum q step (code - m)
//
// within 2 (|a| + R + |d|) |d| and |q| |d|, with a = q - c - z, b = q - z - o, o the centres' mean, and R the largest
// length of step (code - m). Weights are b step, or q step, the same in every list, rounded by e: the sums are within
// |e| C, with C the largest length of code - m. Of a list |a| is computed, from q - z rounded to f32: with it and
// |q - z| lengths of c and of c - o are bounded.
//
// Stored floats: with y = x - o, rounded to bytes and moved by r at most, and a = q - o,
//
//   |q - x|^2 = |a|^2 - 2 a y + |y|^2,    -q x = -q o - q y
//
// and a y is within |a| r + |e| (|y| + r) of what is added up. The screen's spread is r + |y| 2^-12, and a query's tilt
// max(|a|, |e| 2^12): their product bounds both terms and all roundings relative to |a| |y|.
#include "core/divide.hpp"
#include "core/host_arrays.hpp"
#include "core/infinity.hpp"
#include "ivf/scan/list_product.hpp"
#include "ivf/scan/list_screen.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/weighted_bytes.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kNoOwner = -1;
constexpr int64_t kReadPast = 64;         // bytes behind the last row
constexpr int64_t kBlockBytes = 1 << 14;  // of rows that queries are compared with in turn

// A sum over columns, in lanes that do not wait for each other.
template <typename Of>
double sum_over(int64_t cols, const Of& of) {
  constexpr int64_t kLanes = 4;
  double sums[kLanes] = {};
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) sums[j] += of(c + j);
  }
  for (; c < cols; ++c) sums[0] += of(c);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

class ByteListProduct final : public ListProduct {
 public:
  ByteListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : tables_(tables),
        codec_(tables.model().codec->view()),
        kind_(tables.kind()),
        cols_(codec_.format.cols),
        padded_(round_up(cols_, kFewestWeightColumns)),
        stored_(codec_.format.stores_values()),
        packed_(!stored_ && takes_packed_rows(codec_.format.bits, cols_)),
        unpacks_(!stored_ && !packed_ && (codec_.format.bits != 8 || cols_ < kFewestWeightColumns)),
        code_cols_(packed_    ? packed_weight_columns(codec_.format.bits, cols_)
                   : unpacks_ ? padded_
                              : cols_),
        weight_bytes_(weight_bytes(std::max(padded_, code_cols_))),
        block_rows_(round_up(std::max<int64_t>(kBlockBytes / padded_, 16), 4)),
        held_("the queries' weights", resources, *this, shape.weight_queries, shape.few_queries) {
    std::fill(held_->unpacked.begin(), held_->unpacked.end(), uint8_t{0});
    std::fill(held_->values.begin(), held_->values.end(), 0.0);
    if (counts_only(resources)) return;
    std::fill(held_->owners.begin(), held_->owners.end(), kNoOwner);
    if (stored_) return;
    const auto middle = static_cast<double>(middle_code(codec_.format.bits));
    double* const zeros = zeros_of_codes();
    for (int64_t c = 0; c < cols_; ++c) {
      zeros[c] = static_cast<double>(codec_.bases[c]) + middle * static_cast<double>(codec_.steps[c]);
    }
    zero_length_ = std::sqrt(sum_over(cols_, [&](int64_t c) { return zeros[c] * zeros[c]; }));
    longest_ = middle * std::sqrt(sum_over(cols_, [&](int64_t c) {
                 return static_cast<double>(codec_.steps[c]) * static_cast<double>(codec_.steps[c]);
               }));
    longest_code_ = middle * std::sqrt(static_cast<double>(cols_));
  }

  void load_queries(const float* queries, const double* inverse_norms, const ListQueries* lists, int64_t) override {
    const auto [numbers, count, list] = lists[0];
    list_ = list;
    centre_ = stored_ ? nullptr : tables_.model().base_of(list);
    queries_ = queries;
    inverse_norms_ = inverse_norms;
    numbers_ = numbers;
    count_ = count;
    by_number_ = numbers[count - 1] < held_->owners.size();  // the largest
    ready_ = nullptr;
    if (!stored_) {
      for (int64_t i = 0; i < count; ++i) load_code_query(i);
    }
  }

  void load_rows(const ListRows& rows) override {
    rows_ = rows;
    if (!stored_ || rows.screen == ready_) return;
    // Stored floats: segments of a list without a centre have origins of their own.
    const bool loaded = ready_ != nullptr && tables_.model().has_centres();
    ready_ = rows.screen;
    if (loaded) return;
    const float* const origin =
        tables_.model().has_centres() ? tables_.model().centre(list_) : rows.screen->origin().data();
    for (int64_t i = 0; i < count_; ++i) load_float_query(i, origin);
  }

  float offset(int64_t query) const override { return held_->terms[query].offset; }
  float error(int64_t query) const override { return held_->terms[query].error; }

  void scan(int64_t group, int64_t count, const float* limits, ListHits& hits) override {
    ByteRowsQuery* const queries = asked_;
    for (int64_t i = 0; i < count; ++i) {
      const QueryTerms& terms = held_->terms[group + i];
      queries[i] = {terms.weights,
                    terms.constant,
                    terms.factor,
                    limits[i] + terms.least_error,
                    terms.tilt,
                    hits.values + i * hits.stride,
                    hits.rows + i * hits.stride};
    }
    // Codes of few bytes are read together with the first bytes of the next ones; the last have none behind them.
    const bool reads_on = unpacks_ && codec_.format.bits == 8;
    const int64_t whole = reads_on ? std::max<int64_t>(0, rows_.count - divide_up(padded_ - cols_, cols_)) : 0;
    // One query takes no turns, and a kernel that brings rows near for all of them makes queries ready once.
    const bool in_one =
        (count == 1 || shares_weighted_rows(count, code_cols_)) && !unpacks_ && rows_.places == nullptr;
    const int64_t most = in_one ? rows_.count : block_rows_;
    for (int64_t first = 0, here = 0; first < rows_.count; first += here) {
      here = std::min(most, (first < whole ? whole : rows_.count) - first);
      const ByteRows block = block_of(first, here, unpacks_ && first >= whole);
      scan_(block, static_cast<uint32_t>(first), queries, count);
    }
    for (int64_t i = 0; i < count; ++i) hits.counts[i] = queries[i].found;
    for (int64_t i = 0; i < count; ++i) set_error(held_->terms[group + i], hits.rows + i * hits.stride, hits.counts[i]);
  }

 private:
  struct QueryTerms {
    ByteWeights weights;
    float constant = 0;
    float factor = 0;
    float offset = 0;
    float least_error = 0;  // without what a vector's spread adds
    float tilt = 0;
    float error = 0;  // of those that passed last
  };

  double* values() const { return held_->values.data(); }
  double* zeros_of_codes() const { return held_->values.data() + padded_; }

  int64_t row_bytes() const { return stored_ ? padded_ : codec_.format.bytes(); }

  // Rows that are not adjacent, copied together with their numbers.
  ByteRows gathered(int64_t first, int64_t count) const {
    constexpr int64_t kLine = 64;
    constexpr int64_t kAhead = 8;  // rows that are on their way
    const ByteRows all = rows_.screen->rows(0, 1);
    const int64_t bytes = row_bytes();
    const uint8_t* const from = stored_ ? all.bytes : rows_.codes;
    const auto fetch = [&](int64_t i) {
      const int64_t place = rows_.place(first + i);
      for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + place * bytes + at);
      for (const float* const of_rows : {all.terms, all.scales, all.spreads}) {
        if (of_rows != nullptr) __builtin_prefetch(of_rows + place);
      }
    };
    for (int64_t i = 0; i < std::min(kAhead, count); ++i) fetch(i);
    float* const numbers = held_->numbers_of_rows.data();
    for (int64_t i = 0; i < count; ++i) {
      if (i + kAhead < count) fetch(i + kAhead);
      const int64_t place = rows_.place(first + i);
      std::copy_n(from + place * bytes, bytes, held_->gathered.data() + i * bytes);
      if (all.terms != nullptr) numbers[i] = all.terms[place];
      if (all.scales != nullptr) numbers[block_rows_ + i] = all.scales[place];
      if (all.spreads != nullptr) numbers[2 * block_rows_ + i] = all.spreads[place];
    }
    ByteRows block = all;
    block.count = count;
    if (stored_) block.bytes = held_->gathered.data();
    if (all.terms != nullptr) block.terms = numbers;
    if (all.scales != nullptr) block.scales = numbers + block_rows_;
    if (all.spreads != nullptr) block.spreads = numbers + 2 * block_rows_;
    return block;
  }

  ByteRows block_of(int64_t first, int64_t count, bool unpacked) const {
    const bool apart = rows_.places != nullptr;
    ByteRows block = apart ? gathered(first, count) : rows_.screen->rows(rows_.first + first, count);
    if (stored_) return block;
    const uint8_t* const codes = apart ? held_->gathered.data() : rows_.codes + first * codec_.format.bytes();
    block.zero = middle_code(codec_.format.bits);
    block.bytes = codes;
    block.stride = codec_.format.bytes();
    block.cols = code_cols_;
    if (packed_) block.bits = codec_.format.bits;
    if (!unpacked) return block;
    const int bits = codec_.format.bits;
    if (cols_ == padded_ && cols_ * bits % 8 == 0) {  // one after the other, without a gap
      unpack_sub_codes(codes, count * cols_, bits, held_->unpacked.data());
    } else {
      for (int64_t i = 0; i < count; ++i) {
        unpack_sub_codes(codes + i * codec_.format.bytes(), cols_, bits, held_->unpacked.data() + i * padded_);
      }
    }
    block.bytes = held_->unpacked.data();
    block.stride = padded_;
    return block;
  }

  // What is known of a query in every list.
  struct Prepared {
    ByteWeights weights;
    double length = 0;   // |b|, or |q|
    double around = 0;   // |q - z|, where the key is made of differences
    double product = 0;  // q z, where it is not
    bool sure = false;
  };

  // Where a query's weights are kept: by its number in the batch where that has a place, so that they serve all lists.
  int64_t place_of(int64_t i) const { return by_number_ ? int64_t{numbers_[i]} : i; }

  // The weights of a query in all lists, rounded by round(place) where they are not there.
  template <typename Round>
  const Prepared& prepared(int64_t i, const Round& round) {
    const int64_t place = place_of(i);
    if (held_->owners[place] != int64_t{numbers_[i]}) {
      held_->owners[place] = numbers_[i];
      held_->prepared[place] = Prepared();
      round(held_->prepared[place], place);
    }
    return held_->prepared[place];
  }

  // Weights of values() for codes.
  ByteWeights code_weights(int64_t place) {
    float* const floats = held_->floats.data();
    const double* const w = values();
    if (packed_) {
      std::fill_n(floats, code_cols_, 0.0f);
      for (int64_t c = 0; c < cols_; ++c) {
        floats[packed_weight_place(c, codec_.format.bits, cols_)] = static_cast<float>(w[c]);
      }
      return rounded_floats(code_cols_, place);
    }
    const int64_t cols = code_cols_;
    const int64_t whole = cols / kFewestWeightColumns * kFewestWeightColumns;
    for (int64_t c = 0; c < whole; ++c) floats[c] = static_cast<float>(w[c]);
    if (whole < cols) std::fill_n(floats + whole, kFewestWeightColumns, 0.0f);
    for (int64_t c = whole; c < cols; ++c) floats[weight_place(c, cols)] = static_cast<float>(w[c]);
    return rounded_floats(cols, place);
  }
  ByteWeights rounded_floats(int64_t cols, int64_t place) {
    return round_weights(held_->floats.data(), cols, held_->weights.data() + place * weight_bytes_);
  }
  void set_weights(QueryTerms& terms, const ByteWeights& weights, double times) const {
    terms.weights = weights;
    terms.factor = static_cast<float>(times) * weights.step;
  }
  // Nothing is certain: everything passes.
  void give_up(int64_t i) {
    std::fill(held_->floats.begin(), held_->floats.end(), 0.0f);
    const int64_t place = place_of(i);
    held_->owners[place] = kNoOwner;
    set_weights(held_->terms[i], rounded_floats(stored_ ? padded_ : code_cols_, place), 0);
    held_->terms[i].offset = held_->terms[i].constant = held_->terms[i].tilt = 0;
    held_->terms[i].least_error = kInfinity;
  }

  void prepare_code_query(int64_t i, Prepared& out, int64_t place) {
    const float* const query = queries_ + numbers_[i] * cols_;
    const double* const zeros = zeros_of_codes();
    double* const w = values();  // b, or q, and then its product with the steps
    if (!has_differences(kind_)) {
      const double inverse = kind_ == KeyKind::cosine ? inverse_norms_[numbers_[i]] : 1.0;
      for (int64_t c = 0; c < cols_; ++c) w[c] = static_cast<double>(query[c]) * inverse;
      out.product = sum_over(cols_, [&](int64_t c) { return w[c] * zeros[c]; });
    } else {
      for (int64_t c = 0; c < cols_; ++c) w[c] = static_cast<double>(query[c]) - zeros[c];
      out.around = std::sqrt(sum_over(cols_, [&](int64_t c) { return w[c] * w[c]; }));
      float* const moved = held_->moved.data() + place * cols_;
      for (int64_t c = 0; c < cols_; ++c) moved[c] = static_cast<float>(w[c]);
      if (centre_ != nullptr) {
        const float* const mean = tables_.mean().data();
        for (int64_t c = 0; c < cols_; ++c) w[c] -= static_cast<double>(mean[c]);
      }
    }
    const double squares = sum_over(cols_, [&](int64_t c) { return w[c] * w[c]; });
    for (int64_t c = 0; c < cols_; ++c) w[c] *= static_cast<double>(codec_.steps[c]);
    out.length = std::sqrt(squares);
    out.sure = squares < kLargestSquaredNorm && out.around * out.around < kLargestSquaredNorm;
    if (out.sure) out.weights = code_weights(place);
  }

  void load_code_query(int64_t i) {
    const Prepared& own = prepared(i, [&](Prepared& out, int64_t place) { prepare_code_query(i, out, place); });
    if (!own.sure) return give_up(i);
    has_differences(kind_) ? load_code_distance(i, own) : load_code_product(i, own);
  }

  void load_code_distance(int64_t i, const Prepared& own) {
    const float* const moved = held_->moved.data() + place_of(i) * cols_;
    double squares = own.around * own.around;
    if (centre_ != nullptr) {
      const uint32_t row = 0;
      float key = 0;
      canonical_keys_cpu(KeyKind::squared_l2, {moved, 0}, MatrixView(centre_, 1, cols_), &row, 1, &key);
      squares = static_cast<double>(key);
    }
    const double rounded = kUnitRoundoff * own.around * 1.01;  // at least the length of what rounding q - z has taken
    const double a = 1.001 * std::sqrt(squares) + rounded;
    const double centre = centre_ == nullptr ? 0.0 : own.around + a;                      // at least |c|
    const double from_mean = centre_ == nullptr ? 0.0 : own.length + a;                   // at least |c - o|
    const double held = 1.01 * kUnitRoundoff * (2 * (zero_length_ + longest_) + centre);  // |d|
    const double far = a + longest_;
    const double all = far + own.length + own.around + zero_length_;
    if (!(all * all < kLargestSquaredNorm)) return give_up(i);
    QueryTerms& terms = held_->terms[i];
    set_weights(terms, own.weights, -2);
    terms.tilt = terms.constant = 0;
    terms.offset = static_cast<float>(squares);
    const double added = far * far + 2 * (own.length + from_mean) * longest_;
    terms.least_error =
        static_cast<float>(1.01 * (2 * own.weights.moved_by * longest_code_ + 12 * kUnitRoundoff * added +
                                   2 * (far + held) * held + 2.01 * a * rounded));
  }

  void load_code_product(int64_t i, const Prepared& own) {
    const float* const query = queries_ + numbers_[i] * cols_;
    double product = own.product;  // q (c + z)
    double centre = 0;             // |c|
    if (centre_ != nullptr) {
      double with_centre = 0;
      canonical_products_cpu(query, centre_, 1, cols_, &with_centre);
      product += with_centre * (kind_ == KeyKind::cosine ? inverse_norms_[numbers_[i]] : 1.0);
      centre = std::sqrt(canonical_squared_norm_cpu(centre_, cols_));
    }
    const double all = zero_length_ + longest_ + centre;
    if (!(all * all < kLargestSquaredNorm)) return give_up(i);
    const double held = 1.01 * kUnitRoundoff * (2 * (zero_length_ + longest_) + centre);  // |d|
    const double error =
        1.01 * (own.weights.moved_by * longest_code_ + 12 * kUnitRoundoff * own.length * all + own.length * held) +
        underflow_error(cols_);
    QueryTerms& terms = held_->terms[i];
    set_weights(terms, own.weights, -1);
    terms.tilt = terms.constant = 0;
    terms.offset = static_cast<float>(-product);
    terms.least_error = static_cast<float>(error);
    if (kind_ != KeyKind::cosine) return;
    terms.constant = terms.offset;
    terms.offset = 1;
    terms.least_error = static_cast<float>(32 * kUnitRoundoff);
    terms.tilt = static_cast<float>(error * 1.01);
  }

  // The floats that are rounded to weights; returns their squared length. It is rounded to f32, which moves it by less
  // than the spread has room for.
  double fill_floats(int64_t i, const float* origin) {
    const float* const query = queries_ + numbers_[i] * cols_;
    float* const w = held_->floats.data();
    std::fill(w + cols_, w + padded_, 0.0f);
    if (has_differences(kind_)) {
      for (int64_t c = 0; c < cols_; ++c) w[c] = query[c] - origin[c];
    } else if (kind_ == KeyKind::cosine) {
      const double inverse = inverse_norms_[numbers_[i]];
      for (int64_t c = 0; c < cols_; ++c) w[c] = static_cast<float>(query[c] * inverse);
    } else {
      std::copy_n(query, cols_, w);
    }
    return canonical_squared_norm_cpu(w, cols_);
  }

  void set_tilt(QueryTerms& terms, double times, double length) const {
    terms.constant = 0;
    terms.tilt = static_cast<float>(times * std::max(length, terms.weights.moved_by * 0x1p12) + 1e-30);
  }

  void load_float_query(int64_t i, const float* origin) {
    if (!has_differences(kind_)) return load_float_product(i, origin);
    const double squares = fill_floats(i, origin);
    if (!(squares < kLargestSquaredNorm)) return give_up(i);
    QueryTerms& terms = held_->terms[i];
    held_->owners[place_of(i)] = kNoOwner;  // the weights are the list's
    set_weights(terms, rounded_floats(padded_, place_of(i)), -2);
    set_tilt(terms, 2.02, std::sqrt(squares));
    terms.offset = static_cast<float>(squares);
    terms.least_error = static_cast<float>(16 * kUnitRoundoff * squares + underflow_error(cols_));
  }

  void load_float_product(int64_t i, const float* origin) {
    const Prepared& own = prepared(i, [&](Prepared& out, int64_t place) {
      const double squares = fill_floats(i, origin);
      out.length = std::sqrt(squares);
      out.sure = squares < kLargestSquaredNorm;
      if (out.sure) out.weights = rounded_floats(padded_, place);
    });
    const bool cosine = kind_ == KeyKind::cosine;
    const double origins = canonical_squared_norm_cpu(origin, cols_);
    if (!own.sure || !(origins < kLargestSquaredNorm)) return give_up(i);
    double product = 0;
    canonical_products_cpu(queries_ + numbers_[i] * cols_, origin, 1, cols_, &product);
    if (cosine) product *= inverse_norms_[numbers_[i]];
    QueryTerms& terms = held_->terms[i];
    set_weights(terms, own.weights, -1);
    set_tilt(terms, 1.01, own.length);
    const double one = cosine ? 1.0 : 0.0;
    terms.offset = static_cast<float>(one - product);
    terms.least_error =
        static_cast<float>(32 * kUnitRoundoff * (one + own.length * std::sqrt(origins)) + underflow_error(cols_));
  }

  // The bound holds for all vectors that passed, so it takes their largest spread and their largest term.
  void set_error(QueryTerms& terms, const uint32_t* rows, int64_t count) const {
    terms.error = terms.least_error;
    if (terms.tilt == 0 && !stored_) return;
    float spread = 0;
    float term = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = rows_.place(rows[i]);
      spread = std::max(spread, rows_.screen->spread(place));
      term = std::max(term, stored_ ? rows_.screen->term(place) : 0.0f);
    }
    terms.error += (terms.tilt * spread + term * static_cast<float>(32 * kUnitRoundoff)) * 1.001f;
  }

  const ListTables& tables_;
  WeightedBytesScan* const scan_ = weighted_bytes_scan();
  const CodecView codec_;
  const KeyKind kind_;
  const int64_t cols_;
  const int64_t padded_;
  const bool stored_;
  const bool packed_;  // codes of less than 8 bits that are taken as they are stored
  const bool unpacks_;
  const int64_t code_cols_;  // weights of codes
  const int64_t weight_bytes_;
  const int64_t block_rows_;
  // In one block, so that a short search takes memory once.
  struct Arrays {
    // `queries`: of a batch, whose weights are held; `few`: of a list.
    Arrays(ArrayPlaces& places, const ByteListProduct& product, int64_t queries, int64_t few);

    PlacedArray<uint8_t> weights;
    PlacedArray<QueryTerms> terms;
    PlacedArray<int64_t> owners;     // queries of the batch whose weights there are
    PlacedArray<Prepared> prepared;  // of the same
    PlacedArray<float> moved;        // q - z
    PlacedArray<double> values;      // of a query as it is rounded; then zeros_of_codes()
    PlacedArray<float> floats;       // the same in f32
    PlacedArray<uint8_t> unpacked;
    PlacedArray<uint8_t> gathered;       // rows that are not adjacent,
    PlacedArray<float> numbers_of_rows;  // and their terms, scales and spreads
  };
  const HostArrays<Arrays> held_;
  double zero_length_ = 0;   // |z|
  double longest_ = 0;       // R
  double longest_code_ = 0;  // C
  // The list in use and its queries:
  int64_t list_ = 0;
  const float* centre_ = nullptr;
  const float* queries_ = nullptr;
  const double* inverse_norms_ = nullptr;
  const uint32_t* numbers_ = nullptr;
  int64_t count_ = 0;
  bool by_number_ = false;
  ByteRowsQuery asked_[kHitQueries];   // of the scan
  const ListScreen* ready_ = nullptr;  // whose origin the queries were loaded for
  ListRows rows_;
};

ByteListProduct::Arrays::Arrays(ArrayPlaces& places, const ByteListProduct& product, int64_t queries, int64_t few)
    : weights(places.take<uint8_t>(queries * product.weight_bytes_)),
      terms(places.take<QueryTerms>(few)),
      owners(places.take<int64_t>(queries)),
      prepared(places.take<Prepared>(queries)),
      moved(places.take<float>(!product.stored_ && has_differences(product.kind_) ? queries * product.cols_ : 0)),
      values(places.take<double>(2 * product.padded_)),
      floats(places.take<float>(std::max(product.padded_, product.code_cols_))),
      unpacked(places.take<uint8_t>(product.unpacks_ ? product.block_rows_ * product.padded_ : 0)),
      gathered(places.take<uint8_t>(product.block_rows_ * product.row_bytes() + kReadPast)),
      numbers_of_rows(places.take<float>(3 * product.block_rows_)) {}

}  // namespace

std::unique_ptr<ListProduct> make_byte_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources) {
  return std::make_unique<ByteListProduct>(tables, shape, resources);
}

}  // namespace kith
