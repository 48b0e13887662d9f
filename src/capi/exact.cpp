#include "capi/arguments.hpp"
#include "capi/range_result.hpp"
#include "capi/status.hpp"

#include <kith/knn.hpp>

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_knn(const kith_matrix* queries, const kith_matrix* base, const kith_knn_params* params,
                     const kith_neighbors* out, const kith_resources* resources) {
  return guarded([&] {
    const kith_knn_params given = taken(params, "kith_knn_params");
    const NeighborsView view = view_of(out);
    KnnParams search;
    search.k = view.k;
    search.metric = metric_of(given.metric);
    search.check_finite = is_on(given.check_finite, true, "check_finite");
    search.filter = filter_of(given.filter);
    knn(view_of(queries, "queries"), view_of(base, "base"), view, search, resources_of(resources));
  });
}

kith_status kith_range_search(const kith_matrix* queries, const kith_matrix* base, float radius,
                              const kith_knn_params* params, kith_range** out, const kith_resources* resources) {
  return guarded([&] {
    kith_range*& made = handle_place(out);
    const kith_knn_params given = taken(params, "kith_knn_params");
    RangeParams search;
    search.radius = radius;
    search.metric = metric_of(given.metric);
    search.check_finite = is_on(given.check_finite, true, "check_finite");
    search.filter = filter_of(given.filter);
    made = new kith_range{
        range_search(view_of(queries, "queries"), view_of(base, "base"), search, resources_of(resources))};
  });
}

kith_status kith_range_view_of(const kith_range* range, kith_range_view* out) {
  return guarded([&] {
    const RangeNeighbors& found = required(range, "range").found;
    give(out, {0, found.offsets(), found.ids(), found.distances(), found.queries()}, "out", "kith_range_view");
  });
}

void kith_range_free(kith_range* range) { delete range; }

}  // extern "C"
