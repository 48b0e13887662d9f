#include "collection/search.hpp"

#include <kith/error.hpp>

#include "collection/found_places.hpp"
#include "collection/host_limit.hpp"
#include "collection/part_search.hpp"
#include "collection/search_memory.hpp"
#include "collection/search_queries.hpp"
#include "collection/segment_group.hpp"
#include "collection/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostRows = (int64_t{1} << 31) - 1;  // of an index

// Parameters that the collection's kind of index does not have are refused, as Index refuses them.
void check_search(const CollectionState& state, const SearchParams& params) {
  if (params.k < 1) throw InvalidArgument(fmt::format("k must be at least 1; it is {}", params.k));
  if (params.filter.form() != RowFilter::Form::none || !params.filters.empty() || params.refine_from != nullptr) {
    throw InvalidArgument("a collection is filtered by where, ids and a mask of its own, and refines by its vectors; "
                          "leave filter, filters and refine_from of SearchParams out");
  }
  const std::string& factory = state.params->index;
  const auto has = [&](const char* part) { return factory.find(part) != std::string::npos; };
  const auto refuse = [&](const char* name) {
    throw InvalidArgument(fmt::format("the collection's index is '{}', which knows no {}", factory, name));
  };
  if (params.probes != 0 && !has("IVF")) refuse("probes");
  if ((params.beam != 0 || params.width != 0) && !has("Graph")) refuse("beam or width");
  if (params.refine != 0 && !has("Graph") && !has("RFlat") && !has("Refine")) refuse("refine");
  if (params.recall != 0 && factory == "Flat") refuse("recall: it is exact");
}

// The first k of both, in `best`, whose ids are packed places. `numbers`: of the queries that were searched; `place_of`: the
// packed place of a row that was found.
template <typename PlaceOf>
void merge_found(const Order& order, NeighborsView best, const Neighbors& found, std::span<const int64_t> numbers,
                 const PlaceOf& place_of) {
  const auto k = static_cast<size_t>(best.k);
  std::vector<int64_t> ids(k);
  std::vector<float> distances(k);
  for (int64_t q = 0; q < found.queries(); ++q) {
    int64_t* const best_ids = best.ids + numbers[static_cast<size_t>(q)] * best.k;
    float* const best_distances = best.distances + numbers[static_cast<size_t>(q)] * best.k;
    int64_t a = 0;
    int64_t b = 0;
    for (size_t i = 0; i < k; ++i) {
      const bool has_a = a < best.k && best_ids[a] != kNoPlace;
      const bool has_b = b < found.k() && found.ids(q)[b] >= 0;
      if (!has_a && !has_b) {
        ids[i] = kNoPlace;
        distances[i] = order.nothing();
        continue;
      }
      const int64_t place_b = has_b ? place_of(found.ids(q)[b]) : kNoPlace;
      if (!has_b || (has_a && order(best_distances[a], best_ids[a], found.distances(q)[b], place_b))) {
        ids[i] = best_ids[a];
        distances[i] = best_distances[a++];
      } else {
        ids[i] = place_b;
        distances[i] = found.distances(q)[b++];
      }
    }
    std::copy(ids.begin(), ids.end(), best_ids);
    std::copy(distances.begin(), distances.end(), best_distances);
  }
}

auto places_in(size_t part) {
  return [part](int64_t place) { return packed(part, place); };
}

// Segments without an index whose rows ascend, if all of them have their copies for searches. On GPUs each is searched by
// itself.
std::shared_ptr<const SegmentGroup> segments_as_one(const CollectionState& state, const Resources& resources) {
  std::vector<size_t> parts;
  SegmentGroup::Flats flats;
  if (is_limited(resources) || searches_copies(resources)) return nullptr;
  int64_t rows = 0;
  for (size_t p = 0; p < state.segments; ++p) {
    const StatePart& part = state.parts[p];
    if (!part.segment->entry().index_file.empty()) continue;
    if (!parts.empty() && part.rows->first_row() <= state.parts[parts.back()].rows->last_row()) continue;
    rows += part.rows->size();
    if (rows > kMostRows) break;
    std::shared_ptr<const Index> flat = part.segment->flat(0, resources);
    if (flat == nullptr) return nullptr;
    parts.push_back(p);
    flats.push_back(std::move(flat));
  }
  return group_of(state, std::move(parts), std::move(flats), resources);
}

