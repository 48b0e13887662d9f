#include "ivf/model/list_assignment.hpp"

#include <kith/knn.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/host_arrays.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "exact/key_bounds.hpp"
#include "exact/knn_plan.hpp"
#include "exact/search_footprint.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/select/smallest_values.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBlockRows = 1 << 16;
// Up to this many queries are ranked one by one, without the setup of an exact search, which would take longer than
// scanning so few centres.
constexpr int64_t kFewRanked = 4;
constexpr int64_t kFewLists = 4096;

// Working memory of rank_one.
struct FewRanked {
  FewRanked(ArrayPlaces& block, int64_t lists, int64_t cols)
      : query(block.take<float>(cols)),
        values(block.take<float>(lists + kPlacesPast)),
        bound_sums(block.take<float>(lists)),
        places(block.take<uint32_t>(lists + kPlacesPast)),
        keys(block.take<float>(lists)),
        neighbors(block.take<uint64_t>(lists)) {}

  PlacedArray<float> query;  // normalized, for cosine
  PlacedArray<float> values;
  PlacedArray<float> bound_sums;
  PlacedArray<uint32_t> places;
  PlacedArray<float> keys;
  PlacedArray<uint64_t> neighbors;
};

bool ranks_few(Metric metric, int64_t queries, int64_t lists) {
  const KeyKind kind = key_kind(metric);
  return queries <= kFewRanked && lists <= kFewLists && is_product(kind);
}

bool all_finite(const PlacedArray<float>& values, int64_t count) {
  float sums = 0;
  for (int64_t i = 0; i < count; ++i) sums += values[i] - values[i];
  return sums == 0.0f;
}

constexpr int64_t kUnsure = -1;

// Writes the lists that the fast values cannot rule out, and returns their number; kUnsure if a value is not finite.
int64_t near_lists(KeyKind kind, const float* query, const MatrixView& centres, int64_t probes,
                   const FewRanked& memory) {
  const int64_t count = centres.rows();
  const bool differences = has_differences(kind);
  float* const values = memory.values.data();
  scan_rows_cpu(differences ? KeyKind::squared_l2 : kind, query, centres, values,
                differences ? nullptr : memory.bound_sums.data());
  const double relative = product_error(centres.cols());
  double error = underflow_error(centres.cols());  // in addition to the relative error
  if (!differences) {
    double longest = 0;
    for (int64_t i = 0; i < count; ++i) {
      values[i] = -values[i];
      longest = memory.bound_sums[i] <= longest ? longest : static_cast<double>(memory.bound_sums[i]);  // keeps a NaN
    }
    const double squared = canonical_squared_norm_cpu(query, centres.cols());
    if (!(squared < kLargestSquaredNorm && longest < kLargestSquaredNorm)) return kUnsure;
    error += 1.01 * relative * std::sqrt(squared) * std::sqrt(longest * 1.01 + error);
  }
  if (!all_finite(memory.values, count) || !(relative < 0.01)) return kUnsure;
  const auto kth = static_cast<double>(rank_value(values, count, probes));
  const double most = differences ? (kth + error) * (1 + 3 * relative) + error : kth + 2.01 * error;
  return places_up_to(values, count, static_cast<float>(most * (1 + (most > 0 ? 0x1p-20 : -0x1p-20))),
                      memory.places.data());
}

// The same for cosine. `squared`: the squared norm of the query.
int64_t near_lists_by_cosine(const float* query, double squared, const MatrixView& centres, int64_t probes,
                             const FewRanked& memory) {
  const int64_t count = centres.rows();
  const double inverse = canonical_inverse_norm(squared);
  for (int64_t c = 0; c < centres.cols(); ++c) {
    memory.query[c] = static_cast<float>(static_cast<double>(query[c]) * inverse);
  }
  scan_rows_cpu(KeyKind::cosine, memory.query.data(), centres, memory.values.data(), memory.bound_sums.data());
  if (!(squared < kLargestSquaredNorm) || !all_finite(memory.values, count) || !all_finite(memory.bound_sums, count)) {
    return kUnsure;
  }
  float* const lower = memory.values.data();
  float* const upper = memory.keys.data();
  KeyBounds(KeyKind::cosine, centres.cols(), squared).bound(lower, memory.bound_sums.data(), count, lower, upper);
  return places_up_to(lower, count, rank_value(upper, count, probes), memory.places.data());
}

// The nearest lists of one query: fast values for all lists, then exact keys for those not ruled out. Returns false if
// a value is not finite.
bool rank_one(KeyKind kind, const float* query, const MatrixView& centres, int64_t probes, const FewRanked& memory,
              int32_t* lists) {
  const bool cosine = kind == KeyKind::cosine;
  const double squared = cosine ? canonical_squared_norm_cpu(query, centres.cols()) : 0.0;
  const int64_t near = cosine ? near_lists_by_cosine(query, squared, centres, probes, memory)
                              : near_lists(kind, query, centres, probes, memory);
  if (near == kUnsure) return false;
  const CanonicalQuery canonical{query, cosine ? canonical_inverse_norm(squared) : 0.0};
  canonical_keys_cpu(kind, canonical, centres, memory.places.data(), near, memory.keys.data());
  uint64_t* const found = memory.neighbors.data();
  for (int64_t i = 0; i < near; ++i) found[i] = pack_neighbor(ordered_key(memory.keys[i]), memory.places[i]);
  std::sort(found, found + near);
  for (int64_t i = 0; i < probes; ++i) lists[i] = static_cast<int32_t>(row_of(found[i]));
  return true;
}

