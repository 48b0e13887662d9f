// Pieces of lists by lookup tables, for few queries: of product codes, and of sums of codewords.
#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "ivf/scan/list_product.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/select/smallest_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace kith {

namespace {

// A piece of a list by lookup tables, whatever they are of: sums of a table's entries, after a screen of tables rounded
// to bytes where the processor has one (kernels/lists/code_screen.hpp). Who derives from it fills the tables.
//
// A norm that codes hold as a number, behind their parts, has no table: it is added to the sum. What the parts add up
// to is then at most the limit less the least norm of the piece.
class CodeTableScan : public ListProduct {
 public:
  // `format`: parts of codes, as product codes have them, each with a table of 2^bits entries. `adds_norms`: those that
  // lie behind the parts, as numbers.
  CodeTableScan(const CodeFormat& format, bool adds_norms, const ListProductShape& shape, const Resources& resources);

  void use_list(int64_t list) final { first_ = firsts_[static_cast<size_t>(list)]; }
  void load_rows(const ListRows& rows) final;
  float offset(int64_t query) const final { return loaded_[first_ + query].offset; }
  float error(int64_t query) const final { return error_of(first_ + query); }
  void scan(int64_t group, int64_t count, const float* limits, ListHits& hits) final;

 protected:
  // A query in a list.
  struct Loaded {
    float offset = 0;
    float error = 0;  // without what norms that are added bring
    int64_t table = 0;
  };

  const CodeFormat& format() const { return format_; }
  int64_t entries() const { return format_.parts * format_.codewords(); }  // of a table
  float* table(int64_t i) const { return sums_.data() + i * entries(); }
  // Once a table is filled.
  void round_table(int64_t i);
  // The lists of a call begin; and each with so many queries.
  void start_lists();
  Loaded& loaded(int64_t i) const { return loaded_[i]; }
  int64_t loaded_count() const { return firsts_.back(); }
  void end_list(int64_t queries) { firsts_.push_back(firsts_.back() + queries); }

 private:
  float norm_of(int64_t row) const;
  float error_of(int64_t query) const { return loaded_[query].error + norm_error_; }
  double most_steps(int64_t query, float limit, const ListHits& hits);
  void add_up(int64_t query, float limit, int64_t count, int64_t place, ListHits& hits) const;
  const uint8_t* bytes(int64_t query) const { return bytes_.data() + loaded_[query].table * table_bytes_; }

  const CodeFormat format_;
  const bool adds_norms_;
  const int64_t table_bytes_;
  const bool screens_;
  bool cleared_ = false;  // the tables rounded to bytes, whose last ones stay zeros
  HostArray<float> sums_;
  HostArray<uint8_t> bytes_;
  HostArray<ByteTables> rounded_;
  HostArray<Loaded> loaded_;
  HostArray<uint16_t> steps_;
  HostArray<float> values_;            // the same
  std::vector<int64_t> firsts_ = {0};  // of each list's queries; the end of the last
  int64_t first_ = 0;                  // of the list in use
  const uint8_t* codes_ = nullptr;
  int64_t rows_ = 0;
  // Of the norms of the vectors loaded: 0 where none are added.
  double least_norm_ = 0;
  double most_norm_ = 0;
  float norm_error_ = 0;
};

CodeTableScan::CodeTableScan(const CodeFormat& format, bool adds_norms, const ListProductShape& shape,
                             const Resources& resources)
    : format_(format),
      adds_norms_(adds_norms),
      table_bytes_(screen_table_bytes(format)),
      screens_(has_code_screen(format, cpu_extensions())),
      sums_(shape.table_queries * entries(), "lookup tables", resources),
      bytes_(shape.table_queries * table_bytes_, "lookup tables", resources),
      rounded_(shape.table_queries, "lookup tables", resources),
      loaded_(shape.table_queries, "lookup tables", resources),
      steps_(round_up(shape.piece_rows, kColumnVectors), "sums of codes", resources),
      values_(shape.piece_rows, "sums of codes", resources) {}

void CodeTableScan::round_table(int64_t i) {
  if (screens_) rounded_[i] = round_code_tables(format_, table(i), bytes_.data() + i * table_bytes_);
}

float CodeTableScan::norm_of(int64_t row) const {
  if (!adds_norms_) return 0;
  float norm;  // behind whole bytes
  std::memcpy(&norm, codes_ + row * format_.bytes() + format_.parts, sizeof norm);
  return norm;
}

void CodeTableScan::load_rows(const ListRows& rows) {
  const int64_t count = rows.count;
  codes_ = rows.codes;
  rows_ = count;
  if (!adds_norms_) return;
  least_norm_ = kInfinity;
  most_norm_ = 0;
  bool sure = true;
  for (int64_t i = 0; i < count; ++i) {
    const auto norm = static_cast<double>(norm_of(i));
    least_norm_ = std::min(least_norm_, norm);
    most_norm_ = std::max(most_norm_, norm);
    sure = sure && norm >= 0 && norm < kLargestSquaredNorm;
  }
  // A norm takes part in as many roundings as a part's entry.
  norm_error_ =
      sure ? static_cast<float>(1.01 * static_cast<double>(format_.parts + 4) * kUnitRoundoff * most_norm_) : kInfinity;
}

void CodeTableScan::start_lists() {
  if (!cleared_) {
    std::fill(bytes_.begin(), bytes_.end(), uint8_t{0});
    std::fill(rounded_.begin(), rounded_.end(), ByteTables());
    cleared_ = true;
  }
  firsts_.assign(1, 0);
  first_ = 0;
}

void CodeTableScan::scan(int64_t group, int64_t count, const float* limits, ListHits& hits) {
  const int64_t first = first_ + group;
  ScreenQuery screened[kHitQueries];
  int64_t numbers[kHitQueries];
  int64_t screened_count = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t* const rows = hits.rows + i * hits.stride;
    const double most = most_steps(first + i, limits[i], hits);
    hits.counts[i] = 0;
    if (most < 0) continue;  // a lower bound of all is above the limit
    if (most == kInfinity) {
      std::iota(rows, rows + rows_, 0u);
      add_up(first + i, limits[i], rows_, i, hits);
      continue;
    }
    numbers[screened_count] = i;
    screened[screened_count++] = {bytes(first + i), static_cast<uint16_t>(std::min(most, 65535.0)), rows, 0};
  }
  screen_codes(format_, codes_, rows_, screened, screened_count);
  for (int64_t j = 0; j < screened_count; ++j) {
    add_up(first + numbers[j], limits[numbers[j]], screened[j].found, numbers[j], hits);
  }
}

