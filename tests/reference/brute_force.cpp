#include "reference/brute_force.hpp"

namespace kith::reference {

std::vector<uint32_t> kept_rows(const RowFilter& filter, int64_t rows) {
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < rows; ++i) {
    bool keep = true;
    const auto* bytes = static_cast<const uint8_t*>(filter.data());
    if (filter.form() == RowFilter::Form::mask) keep = bytes[i] != 0;
    if (filter.form() == RowFilter::Form::bits) keep = bytes[i / 8] >> (i % 8) & 1;
    if (filter.form() == RowFilter::Form::rows) {
      const auto* ids = static_cast<const int64_t*>(filter.data());
      keep = std::find(ids, ids + filter.size(), i) != ids + filter.size();
    }
    if (keep) kept.push_back(static_cast<uint32_t>(i));
  }
  return kept;
}

Result knn_of_floats(const Matrix<float>& queries, const Matrix<float>& base, const KnnParams& params) {
  Result result;
  const std::vector<uint32_t> rows = kept_rows(params.filter, base.rows);
  const float nothing = params.metric == Metric::inner_product ? -INFINITY : INFINITY;
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<uint64_t> all;
    for (const uint32_t i : rows) {
      const float key = canonical(params.metric, queries.row(q), base.row(i), base.cols);
      all.push_back(pack_neighbor(ordered_key(key), i));
    }
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < params.k; ++i) {
      if (i >= static_cast<int64_t>(rows.size())) {
        result.ids.push_back(-1);
        result.distances.push_back(nothing);
        continue;
      }
      const uint64_t neighbor = all[static_cast<size_t>(i)];
      const float key = key_of_ordered(ordered_of(neighbor));
      result.ids.push_back(row_of(neighbor));
      result.distances.push_back(params.metric == Metric::inner_product ? 0.0f - key : key);
    }
  }
  return result;
}

RangeResult range_search_of_floats(const Matrix<float>& queries, const Matrix<float>& base, const RangeParams& params) {
  const Result all = knn_of_floats(queries, base, {base.rows, params.metric, params.check_finite, params.filter});
  RangeResult result;
  result.offsets.push_back(0);
  for (int64_t i = 0; i < queries.rows * base.rows; ++i) {
    const auto at = static_cast<size_t>(i);
    const float distance = all.distances[at];
    const bool inside = params.metric == Metric::inner_product ? distance >= params.radius : distance <= params.radius;
    if (inside && all.ids[at] >= 0) {
      result.ids.push_back(all.ids[at]);
      result.distances.push_back(distance);
    }
    if ((i + 1) % base.rows == 0) result.offsets.push_back(static_cast<int64_t>(result.ids.size()));
  }
  return result;
}

}  // namespace kith::reference
