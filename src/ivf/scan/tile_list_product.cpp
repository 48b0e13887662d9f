// A piece of a list as bf16 for matrix units, with bounds from what rounding has taken.
//
// Codes of residuals are multiplied as they are: the product is of q - c and r, while the index holds x = c + r rounded
// to f32. Let a = q - c and r be rounded to a' and r', and |d| <= u (|c| + |r|) be what the rounding of x adds:
//
//   |a r - a' r'|                    <= |a - a'| |r| + |a'| |r - r'|
//   | |q - x|^2 - |a - r|^2 |        <= 2 (|a| + |r|) |d| + |d|^2
//   | q x - (q c + q r) |            <= |q| |d|
//
// The sums themselves, and a's own rounding, are within tile_product_bound of error_bound.hpp. Squares are added up in
// f32: their roundings are counted in.
#include "ivf/scan/list_product.hpp"

#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "ivf/model/norm_terms.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/list_tiles.hpp"
#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <kith/error.hpp>

#include <algorithm>
#include <cmath>

namespace kith {

#if defined(KITH_X86) || defined(KITH_ARM)

namespace {

constexpr int64_t kTileVectors = std::max(kTileRows, kTileQueries);

// What is known of a loaded query.
struct TileQuery {
  float offset;
  float norm;      // of what is multiplied, before it was rounded
  float moved_by;  // how far rounding has moved it
};

// A root, and what its rounding and that of the sum below it may have lost: squares below 2^-126 may count as zero.
float norm_of(float squares, int64_t cols) {
  const float lost = std::sqrt(static_cast<float>(cols)) * 0x1p-63f * 1.001f;
  return squares < kLargestSquaredNorm ? std::sqrt(squares) * 1.001f + lost : kInfinity;
}

class TileListProduct final : public ListProduct {
 public:
  TileListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : tables_(tables),
        norms_of_codes_(tables.model()),
        cols_(tables.model().cols()),
        words_(tile_words(cols_)),
        words_of_(ListTables::rounds_words(tables.model()) ? tables.words() : nullptr),
        by_residual_(tables.model().residual && tables.kind() != KeyKind::cosine),
        queries_(round_up(shape.query_block, kTileQueries) * words_, "packed queries", resources),
        queries_of_tile_(shape.query_block, "packed queries", resources),
        panels_(round_up(shape.piece_rows, kTileRows) * words_, "decoded vectors", resources),
        terms_(round_up(shape.piece_rows, kTileRows), "decoded vectors", resources),
        rounded_(kTileVectors * words_, "decoded vectors", resources),
        decoded_(kTileRows * cols_, "decoded vectors", resources) {}

  void load_queries(const float* queries, const double* inverse_norms, const ListQueries* lists, int64_t) override {
    const auto [numbers, count, list] = lists[0];
    list_ = list;
    const bool differences = has_differences(tables_.kind());
    const float* const origin = differences ? tables_.origin(list) : nullptr;
    centre_norm_ = 0;
    if (by_residual_) {
      const double squared = canonical_squared_norm_cpu(tables_.model().centre(list), cols_);
      centre_norm_ = squared < kLargestSquaredNorm ? std::sqrt(squared) * 1.001 : kInfinity;
    }
    norms_of_codes_.start_queries();
    for (int64_t i = 0; i < count; ++i) norms_of_codes_.add_query(queries + numbers[i] * cols_);
    for (int64_t first = 0; first < count; first += kTileQueries) {
      const int64_t end = std::min(first + kTileQueries, count);
      for (int64_t i = first; i < end; ++i) {
        const float* query = queries + numbers[i] * cols_;
        if (tables_.kind() == KeyKind::cosine) {
          for (int64_t c = 0; c < cols_; ++c) decoded_[c] = static_cast<float>(query[c] * inverse_norms[numbers[i]]);
          query = decoded_.data();
        }
        const RoundedSums sums = round_to_tile_words(query, origin, differences ? -2.0f : -1.0f, cols_,
                                                     rounded_.data() + (i - first) * words_);
        queries_of_tile_[i] = {offset_of(queries + numbers[i] * cols_, sums.squares), norm_of(sums.squares, cols_),
                     norm_of(sums.errors, cols_)};
      }
      place_tile_queries(rounded_.data(), end - first, words_, queries_.data() + first * words_);
    }
  }

  void load_rows(const ListRows& rows) override {
    const uint8_t* const codes = rows.codes;
    const int64_t count = rows.count;
    const CodecView codec = tables_.model().codec->view();
    const int64_t code_bytes = codec.format.bytes();
    rows_ = count;
    norms_of_codes_.start_rows();
    const float* const centre = by_residual_ ? tables_.model().centre(list_) : nullptr;
    float most = 0;
    float most_error = 0;
    for (int64_t first = 0; first < count; first += kTileRows) {
      const int64_t here = std::min(kTileRows, count - first);
      float* const terms = terms_.data() + first;
      if (words_of_ != nullptr) {
        gather_tile_words(codec.format, {words_of_->rounded.data(), words_of_->squares.data()},
                          codes + first * code_bytes, here, words_, rounded_.data(), terms);
      } else {
        round_rows(codec, codes + first * code_bytes, here, terms, &most_error);
      }
      for (int64_t i = 0; i < here; ++i) most = terms[i] <= most ? most : terms[i];  // a NaN stays
      for (int64_t i = 0; norms_of_codes_.used() && i < here; ++i) {
        terms[i] =
            norms_of_codes_.term(codes + (first + i) * code_bytes, decoded_.data() + i * cols_, centre, terms[i]);
      }
      if (!has_differences(tables_.kind())) std::fill_n(terms, here, 0.0f);
      std::fill(terms + here, terms + kTileRows, 0.0f);
      place_tile_rows(rounded_.data(), here, words_, panels_.data() + first * words_);
    }
    norm_ = norm_of(most, cols_);
    moved_by_ = words_of_ != nullptr ? words_of_->moved_by : norm_of(most_error, cols_);
  }