// All queries with one filter.
void search_together(const CollectionState& state, const MatrixView& queries, const CollectionSearchParams& params,
                     const Order& order, NeighborsView out, const Resources& resources) {
  std::vector<int64_t> numbers(static_cast<size_t>(queries.rows()));
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::shared_ptr<const KeptItems> kept = state.keep(params.filter, params.filter.params, resources);
  std::vector<PartFilter> filters;
  filters.reserve(state.parts.size());
  for (size_t p = 0; p < state.parts.size(); ++p) {
    filters.emplace_back(state.parts[p], kept == nullptr ? nullptr : &kept->parts[p], resources);
  }
  if (queries.rows() == 0) return;
  std::vector<bool> done(state.parts.size());
  if (const std::shared_ptr<const SegmentGroup> group = segments_as_one(state, resources)) {
    std::vector<const PartFilter*> of_group;
    for (const size_t p : group->parts()) {
      of_group.push_back(&filters[p]);
      done[p] = true;
    }
    const GroupFilter filter(*group, of_group, resources);
    if (filter.count() > 0) {
      SearchParams search;
      search.k = std::min(out.k, filter.count());
      search.filter = filter.filter();
      const Neighbors found = group->index().search(queries, search, resources);
      merge_found(order, out, found, numbers, [&](int64_t row) { return group->packed_place(row); });
    }
  }
  for (size_t p = 0; p < state.parts.size(); ++p) {
    const PartFilter& filter = filters[p];
    if (done[p] || filter.count() == 0) continue;
    resources.check_cancelled();
    const int64_t k = std::min(out.k, filter.count());
    merge_found(order, out, search_part(state, state.parts[p], queries, k, filter, params.search, resources), numbers,
                places_in(p));
  }
}

// Queries with parameters of their own.
void search_tenants(const CollectionState& state, const MatrixView& queries, const CollectionSearchParams& params,
                    const Order& order, NeighborsView out, const Resources& resources) {
  for_tenants(state, params.filter, resources, [&](const TenantRound& round) {
    const MatrixBuffer some = some_queries(queries, round.queries, resources);
    for (size_t p = 0; p < state.parts.size(); ++p) {
      const std::vector<const KeptPlaces*> kept = round.of_part(p);
      if (std::none_of(kept.begin(), kept.end(), [](const KeptPlaces* places) { return places->count() > 0; })) continue;
      resources.check_cancelled();
      const StatePart& part = state.parts[p];
      const int64_t k = std::min(out.k, part.rows->size());
      const Neighbors found =
          search_part(state, part, some.view(), k, kept, round.group_of, params.search, resources);
      merge_found(order, out, found, round.queries, places_in(p));
    }
  });
}

}  // namespace

CollectionNeighbors search_state(const CollectionState& state, const MatrixView& given,
                                 const CollectionSearchParams& params, const Resources& resources) {
  check_search(state, params.search);
  check_params_of_queries(params.filter, given);
  const CollectionQueries queries(given, state, resources);
  require_search_memory(state, queries.view(), params, resources);
  CollectionNeighbors result;
  result.neighbors = Neighbors(given.rows(), params.search.k, resources);
  const NeighborsView out = result.neighbors.view();
  const Order order(state);
  std::fill_n(out.ids, out.queries * out.k, kNoPlace);
  std::fill_n(out.distances, out.queries * out.k, order.nothing());
  if (params.filter.params_of_queries.empty()) {
    search_together(state, queries.view(), params, order, out, resources);
  } else {
    search_tenants(state, queries.view(), params, order, out, resources);
  }
  result.texts = name_places(state, out.ids, out.queries * out.k, resources);
  return result;
}

}  // namespace kith
