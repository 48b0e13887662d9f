// Pieces of lists by lookup tables, for few queries: of product codes, and of sums of codewords.
#include "core/infinity.hpp"
#include "ivf/scan/code_table_scan.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kith {

namespace {

// A piece of a list of product codes by lookup tables, for few queries: the vectors are not decoded.
//
// Tables of residuals are of q - c; what the index holds is c + r rounded to f32, which tile_list_product.cpp bounds.
class TableListProduct final : public CodeTableScan {
 public:
  TableListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : CodeTableScan(tables.model().codec->format(), false, Terms::none, shape, resources),
        tables_(tables),
        words_(*tables.words()),
        cols_(format().cols),
        by_residual_(tables.model().residual),
        moved_(kTablesTogether * cols_, "lookup tables", resources) {}

  void load_queries(const float* queries, const double*, const ListQueries* lists, int64_t count) override {
    start_lists();
    const float* asked[kTablesTogether] = {};
    float* filled[kTablesTogether] = {};
    int64_t waiting = 0;  // for their tables
    for (int64_t l = 0; l < count; ++l) {
      const ListQueries& of_list = lists[l];
      const double centre_norm =
          by_residual_ ? std::sqrt(canonical_squared_norm_cpu(tables_.model().centre(of_list.list), cols_)) : 0.0;
      for (int64_t i = 0; i < of_list.count; ++i) {
        const int64_t at = loaded_count() + i;
        asked[waiting] =
            load_query(queries + of_list.numbers[i] * cols_, of_list.list, centre_norm, waiting, loaded(at));
        loaded(at).table = at;
        filled[waiting++] = table(at);
        if (waiting == kTablesTogether) fill(asked, filled, &waiting);
      }
      end_list(of_list.count);
    }
    fill(asked, filled, &waiting);
    for (int64_t i = 0; i < loaded_count(); ++i) round_table(i);
  }

 private:
  // What is looked up for a query in a list: the query itself, or what is left of it, kept in a place.
  const float* load_query(const float* query, int64_t list, double centre_norm, int64_t place, Loaded& out) {
    const bool differences = has_differences(tables_.kind());
    float key = 0;  // -q c
    if (by_residual_ && differences) {
      const float* const centre = tables_.model().centre(list);
      float* const moved = moved_.data() + place * cols_;
      for (int64_t c = 0; c < cols_; ++c) moved[c] = query[c] - centre[c];
      query = moved;
    } else if (by_residual_) {
      const uint32_t row = 0;
      canonical_keys_cpu(KeyKind::inner_product, {query, 0}, MatrixView(tables_.model().centre(list), 1, cols_), &row,
                         1, &key);
    }
    const double squared = canonical_squared_norm_cpu(query, cols_);
    out.offset = differences ? static_cast<float>(squared) : key;
    out.error = error_of(squared, centre_norm, std::abs(key));
    return query;
  }

  void fill(const float* const* queries, float* const* tables, int64_t* count) const {
    const bool differences = has_differences(tables_.kind());
    fill_code_tables(format(), {words_.columns.data(), differences ? words_.squares.data() : nullptr}, queries, *count,
                     differences ? -2.0f : -1.0f, tables);
    *count = 0;
  }

  // Sums of squares less twice a product, or of products: each is rounded no more often than a product of twice as many
  // columns.
  float error_of(double squared, double centre_norm, double key) const {
    const double largest = words_.largest;
    if (!(squared < kLargestSquaredNorm && largest * largest < kLargestSquaredNorm && centre_norm < 1e18)) {
      return kInfinity;
    }
    const bool differences = has_differences(tables_.kind());
    const double a = std::sqrt(squared);
    const ErrorBound bound = differences ? squared_l2_product_bound(a, 2 * cols_) : inner_product_bound(a, 2 * cols_);
    double error = bound.at(static_cast<float>(largest));
    if (tables_.model().residual) {
      const double d = 1.01 * kUnitRoundoff * (centre_norm + largest);
      error += differences ? 2 * (a + largest) * d + d * d : a * d + 2 * kUnitRoundoff * key;
    }
    return static_cast<float>(error * 1.001);
  }

  const ListTables& tables_;
  const CodeWords::Forms& words_;
  const int64_t cols_;
  const bool by_residual_;
  HostArray<float> moved_;  // queries minus their centres, which wait for their tables
};

// A piece of a list of additive codes by lookup tables, for few queries: m lookups, and one for the norm, where
// decoding would add up m codewords.
//
//   |q|^2 - 2 q x + norm   with x = c + sum of codewords: tables have -2 q w, the norm's table its levels
//   -q x                   tables have -q w
//
//   (-q x) / |x|           cosine, with q of length 1: the norms are kept beside the codes, as norms of distances are
//                          where codes hold none (list_screen.hpp)
//
// A query's tables are the same in every list; they stay while it is searched. To a lookup an additive code of 8 bits a
// book is a product code of as many parts, with its byte for the norm a further one; a norm of 4 bytes is added as it
// is.
//
// Bounds: with S the sum of the books' longest codewords, all that is added up is at most 2 |q| S and the norm. An
// entry is a sum of `cols` products; a held vector is rounded once for every book and once for its centre.
class SumListProduct final : public CodeTableScan {
 public:
  SumListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : CodeTableScan(sum_table_format(tables.model().codec->format()),
                      tables.model().codec->format().norm == CodeNorm::float32 && has_differences(tables.kind()),
                      terms_of(tables), shape, resources),
        tables_(tables),
        codec_(tables.model().codec->view()),
        words_(*tables.words()),
        by_norm_(has_differences(tables.kind())),
        moved_(codec_.format.cols, "lookup tables", resources) {
    if (!codec_.format.has_levels()) return;
    for (int64_t i = 0; i < kNormLevels; ++i) {
      largest_level_ = std::max(largest_level_, std::abs(static_cast<double>(codec_.levels[i])));
    }
  }

