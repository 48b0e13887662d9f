// A piece of a list of product codes by lookup tables, for few queries: the vectors are not decoded.
//
// Tables of residuals are of q - c; what the index holds is c + r rounded to f32, which tile_list_product.cpp bounds.
#include "core/cpu_target.hpp"
#include "ivf/list_product.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
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
        looks_up_bytes_(cpu_extensions().vbmi && format_.bits == 8 && format_.parts <= kMostByteParts),
        sums_(shape.few_queries * entries_, "lookup tables", resources),
        bytes_(shape.few_queries * entries_, "lookup tables", resources),
        facts_(shape.few_queries, "lookup tables", resources),
        moved_(cols_, "lookup tables", resources) {}

  void load_queries(const float* queries, const double*, const uint32_t* numbers, int64_t count,
                    int64_t list) override {
    const bool differences = has_differences(tables_.kind());
    const bool residual = tables_.model().residual;
    const float* const centre = residual ? tables_.model().centre(list) : nullptr;
    const double centre_norm = residual ? std::sqrt(canonical_squared_norm_cpu(centre, cols_)) : 0.0;
    for (int64_t i = 0; i < count; ++i) {
      const float* query = queries + numbers[i] * cols_;
      float key = 0;  // -q c
      if (residual && differences) {
        for (int64_t c = 0; c < cols_; ++c) moved_[c] = query[c] - centre[c];
        query = moved_.data();
      } else if (residual) {
        const uint32_t row = 0;
        canonical_keys_cpu(KeyKind::inner_product, {query, 0}, MatrixView(centre, 1, cols_), &row, 1, &key);
      }
      const double squared = canonical_squared_norm_cpu(query, cols_);
      float* const sums = sums_.data() + i * entries_;
      fill_code_tables(format_, {words_.columns.data(), differences ? words_.squares.data() : nullptr}, query,
                       differences ? -2.0f : -1.0f, sums);
      facts_[i].offset = differences ? static_cast<float>(squared) : key;
      facts_[i].error = error_of(squared, centre_norm, std::abs(key));
      facts_[i].rounded =
          looks_up_bytes_ ? round_code_tables(format_, sums, bytes_.data() + i * entries_) : ByteTables();
    }
  }

  void load_rows(const uint8_t* codes, int64_t count) override {
    codes_ = codes;
    rows_ = count;
  }
  float offset(int64_t query) const override { return facts_[query].offset; }
  float error(int64_t query) const override { return facts_[query].error; }

  void scan(int64_t first, int64_t count, const float* limits, ListHits& hits) override {
    for (int64_t i = 0; i < count; ++i) {
      const float limit = limits[i] + facts_[first + i].error;
      float* const values = hits.values + i * hits.stride;
      uint32_t* const rows = hits.rows + i * hits.stride;
      if (facts_[first + i].rounded.step > 0 && limit < kInfinity) {
        hits.counts[i] = screen(first + i, limit, values, rows);
        continue;
      }
      sum_code_tables(format_, sums_.data() + (first + i) * entries_, codes_, rows_, values);
      std::iota(rows, rows + rows_, 0u);
      hits.counts[i] = keep_up_to(limit, values, rows, rows_);
    }
  }

 private:
  // The vectors whose bytes do not exclude them, added up.
  int64_t screen([[maybe_unused]] int64_t query, [[maybe_unused]] float limit, [[maybe_unused]] float* values,
                 [[maybe_unused]] uint32_t* rows) const {
#if defined(KITH_X86)
    const ByteTables& rounded = facts_[query].rounded;
    // Steps that a value within the limit has at most; one more for the roundings of this line.
    const double most = (static_cast<double>(limit) - rounded.least) / rounded.step * (1 + 0x1p-40) + 1;
    if (most < 0) return 0;
    const int64_t count = screen_codes_vbmi(format_, bytes_.data() + query * entries_, codes_, rows_,
                                            static_cast<uint16_t>(std::min(most, 65535.0)), rows);
    const float* const sums = sums_.data() + query * entries_;
    const int64_t code_bytes = format_.bytes();
    for (int64_t i = 0; i < count; ++i) values[i] = sum_code_tables(format_, sums, codes_ + rows[i] * code_bytes);
    return keep_up_to(limit, values, rows, count);
#else
    return 0;
#endif
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
  const int64_t entries_;  // of a query's tables
  const bool looks_up_bytes_;
  HostArray<float> sums_;
  HostArray<uint8_t> bytes_;
  HostArray<QueryFacts> facts_;
  HostArray<float> moved_;
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
  return shape.few_queries *
             (entries * static_cast<int64_t>(sizeof(float) + 1) + static_cast<int64_t>(sizeof(QueryFacts))) +
         array_bytes<float>(format.cols);
}

}  // namespace kith
