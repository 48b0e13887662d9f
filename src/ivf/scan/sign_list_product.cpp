// A piece of a list of sign codes (kernels/codes/sign_code.hpp) by lookup tables, for few queries and many: nothing is
// decoded. With x = b + y, b the centres and y = m times the signs,
//
//   |q|^2 - 2 q x + norm = |q|^2 - 2 q b + (norm + m T),    T = -2 sum sign_j q_j
//   -q x                 = -q b + m T,                      T = -sum sign_j q_j
//
// Four signs are a part of 4 bits, as product codes have them: T is a sum of table entries, the same tables in every
// list. The 8 bytes behind the signs are parts too, whose entries are zeros.
//
// Bounds: |T| is at most 2 |q| root(cols), an entry is rounded thrice and a sum once for every fourth part; the held
// vector is rounded where the two centres are added.
#include "ivf/scan/code_table_scan.hpp"
#include "kernels/codes/sign_code.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kPartCols = 4;

class SignListProduct final : public CodeTableScan {
 public:
  SignListProduct(const ListTables& tables, const ListProductShape& shape, const Resources& resources)
      : CodeTableScan(own_table_format(tables.model().codec->format()), false, Terms::scaled, shape, resources),
        tables_(tables),
        codec_(tables.model().codec->view()),
        by_norm_(has_differences(tables.kind())) {}

  void load_queries(const float* queries, const double*, const ListQueries* lists, int64_t count) override {
    start_lists();
    const int64_t cols = codec_.format.cols;
    const double own_norm = std::sqrt(canonical_squared_norm_cpu(codec_.codewords, cols));
    for (int64_t l = 0; l < count; ++l) {
      const ListQueries& of_list = lists[l];
      const float* const centre = tables_.model().base_of(of_list.list);
      const double centre_norm =
          own_norm + (centre == nullptr ? 0.0 : std::sqrt(canonical_squared_norm_cpu(centre, cols)));
      for (int64_t i = 0; i < of_list.count; ++i) {
        const float* const query = queries + of_list.numbers[i] * cols;
        Loaded& one = loaded(loaded_count() + i);
        one.table = table_of(of_list.numbers[i], [&](float* table) { fill(query, table); });
        double products[2] = {};  // with both centres
        canonical_products_cpu(query, codec_.codewords, 1, cols, products);
        if (centre != nullptr) canonical_products_cpu(query, centre, 1, cols, products + 1);
        const double product = products[0] + products[1];
        const double squared = canonical_squared_norm_cpu(query, cols);
        one.offset = static_cast<float>(by_norm_ ? squared - 2 * product : -product);
        set_errors(squared, centre_norm, one);
      }
      end_list(of_list.count);
    }
  }

 private:
  void read_scales(const uint8_t* codes, int64_t count, float* scales, float* shifts) const override {
    const CodeFormat& format = codec_.format;
    const int64_t bytes = format.bytes();
    const uint8_t* step = codes + sign_step_at(format);
    for (int64_t i = 0; i < count; ++i, step += bytes) std::memcpy(scales + i, step, sizeof(float));
    std::fill_n(shifts, by_norm_ ? 0 : count, 0.0f);
    const uint8_t* norm = codes + format.norm_at() / 8;  // whole bytes, too
    for (int64_t i = 0; by_norm_ && i < count; ++i, norm += bytes) std::memcpy(shifts + i, norm, sizeof(float));
  }

  void fill(const float* query, float* entries) const {
    const int64_t cols = codec_.format.cols;
    const float factor = by_norm_ ? -2.0f : -1.0f;
    for (int64_t first = 0, part = 0; part < format().parts; ++part, first += kPartCols, entries += 16) {
      float q[kPartCols] = {};
      for (int64_t c = 0; c < kPartCols && first + c < cols; ++c) q[c] = factor * query[first + c];
      const float low[4] = {-q[0] - q[1], q[0] - q[1], q[1] - q[0], q[0] + q[1]};
      const float high[4] = {-q[2] - q[3], q[2] - q[3], q[3] - q[2], q[2] + q[3]};
      for (int n = 0; n < 16; ++n) entries[n] = low[n % 4] + high[n / 4];
    }
  }

  void set_errors(double squared, double centre_norm, Loaded& one) const {
    one.constant = 0;
    const double a = std::sqrt(squared);
    const double all = a + centre_norm;
    if (!(all * all < kLargestSquaredNorm)) {
      one.error = one.tilt = kInfinity;
      return;
    }
    const double scale = by_norm_ ? 2 : 1;
    const double u = kUnitRoundoff;
    const double root = std::sqrt(static_cast<double>(codec_.format.cols));
    const double lost = underflow_error(codec_.format.cols);
    const double sums = static_cast<double>(format().parts) / 4 + 16;
    one.tilt = static_cast<float>((u * sums * scale * a * root + lost) * 1.05);
    one.error = static_cast<float>((u * (8 * scale * a * centre_norm + 4 * squared) + lost) * 1.05);
  }

  const ListTables& tables_;
  const CodecView codec_;
  const bool by_norm_;
};

}  // namespace

bool has_own_tables(const CodeFormat& format, KeyKind kind) {
  return format.has_signs() && (has_differences(kind) || kind == KeyKind::inner_product);
}

CodeFormat own_table_format(const CodeFormat& format) {
  const int64_t parts = format.bytes() * 2;
  return CodeFormat::of_parts(parts * kPartCols, 4, parts);
}

std::unique_ptr<ListProduct> make_own_list_product(const ListTables& tables, const ListProductShape& shape,
                                                    const Resources& resources) {
  return std::make_unique<SignListProduct>(tables, shape, resources);
}

}  // namespace kith