  void load_queries(const float* queries, const double* inverse_norms, const ListQueries* lists,
                    int64_t count) override {
    start_lists();
    const bool cosine = tables_.kind() == KeyKind::cosine;
    for (int64_t l = 0; l < count; ++l) {
      const ListQueries& of_list = lists[l];
      const float* const centre = tables_.model().base_of(of_list.list);
      const double centre_norm =
          centre == nullptr ? 0.0 : std::sqrt(canonical_squared_norm_cpu(centre, codec_.format.cols));
      for (int64_t i = 0; i < of_list.count; ++i) {
        const float* const query = queries + of_list.numbers[i] * codec_.format.cols;
        Loaded& one = loaded(loaded_count() + i);
        const double inverse = cosine ? inverse_norms[of_list.numbers[i]] : 1.0;
        one.table = table_of(of_list.numbers[i], [&](float* table) { fill(query, inverse, table); });
        double product = 0;  // q c
        if (centre != nullptr) canonical_products_cpu(query, centre, 1, codec_.format.cols, &product);
        const double squared = cosine ? 1.001 : canonical_squared_norm_cpu(query, codec_.format.cols);
        one.offset = static_cast<float>(by_norm_ ? squared - 2 * product : -product * inverse);
        one.error = error_of(squared, centre_norm);
        one.constant = one.tilt = 0;
        if (!cosine) continue;
        one.constant = one.offset;
        one.tilt = one.error;
        one.offset = 1;
        if (one.error < kInfinity) one.error = static_cast<float>(32 * kUnitRoundoff);
      }
      end_list(of_list.count);
    }
  }

 private:
  static Terms terms_of(const ListTables& tables) {
    if (!has_sum_terms(tables.model().codec->format(), tables.kind())) return Terms::none;
    return tables.kind() == KeyKind::cosine ? Terms::divisors : Terms::added;
  }

  void fill(const float* query, double inverse, float* entries) const {
    const CodeFormat& own = codec_.format;
    if (inverse != 1.0) {
      for (int64_t c = 0; c < own.cols; ++c) moved_[c] = static_cast<float>(static_cast<double>(query[c]) * inverse);
      query = moved_.data();
    }
    const CodeFormat book = CodeFormat::of_parts(own.cols, own.bits, 1);  // by itself
    const int64_t words = own.codewords();
    for (int64_t k = 0; k < own.parts; ++k) {
      float* const table = entries + k * words;
      fill_code_tables(book, {words_.columns.data() + k * words * own.cols, nullptr}, &query, 1,
                       by_norm_ ? -2.0f : -1.0f, &table);
    }
    if (!own.has_levels()) return;
    float* const norms = entries + own.parts * words;
    for (int64_t i = 0; i < kNormLevels; ++i) norms[i] = by_norm_ ? codec_.levels[i] : 0.0f;
  }

  float error_of(double squared, double centre_norm) const {
    const double longest = words_.largest;
    const double a = std::sqrt(squared);
    const double scale = by_norm_ ? 2 : 1;
    const double held_norm = longest + centre_norm;
    const double norm = !by_norm_ ? 0.0 : codec_.format.has_norm() ? largest_level_ : held_norm * held_norm;
    const double all = a + longest + centre_norm;
    if (!(all * all < kLargestSquaredNorm && norm < kLargestSquaredNorm)) return std::numeric_limits<float>::infinity();
    const auto books = static_cast<double>(codec_.format.parts);
    const double entries = scale * a * longest * product_error(sum_roundings(codec_.format.cols));
    const double sums = (books + 4) * kUnitRoundoff * (scale * a * (longest + centre_norm) + norm + squared);
    // What rounding the held vector, and bringing the query to length 1, adds.
    const double held = scale * a * (books + 3) * 1.01 * kUnitRoundoff * (longest + centre_norm);
    return static_cast<float>((entries + sums + held + books * underflow_error(codec_.format.cols)) * 1.01);
  }

  const ListTables& tables_;
  const CodecView codec_;
  const CodeWords::Forms& words_;
  const bool by_norm_;
  HostArray<float> moved_;  // a query of length 1
  double largest_level_ = 0;
};

}  // namespace

std::unique_ptr<ListProduct> make_table_list_product(const ListTables& tables, const ListProductShape& shape,
                                                     const Resources& resources) {
  return std::make_unique<TableListProduct>(tables, shape, resources);
}

bool has_sum_tables(const CodeFormat& format, KeyKind kind) {
  if (!format.adds_codewords() || kind == KeyKind::cosine) return false;
  if (format.has_norm()) return format.bits == 8;
  return kind == KeyKind::inner_product && format.bits >= 4;
}

bool has_sum_terms(const CodeFormat& format, KeyKind kind) {
  if (!format.adds_codewords() || format.bits < 4 || (format.has_norm() && format.bits != 8)) return false;
  return kind == KeyKind::cosine || (has_differences(kind) && !format.has_norm());
}

CodeFormat sum_table_format(const CodeFormat& format) {
  if (format.has_levels()) return CodeFormat::of_parts(format.cols, format.bits, format.parts + 1);
  CodeFormat parts = CodeFormat::of_parts(format.cols, format.bits, format.parts);
  parts.norm = format.norm;
  return parts;
}

std::unique_ptr<ListProduct> make_sum_list_product(const ListTables& tables, const ListProductShape& shape,
                                                   const Resources& resources) {
  return std::make_unique<SumListProduct>(tables, shape, resources);
}

}  // namespace kith