  float offset(int64_t query) const override { return queries_of_tile_[query].offset; }

  float error(int64_t query) const override {
    const TileQuery& tile_query = queries_of_tile_[query];
    if (!(tile_query.norm < kInfinity && norm_ < kInfinity && centre_norm_ < kInfinity)) return kInfinity;
    const bool differences = has_differences(tables_.kind());
    const double a = tile_query.norm;
    const double r = norm_;
    const double scale = differences ? 2 : 1;
    const double sums = (static_cast<double>(cols_) / 4 + 16) * kUnitRoundoff;  // of squares added up in lanes
    double error = tile_product_bound(differences, a, cols_, 0.0).at(norm_);
    if (has_segments(cols_)) {  // which these tiles have not
      error += 1.03 * product_error(cols_ + 2) * (differences ? (a + r) * (a + r) : a * r);
    }
    error += scale * (tile_query.moved_by * r + (a + tile_query.moved_by) * moved_by_);
    if (differences) error += sums * (a * a + r * r);
    if (by_residual_) {
      const double d = 1.01 * kUnitRoundoff * (centre_norm_ + r);
      error += differences ? 2 * (a + r) * d + d * d : a * d + 2 * kUnitRoundoff * std::abs(tile_query.offset);
    }
    if (norms_of_codes_.used()) error += norms_of_codes_.error(query);
    return static_cast<float>(error * 1.001);
  }

  void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) override {
    alignas(64) float all[kHitQueries] = {};
    for (int64_t i = 0; i < count; ++i) all[i] = limits[i] + error(first + i);
    scan_list_tiles({queries_.data() + first * words_, count, panels_.data(), terms_.data(), rows_, cols_, all}, hits);
  }

 private:
  float offset_of(const float* query, float squares) const {
    switch (tables_.kind()) {
      case KeyKind::cosine: return 1.0f;
      case KeyKind::inner_product: {
        if (!by_residual_) return 0.0f;
        const uint32_t row = 0;
        float key = 0;
        canonical_keys_cpu(KeyKind::inner_product, {query, 0}, MatrixView(tables_.model().centre(list_), 1, cols_),
                           &row, 1, &key);
        return key;
      }
      default: return squares;
    }
  }

  // Vectors of any code, decoded one by one.
  void round_rows(const CodecView& codec, const uint8_t* codes, int64_t count, float* terms, float* most_error) {
    const float* const centre = by_residual_ ? nullptr : tables_.model().base_of(list_);
    const bool differences = has_differences(tables_.kind());
    const float* const origin = differences && !by_residual_ ? tables_.origin(list_) : nullptr;
    decode_rows_cpu(codec, codes, count, centre, decoded_.data());
    for (int64_t i = 0; i < count; ++i) {
      float* const vector = decoded_.data() + i * cols_;
      if (tables_.kind() == KeyKind::cosine) {
        const double inverse = canonical_inverse_norm(canonical_squared_norm_cpu(vector, cols_));
        for (int64_t c = 0; c < cols_; ++c) vector[c] = static_cast<float>(vector[c] * inverse);
      }
      const RoundedSums sums = round_to_tile_words(vector, origin, 1.0f, cols_, rounded_.data() + i * words_);
      terms[i] = sums.squares;
      *most_error = sums.errors <= *most_error ? *most_error : sums.errors;
    }
  }

  const ListTables& tables_;
  NormTerms norms_of_codes_;
  const int64_t cols_;
  const int64_t words_;                     // of four bytes, of a vector
  const CodeWords::Forms* const words_of_;  // codewords, where vectors are put together from them
  const bool by_residual_;                  // what is multiplied is the decoded residual
  HostArray<uint32_t> queries_;
  HostArray<TileQuery> queries_of_tile_;
  HostArray<uint32_t> panels_;
  HostArray<float> terms_;
  HostArray<uint32_t> rounded_;  // a panel's rows or queries, one by one
  HostArray<float> decoded_;
  int64_t list_ = 0;
  int64_t rows_ = 0;
  double centre_norm_ = 0;
  float norm_ = 0;  // the largest of the piece
  float moved_by_ = 0;
};

}  // namespace

std::unique_ptr<ListProduct> make_tile_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources) {
  return std::make_unique<TileListProduct>(tables, shape, resources);
}

#else

std::unique_ptr<ListProduct> make_tile_list_product(const ListTables&, const ListProductShape&, const Resources&) {
  throw Unsupported("this processor has no tiles");
}

#endif

}  // namespace kith