// Steps of bytes that a value within the limit has at most. Infinite where bytes exclude nothing.
double CodeTableScan::most_steps(int64_t query, float limit, const ListHits& hits) {
  const float error = error_of(query);
  const ByteTables& rounded = rounded_[loaded_[query].table];
  if (!screens_ || !(rounded.step > 0) || !(error < kInfinity)) return kInfinity;
  const float most = limit + error;
  // One more for the roundings of this line.
  if (most < kInfinity) {
    return (static_cast<double>(most) - rounded.least - least_norm_) / rounded.step * (1 + 0x1p-40) + 1;
  }
  if (!has_code_sums(format_) || hits.enough <= 0 || rows_ < 2 * hits.enough) return kInfinity;
  // Nothing is known yet. Each part of a sum is less than a step above its byte: so many vectors as are enough have
  // values below their steps and one for each part, and keys within the error of these. Norms are apart by so much.
  sum_codes(format_, codes_, rows_, bytes(query), steps_.data());
  for (int64_t i = 0; i < rows_; ++i) values_[i] = static_cast<float>(steps_[i]);
  return static_cast<double>(rank_value(values_.data(), rows_, hits.enough)) + static_cast<double>(format_.parts) + 2 +
         (2 * static_cast<double>(error) + most_norm_ - least_norm_) / rounded.step * (1 + 0x1p-40);
}

// The values of the first `count` rows of a query's hits, of which those within the limit stay.
void CodeTableScan::add_up(int64_t query, float limit, int64_t count, int64_t place, ListHits& hits) const {
  float* const values = hits.values + place * hits.stride;
  uint32_t* const rows = hits.rows + place * hits.stride;
  const float* const sums = table(loaded_[query].table);
  const int64_t code_bytes = format_.bytes();
  for (int64_t i = 0; i < count; ++i) values[i] = sum_code_tables(format_, sums, codes_ + rows[i] * code_bytes);
  for (int64_t i = 0; adds_norms_ && i < count; ++i) values[i] += norm_of(rows[i]);
  hits.counts[place] = keep_up_to(limit + error_of(query), values, rows, count);
}

