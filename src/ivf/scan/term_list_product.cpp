// A piece of a list of product codes by one table a query, the same in every list: what a list adds to it is a number
// for each vector, kept beside the codes (list_screen.hpp). With x = c + r, r made of codewords, and m a mean of the
// centres,
//
//   |q - x|^2 = |q - c|^2 - 2 (q - m) r + t,    t = |r|^2 + 2 (c - m) r
//   -q x      = -q c - q r
//   cosine    = 1 + (-q c - q r) / |x|          with q of length 1
//
// Bounds: with L the length of the longest r, A = |q - m| (or |q|), D = |q - c|, and d <= u (|c| + L) what the rounding
// of the held x adds, entries are within product_error of 2 A L together, sums within (parts + 5) u of all that is
// added, and the held vector's distance within 2 (D + L) d + d^2.
#include "ivf/scan/code_table_scan.hpp"
#include "ivf/scan/list_screen.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"

#include <cmath>

namespace kith {
namespace {

class TermListProduct final : public CodeTableScan {
 public:
  TermListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : CodeTableScan(tables.model().codec->format(), false, terms_of(tables), shape, resources),
        tables_(tables),
        words_(*tables.words()),
        cols_(format().cols),
        differences_(has_differences(tables.kind())),
        moved_(cols_, "lookup tables", resources),
        lengths_(static_cast<size_t>(shape.table_queries), 0.0) {}

  void load_queries(const float* queries, const double* inverse_norms, const ListQueries* lists,
                    int64_t count) override {
    start_lists();
    for (int64_t l = 0; l < count; ++l) {
      const ListQueries& of_list = lists[l];
      const float* const centre = tables_.model().base_of(of_list.list);
      for (int64_t i = 0; i < of_list.count; ++i) {
        const int64_t number = of_list.numbers[i];
        const bool cosine = tables_.kind() == KeyKind::cosine;
        load_query(queries + number * cols_, cosine ? inverse_norms[number] : 1.0, centre, of_list.numbers[i],
                   loaded(loaded_count() + i));
      }
      end_list(of_list.count);
    }
  }

 private:
  static Terms terms_of(const ListTables& tables) {
    if (tables.kind() == KeyKind::cosine) return Terms::divisors;
    return has_differences(tables.kind()) ? Terms::added : Terms::none;
  }

  void load_query(const float* query, double inverse, const float* centre, uint32_t number, Loaded& one) {
    const ReusedVector<float>& mean = tables_.mean();
    one.table = table_of(number, [&](float* table) { fill(query, inverse, mean, table); });
    const double moved = lengths_[static_cast<size_t>(one.table)];  // A^2
    double apart = moved;                                           // D^2
    double product = 0;                                             // q c
    double centres = 0;
    if (centre != nullptr) {
      centres = canonical_squared_norm_cpu(centre, cols_);
      if (differences_) {
        const uint32_t row = 0;
        float key = 0;
        canonical_keys_cpu(KeyKind::squared_l2, {query, 0}, MatrixView(centre, 1, cols_), &row, 1, &key);
        apart = static_cast<double>(key);
      } else {
        canonical_products_cpu(query, centre, 1, cols_, &product);
        product *= inverse;
      }
    }
    one.tilt = one.constant = 0;
    const double a = std::sqrt(moved);
    const double largest = words_.largest;
    const double centre_norm = std::sqrt(centres);
    const double all = a + largest + centre_norm + std::sqrt(apart * 1.001);
    if (!(all * all < kLargestSquaredNorm)) {
      one.offset = 0;
      one.error = one.tilt = kInfinity;
      return;
    }
    const double u = kUnitRoundoff;
    const double held = 1.01 * u * (centre_norm + largest);
    const double scale = differences_ ? 2 : 1;
    const double parts = static_cast<double>(format().parts) + 5;
    double error = scale * a * largest * (product_error(sum_roundings(format().part_cols())) + parts * u) +
                   static_cast<double>(format().parts) * underflow_error(format().part_cols());
    if (differences_) {
      const double far = 1.001 * std::sqrt(apart) + largest;
      const double from_mean = a + std::sqrt(apart);  // at least |c - m|
      error +=
          parts * u * (largest * largest + 2 * from_mean * largest) + 4 * u * far * far + 2 * far * held + held * held;
      one.offset = static_cast<float>(apart);
    } else {
      error += 4 * u * a * (centre_norm + largest) + a * held;
      one.offset = static_cast<float>(-product);
    }
    one.error = static_cast<float>(error * 1.01);
    if (tables_.kind() != KeyKind::cosine) return;
    one.tilt = one.error;
    one.constant = one.offset;
    one.offset = 1;
    one.error = static_cast<float>(32 * u);
  }

  void fill(const float* query, double inverse, const ReusedVector<float>& mean, float* entries) {
    for (int64_t c = 0; c < cols_; ++c) {
      const auto q = static_cast<double>(query[c]) * inverse;
      moved_[c] = static_cast<float>(differences_ ? q - static_cast<double>(mean[static_cast<size_t>(c)]) : q);
    }
    const float* const asked = moved_.data();
    fill_code_tables(format(), {words_.columns.data(), nullptr}, &asked, 1, differences_ ? -2.0f : -1.0f, &entries);
    lengths_[static_cast<size_t>((entries - table(0)) / this->entries())] =
        canonical_squared_norm_cpu(moved_.data(), cols_) * 1.001;
  }

  const ListTables& tables_;
  const CodeWords::Forms& words_;
  const int64_t cols_;
  const bool differences_;
  HostArray<float> moved_;       // a query minus the mean
  ReusedVector<double> lengths_;  // A^2 of each table's query
};

}  // namespace

std::unique_ptr<ListProduct> make_term_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources) {
  return std::make_unique<TermListProduct>(tables, shape, resources);
}

}  // namespace kith
