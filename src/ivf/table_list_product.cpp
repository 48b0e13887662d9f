// A piece of a list of product codes by lookup tables, for few queries: the vectors are not decoded.
//
// Tables of residuals are of q - c; what the index holds is c + r rounded to f32, which tile_list_product.cpp bounds.
#include "core/cpu_target.hpp"
#include "ivf/list_product.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/lists/rank_value.hpp"
#include "kernels/panels/instruction_family.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct QueryFacts {
  float offset;
  float error;
  ByteTables rounded;
};

class TableListProduct final : public ListProduct {
 public:
  TableListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : tables_(tables),
        words_(*tables.words()),
        format_(tables.model().codec->format()),
        cols_(format_.cols),
        entries_(format_.parts * format_.codewords()),
        table_bytes_(screen_table_bytes(format_)),
        by_residual_(tables.model().residual),
        screens_(has_code_screen(format_, cpu_extensions())),
        sums_(shape.table_queries * entries_, "lookup tables", resources),
        bytes_(shape.table_queries * table_bytes_, "lookup tables", resources),
        facts_(shape.table_queries, "lookup tables", resources),
        moved_(kTablesTogether * cols_, "lookup tables", resources),
        steps_(round_up(shape.piece_rows, kColumnVectors), "sums of codes", resources),
        values_(shape.piece_rows, "sums of codes", resources) {
    std::fill(bytes_.begin(), bytes_.end(), uint8_t{0});
  }

  void load_queries(const float* queries, const double*, const ListQueries* lists, int64_t count) override {
    firsts_.assign(1, 0);
    const float* asked[kTablesTogether] = {};
    float* tables[kTablesTogether] = {};
    int64_t waiting = 0;  // for their tables
    for (int64_t l = 0; l < count; ++l) {
      const ListQueries& of_list = lists[l];
      const double centre_norm =
          by_residual_ ? std::sqrt(canonical_squared_norm_cpu(tables_.model().centre(of_list.list), cols_)) : 0.0;
      for (int64_t i = 0; i < of_list.count; ++i) {
        const int64_t at = firsts_.back() + i;
        asked[waiting] =
            load_query(queries + of_list.numbers[i] * cols_, of_list.list, centre_norm, waiting, facts_[at]);
        tables[waiting++] = sums_.data() + at * entries_;
        if (waiting == kTablesTogether) fill(asked, tables, &waiting);
      }
      firsts_.push_back(firsts_.back() + of_list.count);
    }
    fill(asked, tables, &waiting);
    if (screens_) {
      for (int64_t i = 0; i < firsts_.back(); ++i) {
        facts_[i].rounded = round_code_tables(format_, sums_.data() + i * entries_, bytes_.data() + i * table_bytes_);
      }
    }
    first_ = 0;
  }

  void use_list(int64_t list) override { first_ = firsts_[static_cast<size_t>(list)]; }

  void load_rows(const uint8_t* codes, int64_t count) override {
    codes_ = codes;
    rows_ = count;
  }
  float offset(int64_t query) const override { return facts_[first_ + query].offset; }
  float error(int64_t query) const override { return facts_[first_ + query].error; }

  void scan(int64_t group, int64_t count, const float* limits, ListHits& hits) override {
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
      screened[screened_count++] = {bytes_.data() + (first + i) * table_bytes_,
                                    static_cast<uint16_t>(std::min(most, 65535.0)), rows, 0};
    }
    screen_codes(format_, codes_, rows_, screened, screened_count);
    for (int64_t j = 0; j < screened_count; ++j) {
      add_up(first + numbers[j], limits[numbers[j]], screened[j].found, numbers[j], hits);
    }
  }

 private:
  // What is looked up for a query in a list: the query itself, or what is left of it, kept in a place.
  const float* load_query(const float* query, int64_t list, double centre_norm, int64_t place, QueryFacts& facts) {
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
    facts = {differences ? static_cast<float>(squared) : key, error_of(squared, centre_norm, std::abs(key)), {}};
    return query;
  }

  void fill(const float* const* queries, float* const* tables, int64_t* count) const {
    const bool differences = has_differences(tables_.kind());
    fill_code_tables(format_, {words_.columns.data(), differences ? words_.squares.data() : nullptr}, queries, *count,
                     differences ? -2.0f : -1.0f, tables);
    *count = 0;
  }

  // Steps of bytes that a value within the limit has at most. Infinite where bytes exclude nothing.
  double most_steps(int64_t query, float limit, const ListHits& hits) {
    const QueryFacts& facts = facts_[query];
    const ByteTables& rounded = facts.rounded;
    if (!(rounded.step > 0) || !(facts.error < kInfinity)) return kInfinity;
    const float most = limit + facts.error;
    // One more for the roundings of this line.
    if (most < kInfinity) return (static_cast<double>(most) - rounded.least) / rounded.step * (1 + 0x1p-40) + 1;
    if (!has_code_sums(format_) || hits.enough <= 0 || rows_ < 2 * hits.enough) return kInfinity;
    // Nothing is known yet. Each part of a sum is less than a step above its byte: so many vectors as are enough have
    // values below their steps and one for each part, and keys within the error of these.
    sum_codes(format_, codes_, rows_, bytes_.data() + query * table_bytes_, steps_.data());
    for (int64_t i = 0; i < rows_; ++i) values_[i] = static_cast<float>(steps_[i]);
    return static_cast<double>(rank_value(values_.data(), rows_, hits.enough)) + static_cast<double>(format_.parts) +
           2 + 2 * static_cast<double>(facts.error) / rounded.step * (1 + 0x1p-40);
  }

  // The values of the first `count` rows of a query's hits, of which those within the limit stay.
  void add_up(int64_t query, float limit, int64_t count, int64_t place, ListHits& hits) const {
    float* const values = hits.values + place * hits.stride;
    uint32_t* const rows = hits.rows + place * hits.stride;
    const float* const sums = sums_.data() + query * entries_;
    const int64_t code_bytes = format_.bytes();
    for (int64_t i = 0; i < count; ++i) values[i] = sum_code_tables(format_, sums, codes_ + rows[i] * code_bytes);
    hits.counts[place] = keep_up_to(limit + facts_[query].error, values, rows, count);
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
  const CodeFormat format_;
  const int64_t cols_;
  const int64_t entries_;      // of a query's tables
  const int64_t table_bytes_;  // of the same rounded to bytes
  const bool by_residual_;
  const bool screens_;
  HostArray<float> sums_;
  HostArray<uint8_t> bytes_;
  HostArray<QueryFacts> facts_;
  HostArray<float> moved_;  // queries less their centres, which wait for their tables
  HostArray<uint16_t> steps_;
  HostArray<float> values_;            // the same
  std::vector<int64_t> firsts_ = {0};  // of each list's queries; the end of the last
  int64_t first_ = 0;                  // of the list in use
  const uint8_t* codes_ = nullptr;
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<ListProduct> make_table_list_product(const ListTables& tables, const ListProductShape& shape,
                                                     const Resources& resources) {
  return std::make_unique<TableListProduct>(tables, shape, resources);
}

int64_t table_list_product_bytes(const ListProductShape& shape, const CodeFormat& format) {
  const int64_t entries = format.parts * format.codewords();
  return shape.table_queries * (array_bytes<float>(entries) + array_bytes<uint8_t>(screen_table_bytes(format)) +
                                static_cast<int64_t>(sizeof(QueryFacts))) +
         array_bytes<float>(kTablesTogether * format.cols + shape.piece_rows) +
         array_bytes<uint16_t>(round_up(shape.piece_rows, kColumnVectors));
}

}  // namespace kith