// Results of an exact search of the centres for a block of queries.
struct RankedBlock {
  RankedBlock(int64_t queries, int64_t probes, const Resources& resources)
      : rows(std::min(kBlockRows, queries)),
        ids(rows * probes, "the queries' lists", resources),
        distances(rows * probes, "the queries' lists", resources) {}

  int64_t rows;
  HostArray<int64_t> ids;
  HostArray<float> distances;
};

}  // namespace

Footprint rank_footprint(int64_t queries, int64_t probes, const Resources& resources) {
  return footprint_of<RankedBlock>(resources, queries, probes);
}

namespace {

void rank_by_search(Metric metric, const MatrixView& centres, const MatrixView& queries, int64_t probes, int32_t* lists,
                    const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  if (queries.rows() == 0) return;
  const RankedBlock block(queries.rows(), probes, quiet);
  KnnParams params;
  params.k = probes;
  params.metric = metric;
  params.check_finite = false;
  for (int64_t first = 0; first < queries.rows(); first += block.rows) {
    const int64_t count = std::min(block.rows, queries.rows() - first);
    knn(queries.slice(first, count), centres, {block.ids.data(), block.distances.data(), count, probes, {}}, params,
        quiet);
    std::transform(block.ids.data(), block.ids.data() + count * probes, lists + first * probes,
                   [](int64_t id) { return static_cast<int32_t>(id); });
  }
}

}  // namespace

void rank_lists(Metric metric, const MatrixView& centres, const MatrixView& queries, int64_t probes, int32_t* lists,
                const Resources& resources) {
  if (ranks_few(metric, queries.rows(), centres.rows()) && probes <= centres.rows() && !counts_only(resources)) {
    const HostArrays<FewRanked> memory("the queries' lists", resources, centres.rows(), centres.cols());
    int64_t done = 0;
    while (done < queries.rows() && rank_one(key_kind(metric), typed_row<float>(queries, done), centres, probes,
                                             *memory, lists + done * probes)) {
      ++done;
    }
    if (done == queries.rows()) return;
  }
  rank_by_search(metric, centres, queries, probes, lists, resources);
}

namespace {

SearchShape assign_shape(Metric metric, int64_t lists, const RowsInfo& rows) {
  SearchShape shape;
  shape.queries = std::min(rows.rows, kBlockRows);
  shape.rows = lists;
  shape.cols = rows.cols;
  shape.query_dtype = rows.dtype;
  shape.query_space = rows.space;
  shape.metric = metric;
  return shape;
}

// On CPUs with int8 dot products: the same lists, without the overhead that a search has for more than one neighbour.
// Returns false where a search is as fast or memory is short.
bool assign_by_products(Metric metric, const MatrixView& centres, const MatrixView& rows, int32_t* lists,
                        const Resources& resources) {
  constexpr int64_t kFewestRows = 256;
  const KeyKind kind = key_kind(metric);
  const int64_t count = centres.rows();
  const PanelFormat format = centre_format(centres.cols(), cpu_extensions());
  if (format != PanelFormat::rounded || CentreAssigner::has_table(count, centres.cols(), format)) return false;
  if (kind == KeyKind::cosine || rows.rows() < kFewestRows || !rows.space().host_readable()) return false;
  if (counts_only(resources)) return false;
  const SearchTask task = search_of(assign_shape(metric, count, RowsInfo(rows)), {.k = 1, .check_finite = false});
  if (resolve_device(task, resources).kind != DeviceKind::cpu) return false;
  std::vector<float> origin = choose_origin(kind, centres);
  const int64_t bytes =
      footprint_of<CentreAssigner>(resources, kind, format, origin, count)
          .beside(Footprint{PackedRows::scratch_bytes(format, centres.cols())}.times(resources.threads()))
          .host;
  if (bytes > resources.host_memory()->available()) return false;
  const Resources quiet = resources.with_progress({});
  CentreAssigner assigner(kind, format, std::move(origin), count, quiet);
  ProgressMeter meter("assign", rows.rows(), quiet);
  assigner.set(centres, meter, quiet);
  std::fill_n(lists, rows.rows(), kNoLabel);
  const int64_t block = assigner.block_rows();
  parallel_for(divide_up(rows.rows(), block), meter, quiet, [&](int64_t task_number, int slot) {
    const int64_t first = task_number * block;
    assigner.assign(rows.slice(first, std::min(block, rows.rows() - first)), lists + first, nullptr, slot);
  });
  return true;
}

}  // namespace

void assign_lists(Metric metric, const MatrixView& centres, const MatrixView& rows, int32_t* lists,
                  const Resources& resources) {
  if (assign_by_products(metric, centres, rows, lists, resources)) return;
  rank_by_search(metric, centres, rows, 1, lists, resources);
  // If finiteness is not checked, a non-finite row has no nearest list and goes to list 0.
  std::transform(lists, lists + rows.rows(), lists, [](int32_t list) { return std::max(list, 0); });
}

Footprint assign_footprint(Metric metric, int64_t lists, const RowsInfo& rows, const Resources& resources) {
  SearchShape shape = assign_shape(metric, lists, rows);
  shape.query_space = {};
  return rank_footprint(rows.rows, 1, resources)
      .beside(search_footprint(shape, {.k = 1, .check_finite = false}, RowFilter(), resources));
}

}  // namespace kith
