#include "ivf/scan/code_table_scan.hpp"

#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/code_screen.hpp"
#include "kernels/select/smallest_values.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kith {

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

void CodeTableScan::load_rows(const uint8_t* codes, int64_t count) {
  codes_ = codes;
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
  norm_error_ = sure ? static_cast<float>(1.01 * static_cast<double>(format_.parts + 4) * kUnitRoundoff * most_norm_)
                     : kInfinity;
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

}  // namespace kith
