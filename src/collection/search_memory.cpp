#include "collection/search_memory.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "collection/host_limit.hpp"
#include "collection/part_search.hpp"
#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// Exact search of one part, by its rows in memory or by its file.
int64_t memory_of_exact(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                        const RowFilter& filter, const Resources& resources) {
  KnnParams params;
  params.k = k;
  params.metric = state.params->metric;
  params.check_finite = false;
  params.filter = filter;
  return memory_of_call(resources, [&](const Resources& used) {
    if (!part.segment) return (void)knn(queries, part.rows->view(), params, used);
    const VectorFile asked = matrix_as_file(queries, "the queries");
    const VectorFile base =
        rows_as_file(part.rows, state.params->dtype, state.params->dimension, part.segment->file()->path());
    knn(asked, base, [](int64_t, const NeighborsView&) {}, params, used);
  });
}

// Bits for all places, and the order of items where there is a mask.
int64_t memory_of_bits(const CollectionState& state, const ItemFilter& filter) {
  const int conditions = (filter.where.empty() ? 0 : 1) + (filter.ids ? 1 : 0) + (filter.mask ? 1 : 0);
  if (conditions == 0) return 0;
  int64_t bits = 0;
  for (const StatePart& part : state.parts) bits += part.rows->size() / 8 + 1;
  const int64_t order = filter.mask ? state.size * static_cast<int64_t>(sizeof(RowAt)) : 0;
  return bits * (conditions == 1 ? 1 : 3) + order;
}

// The index of a segment, loaded; where the limit has no room for it, mapped, so that the search can be counted, and what
// loading it takes is added to `loads`.
SegmentIndex load_or_count(const Segment& segment, int64_t& loads, const Resources& resources) {
  const int64_t used = resources.host_memory()->used();
  try {
    return segment.index(0, resources);
  } catch (const OutOfMemory& refused) {
    loads += std::max<int64_t>(1, refused.bytes_needed() - used);
    return segment.index(0, Resources());
  }
}

}  // namespace

int64_t memory_of_call(const Resources& resources, const std::function<void(const Resources&)>& call) {
  ResourceOptions options = resources.options();
  options.host_memory_limit = 1;
  options.log = {};
  options.progress = {};
  try {
    call(Resources(options));
    return 0;
  } catch (const OutOfMemory& refused) {
    return refused.bytes_needed();
  }
}

void require_host_memory(const char* job, int64_t bytes, const Resources& resources) {
  if (!is_limited(resources)) return;
  const MemoryBudget& budget = *resources.host_memory();
  const int64_t used = budget.used();
  if (bytes <= budget.limit() - used) return;
  throw NamedLimit("host", saturating_add(used, bytes),
                   fmt::format("not enough memory for {}: {} needed, {} left of the host memory limit of {}", job,
                               format_bytes_up(bytes), format_bytes(budget.limit() - used), format_bytes(budget.limit())));
}

int64_t memory_of_filter(const CollectionState& state, const ItemFilter& filter) {
  const int64_t database = filter.where.empty() && !filter.ids ? 0 : kDatabaseMemory;
  if (filter.params_of_queries.empty()) return database + memory_of_bits(state, filter);
  int64_t bytes = 0;  // of a group of queries at a time, and of what all groups have in common
  for (const StatePart& part : state.parts) bytes += KeptPlaces::most_bytes(part);
  ItemFilter common;
  common.ids = filter.ids;
  common.mask = filter.mask;
  return database + bytes + memory_of_bits(state, common);
}

void require_search_memory(const CollectionState& state, const MatrixView& queries, const CollectionSearchParams& params,
                           const Resources& resources) {
  if (!is_limited(resources) || queries.rows() == 0) return;
  int64_t most = 0;
  int64_t loads = 0;
  int64_t longest = 0;
  for (const StatePart& part : state.parts) longest = std::max(longest, part.rows->size());
  const std::vector<uint8_t> all(static_cast<size_t>(longest / 8 + 1), 0xff);
  for (const StatePart& part : state.parts) {
    if (part.living() == 0) continue;
    const int64_t k = std::min(params.search.k, part.living());
    const int64_t found = queries.rows() * k * static_cast<int64_t>(sizeof(int64_t) + sizeof(float));
    const int64_t again = queries.rows() * queries.cols() * size_of(queries.dtype());  // queries that are gathered
    const RowFilter every = RowFilter::bits(all.data(), part.rows->size());
    int64_t search = std::max(memory_of_exact(state, part, queries, k, {}, resources),
                              memory_of_exact(state, part, queries, k, every, resources));
    if (part.segment) {
      const SegmentIndex by = load_or_count(*part.segment, loads, resources);
      if (by.index != nullptr) {
        SearchParams wished = params.search;
        wished.k = k;
        for (const RowFilter& filter : {RowFilter(), every}) {
          wished.filter = filter;
          search = std::max(search, by.counted.bytes() + memory_of_call(resources, [&](const Resources& used) {
            (void)by.index->search(queries, wished, used);
          }));
        }
      }
    }
    most = std::max(most, search + 2 * found + 2 * again + PartFilter::most_bytes(part));
  }
  const int64_t results = queries.rows() * params.search.k * static_cast<int64_t>(sizeof(int64_t) + sizeof(float));
  require_host_memory("the search of the collection", results + loads + most + memory_of_filter(state, params.filter),
                      resources);
}

}  // namespace kith
