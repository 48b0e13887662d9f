#include "exact/query_set.hpp"

#include "core/divide.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>

namespace kith {

int64_t QuerySet::bytes_for(int64_t queries, int64_t cols, std::optional<PanelFormat> format, int threads) {
  const int64_t plain = array_bytes<float>(queries * cols) + array_bytes<Norms>(queries);
  if (!format) return plain;
  return plain + PackedQueries::bytes_for(*format, queries, cols) +
         threads * PackedQueries::scratch_bytes(*format, cols);
}

QuerySet::QuerySet(KeyKind kind, int64_t capacity, int64_t cols, std::optional<PanelFormat> format,
                   const Resources& resources)
    : cols_(cols), rows_(capacity * cols, "the queries", resources), norms_(capacity, "the queries' norms", resources) {
  if (!format) return;
  scratch_bytes_ = PackedQueries::scratch_bytes(*format, cols);
  packed_ = PackedQueries(kind, *format, capacity, cols, resources);
}

void QuerySet::load(const MatrixView& queries, bool check_finite, int64_t first_query) {
  size_ = queries.rows();
  for (int64_t i = 0; i < size_; ++i) {
    float* const out = rows_.data() + i * cols_;
    widen_row(queries, i, out);
    const double squared = canonical_squared_norm_cpu(out, cols_);
    if (check_finite && !std::isfinite(squared)) throw_not_finite("query", first_query + i);
    norms_[i] = {squared, canonical_inverse_norm(squared)};
  }
}

void QuerySet::pack(const std::vector<float>& origin, ProgressMeter& meter, const Resources& resources) {
  const HostArray<std::byte> scratch(resources.threads() * scratch_bytes_, "packing", resources);
  const int64_t width = packed_.panel_width();
  parallel_for(divide_up(size_, width), meter, resources, [&](int64_t panel, int slot) {
    const int64_t first = panel * width;
    packed_.pack_panel(panel, row(first), std::min(width, size_ - first), origin,
                       scratch.data() + slot * scratch_bytes_);
  });
}

}  // namespace kith