// A piece of a list of product codes by lookup tables, for few queries: the vectors are not decoded.
//
// Tables of residuals are of q - c; what the index holds is c + r rounded to f32, which tile_list_product.cpp bounds.
class TableListProduct final : public CodeTableScan {
 public:
  TableListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : CodeTableScan(tables.model().codec->format(), false, shape, resources),
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
  const float* load_query(const float* query, int64_t list, double centre_norm, int64_t place, Loaded& facts) {
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
    facts.offset = differences ? static_cast<float>(squared) : key;
    facts.error = error_of(squared, centre_norm, std::abs(key));
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
  HostArray<float> moved_;  // queries less their centres, which wait for their tables
};

constexpr int64_t kNobody = -1;

// A piece of a list of additive codes by lookup tables, for few queries: m lookups, and one for the norm, where
// decoding would add up m codewords.
//
//   |q|^2 - 2 q x + norm   with x = c + sum of codewords: tables have -2 q w, the norm's table its levels
//   -q x                   tables have -q w
//
// A query's tables are the same in every list; they stay while it is searched. To a lookup an additive code of 8 bits a
// book is a product code of as many parts, with its byte for the norm a further one; a norm of 4 bytes is added as it
// is. Codes without a norm have none for distances, which need it of every vector.
//
// Bounds: with S the sum of the books' longest codewords, all that is added up is at most 2 |q| S and the norm. An
// entry is a sum of `cols` products; a held vector is rounded once for every book and once for its centre.
class SumListProduct final : public CodeTableScan {
 public:
  SumListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : CodeTableScan(sum_table_format(tables.model().codec->format()),
                      tables.model().codec->format().norm == CodeNorm::float32 && has_differences(tables.kind()), shape,
                      resources),
        tables_(tables),
        codec_(tables.model().codec->view()),
        words_(*tables.words()),
        by_norm_(has_differences(tables.kind())),
        owners_(static_cast<size_t>(shape.table_queries), kNobody),
        used_(static_cast<size_t>(shape.table_queries), 0) {
    if (!codec_.format.has_levels()) return;
    for (int64_t i = 0; i < kNormLevels; ++i) {
      largest_level_ = std::max(largest_level_, std::abs(static_cast<double>(codec_.levels[i])));
    }
  }

  void load_queries(const float* queries, const double*, const ListQueries* lists, int64_t count) override {
    start_lists();
    ++call_;
    for (int64_t l = 0; l < count; ++l) {
      const ListQueries& of_list = lists[l];
      const float* const centre = tables_.model().base_of(of_list.list);
      const double centre_norm =
          centre == nullptr ? 0.0 : std::sqrt(canonical_squared_norm_cpu(centre, codec_.format.cols));
      for (int64_t i = 0; i < of_list.count; ++i) {
        const float* const query = queries + of_list.numbers[i] * codec_.format.cols;
        Loaded& one = loaded(loaded_count() + i);
        one.table = table_of(of_list.numbers[i], query);
        double product = 0;  // q c
        if (centre != nullptr) canonical_products_cpu(query, centre, 1, codec_.format.cols, &product);
        const double squared = canonical_squared_norm_cpu(query, codec_.format.cols);
        one.offset = static_cast<float>(by_norm_ ? squared - 2 * product : -product);
        one.error = error_of(squared, centre_norm);
      }
      end_list(of_list.count);
    }
  }

 private:
  // The table of a query of the batch, made where there is none; those of this call stay.
  int64_t table_of(uint32_t number, const float* query) {
    const auto there = std::find(owners_.begin(), owners_.end(), int64_t{number});
    auto at = static_cast<size_t>(there - owners_.begin());
    if (there == owners_.end()) {
      at = static_cast<size_t>(std::min_element(used_.begin(), used_.end()) - used_.begin());
      owners_[at] = number;
      fill(query, table(static_cast<int64_t>(at)));
      round_table(static_cast<int64_t>(at));
    }
    used_[at] = call_;
    return static_cast<int64_t>(at);
  }

  void fill(const float* query, float* entries) const {
    const CodeFormat& own = codec_.format;
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
    const double norm = by_norm_ ? largest_level_ : 0.0;
    const double all = a + longest + centre_norm;
    if (!(all * all < kLargestSquaredNorm && norm < kLargestSquaredNorm)) return std::numeric_limits<float>::infinity();
    const auto books = static_cast<double>(codec_.format.parts);
    const double entries = scale * a * longest * product_error(sum_roundings(codec_.format.cols));
    const double sums = (books + 4) * kUnitRoundoff * (scale * a * (longest + centre_norm) + norm + squared);
    const double held = scale * a * (books + 1) * 1.01 * kUnitRoundoff * (longest + centre_norm);
    return static_cast<float>((entries + sums + held + books * underflow_error(codec_.format.cols)) * 1.01);
  }

  const ListTables& tables_;
  const CodecView codec_;
  const CodeWords::Forms& words_;
  const bool by_norm_;
  double largest_level_ = 0;
  std::vector<int64_t> owners_;  // of the tables: queries of the batch
  std::vector<int64_t> used_;    // when each was last wanted
  int64_t call_ = 0;
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
