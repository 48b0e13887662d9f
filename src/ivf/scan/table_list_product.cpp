// A piece of a list of product codes by lookup tables, for few queries: the vectors are not decoded.
//
// Tables of residuals are of q - c; what the index holds is c + r rounded to f32, which tile_list_product.cpp bounds.
#include "core/infinity.hpp"
#include "ivf/scan/code_table_scan.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"

#include <cmath>

namespace kith {
namespace {

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

}  // namespace

std::unique_ptr<ListProduct> make_table_list_product(const ListTables& tables, const ListProductShape& shape,
                                                     const Resources& resources) {
  return std::make_unique<TableListProduct>(tables, shape, resources);
}

}  // namespace kith
