#include "graph/lists/pairs/chi_square_pairs.hpp"

#include "core/infinity.hpp"
#include "kernels/panels/panel_product.hpp"
#include "kernels/select/set_bytes.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// More than what rounding a key, a limit or their products can change.
constexpr float kRoundingSlack = 0x1p-20f;

}  // namespace

ChiSquarePairs::ChiSquarePairs(const PairRows& rows)
    : all_(rows),
      relative_(relative_error(KeyKind::chi_square, rows.cols())),
      underflow_(static_cast<float>(underflow_error(rows.cols()))) {}

float ChiSquarePairs::largest_value(float key) const {
  const double apart = std::sqrt(static_cast<double>(std::max(key, 0.0f))) + all_.features_error();
  return static_cast<float>(apart * apart) * (1 + kRoundingSlack);
}

void ChiSquarePairs::hand_out(int64_t query, int64_t first_row, const uint8_t* sides, int64_t count,
                              const Limits& limits, PairHits& hits) const {
  const float* near[kMostRowsPerPanel];
  int64_t places[kMostRowsPerPanel];
  float found[kMostRowsPerPanel];
  int64_t passed = 0;
  for_each_set(sides, count, [&](int64_t i) {
    places[passed] = first_row + i;
    near[passed++] = values_of(rows_[first_row + i]);
  });
  if (passed == 0) return;
  chi_square_values_cpu(values_of(queries_[query]), near, passed, all_.cols(), found);
  for (int64_t i = 0; i < passed; ++i) {
    const float lower = below(found[i]);  // a NaN bounds nothing, and passes
    const float row_limit = limits.rows[places[i]];
    const bool for_query = !(lower > limits.query) && limits.query != kNothingMatters;
    const bool for_row = !(lower > row_limit) && row_limit != kNothingMatters;
    if (!for_query && !for_row) continue;
    const float upper = above(found[i]);
    const bool known = std::isfinite(lower) && std::isfinite(upper);
    hits.on_pair({query, places[i], known ? lower : -kInfinity, known ? upper : kInfinity, for_query, for_row});
  }
}

// The distances of the nearest by features bound that of the last one wanted; those of all that may be nearer decide.
bool ChiSquarePairs::pick_first(const Kept& of, int64_t row_count, FirstValues<float>& values, PairFirsts& firsts) {
  const int64_t wanted = std::min(values.wanted(), row_count);
  int64_t count = values.find(of.kept, row_count, values.limit(of.kept, row_count));
  put_distances(of.query, count, values);
  const float most = *std::max_element(values.keys(), values.keys() + count);
  const float limit = largest_value(above(most)) + of.error - of.offset;
  if (!(limit < kInfinity)) return false;
  count = values.find(of.kept, row_count, limit);
  if (count < wanted) return false;
  put_distances(of.query, count, values);
  const float* const distances = values.keys();
  sorted_.assign(distances, distances + count);
  std::nth_element(sorted_.begin(), sorted_.begin() + (wanted - 1), sorted_.end());
  const float last = above(sorted_[static_cast<size_t>(wanted - 1)]);
  int64_t chosen = 0;
  for (int64_t i = 0; i < count; ++i) {
    values.places()[chosen] = values.places()[i];
    chosen += below(distances[i]) <= last ? 1 : 0;
  }
  firsts.on_first(of.query, values.places(), nullptr, chosen);
  return true;
}

const float* ChiSquarePairs::values_of(uint32_t place) const {
  return static_cast<const float*>(all_.view().data()) + int64_t{all_.row_at(place)} * all_.view().row_stride();
}

void ChiSquarePairs::put_distances(int64_t query, int64_t count, FirstValues<float>& values) {
  near_.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) near_[static_cast<size_t>(i)] = values_of(rows_[values.places()[i]]);
  chi_square_values_cpu(values_of(queries_[query]), near_.data(), count, all_.cols(), values.keys());
}

}  // namespace kith
