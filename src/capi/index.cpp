#include "capi/arguments.hpp"
#include "capi/range_result.hpp"
#include "capi/status.hpp"

#include <kith/index.hpp>

struct kith_index {
  kith::Index index;
};

namespace kith::capi {
namespace {

SearchParams search_params_of(const kith_search_params& given, int64_t k) {
  SearchParams params;
  params.k = k;
  params.filter = filter_of(given.filter);
  params.filter_strict = is_on(given.filter_strict, false, "filter_strict");
  params.probes = given.probes;
  params.refine = given.refine;
  params.beam = given.beam;
  params.width = given.width;
  params.recall = given.recall;
  return params;
}

}  // namespace

}  // namespace kith::capi

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_index_new(const char* factory, const kith_index_params* params, kith_index** out) {
  return guarded([&] {
    kith_index*& made = handle_place(out);
    const kith_index_params given = taken(params, "kith_index_params");
    IndexParams index;
    index.metric = metric_of(given.metric);
    index.check_finite = is_on(given.check_finite, true, "check_finite");
    index.prepare = is_on(given.prepare, true, "prepare");
    index.expected_rows = given.expected_rows;
    index.seed = given.seed;
    made = new kith_index{Index(required_text(factory, "factory"), index)};
  });
}

kith_status kith_index_load(const char* path, kith_index** out, const kith_resources* resources) {
  return guarded([&] {
    kith_index*& made = handle_place(out);
    made = new kith_index{Index::load(required_text(path, "path"), resources_of(resources))};
  });
}

kith_status kith_index_save(const kith_index* index, const char* path, const kith_resources* resources) {
  return guarded([&] { required(index, "index").index.save(required_text(path, "path"), resources_of(resources)); });
}

kith_status kith_index_clone(const kith_index* index, kith_index** out, const kith_resources* resources) {
  return guarded([&] {
    kith_index*& made = handle_place(out);
    made = new kith_index{required(index, "index").index.clone(resources_of(resources))};
  });
}

void kith_index_free(kith_index* index) { delete index; }

kith_status kith_index_train(kith_index* index, const kith_matrix* rows, const kith_resources* resources) {
  return guarded([&] { required(index, "index").index.train(view_of(rows, "rows"), resources_of(resources)); });
}

kith_status kith_index_add(kith_index* index, const kith_matrix* rows, const int64_t* ids, int64_t id_count,
                           const kith_resources* resources) {
  return guarded([&] {
    Index& to = required(index, "index").index;
    const MatrixView view = view_of(rows, "rows");
    const VectorView<const int64_t> numbers = values_of(ids, id_count, "ids");
    if (ids == nullptr) {
      to.add(view, Ownership::copy, resources_of(resources));
    } else {
      to.add(view, numbers, Ownership::copy, resources_of(resources));
    }
  });
}

kith_status kith_index_train_file(kith_index* index, const char* path, const kith_resources* resources) {
  return guarded([&] {
    Index& to = required(index, "index").index;
    to.train(VectorFile(required_text(path, "path")), resources_of(resources));
  });
}

kith_status kith_index_add_file(kith_index* index, const char* path, const int64_t* ids, int64_t id_count,
                                const kith_resources* resources) {
  return guarded([&] {
    Index& to = required(index, "index").index;
    to.add(VectorFile(required_text(path, "path")), values_of(ids, id_count, "ids"), resources_of(resources));
  });
}

kith_status kith_index_remove(kith_index* index, const int64_t* ids, int64_t id_count, int64_t* removed,
                              const kith_resources* resources) {
  return guarded([&] {
    Index& from = required(index, "index").index;
    const int64_t count = from.remove(values_of(ids, id_count, "ids"), resources_of(resources));
    if (removed != nullptr) *removed = count;
  });
}

kith_status kith_index_compact(kith_index* index, const kith_resources* resources) {
  return guarded([&] { required(index, "index").index.compact(resources_of(resources)); });
}

kith_status kith_index_search(const kith_index* index, const kith_matrix* queries, const kith_search_params* params,
                              const kith_neighbors* out, const kith_resources* resources) {
  return guarded([&] {
    const NeighborsView view = view_of(out);
    required(index, "index")
        .index.search(view_of(queries, "queries"), view, search_params_of(taken(params, "kith_search_params"), view.k),
                      resources_of(resources));
  });
}

kith_status kith_index_range_search(const kith_index* index, const kith_matrix* queries, float radius,
                                    const kith_search_params* params, kith_range** out,
                                    const kith_resources* resources) {
  return guarded([&] {
    kith_range*& made = handle_place(out);
    const kith_search_params given = taken(params, "kith_search_params");
    if (given.refine != 0 || given.beam != 0 || given.width != 0 || given.recall != 0) {
      throw InvalidArgument("a range search takes filter and probes alone; refine, beam, width and recall must be 0");
    }
    RangeSearchParams search;
    search.radius = radius;
    search.filter = filter_of(given.filter);
    search.filter_strict = is_on(given.filter_strict, false, "filter_strict");
    search.probes = given.probes;
    made = new kith_range{
        required(index, "index").index.range_search(view_of(queries, "queries"), search, resources_of(resources))};
  });
}

kith_status kith_index_reconstruct(const kith_index* index, const int64_t* ids, int64_t id_count,
                                   const kith_mutable_matrix* out, const kith_resources* resources) {
  return guarded([&] {
    required(index, "index")
        .index.reconstruct(values_of(ids, id_count, "ids"), view_of(out, "out"), resources_of(resources));
  });
}

kith_status kith_index_get_info(const kith_index* index, kith_index_info* out) {
  return guarded([&] {
    const Index& about = required(index, "index").index;
    const IndexInfo info = about.info();
    kith_index_info told = {};
    told.factory = about.factory().c_str();
    told.metric = name_of(info.metric).data();  // a literal
    told.size = info.size;
    told.dimension = info.dimension;
    told.lists = info.lists;
    told.code_bytes = info.code_bytes;
    told.degree = info.degree;
    told.host_bytes = info.bytes.host;
    told.device_bytes = info.bytes.device;
    told.trained = info.trained ? 1 : 0;
    told.dtype = static_cast<int32_t>(info.dtype);
    give(out, told, "out", "kith_index_info");
  });
}

}  // extern "C"
