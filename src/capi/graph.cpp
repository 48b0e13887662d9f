#include "capi/arguments.hpp"
#include "capi/status.hpp"

#include <kith/graph_file.hpp>
#include <kith/graph_folder.hpp>
#include <kith/knn_graph.hpp>

struct kith_graph {
  kith::KnnGraph graph;
};

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_graph_new(const kith_matrix* rows, const kith_graph_params* params, kith_graph** out,
                           const kith_resources* resources) {
  return guarded([&] {
    kith_graph*& made = handle_place(out);
    const kith_graph_params given = taken(params, "kith_graph_params");
    KnnGraphParams build;
    build.metric = metric_of(given.metric);
    if (given.method != nullptr) build.method = parse_graph_method(given.method);
    if (given.k != 0) build.k = given.k;
    if (given.recall != 0) build.recall = given.recall;
    build.seed = given.seed;
    build.check_finite = is_on(given.check_finite, true, "check_finite");
    made = new kith_graph{knn_graph(view_of(rows, "rows"), build, resources_of(resources))};
  });
}

kith_status kith_graph_load(const char* ids_or_folder, const char* distances, const char* metric, kith_graph** out,
                            const kith_resources* resources) {
  return guarded([&] {
    kith_graph*& made = handle_place(out);
    const char* const path = required_text(ids_or_folder, "ids_or_folder");
    if (distances != nullptr) {
      made = new kith_graph{load_graph(path, distances, metric_of(metric), resources_of(resources))};
      return;
    }
    if (metric != nullptr) throw InvalidArgument("a folder knows its metric; give NULL");
    made = new kith_graph{load_graph_folder(path, resources_of(resources))};
  });
}

kith_status kith_graph_save(const kith_graph* graph, const char* ids_or_folder, const char* distances,
                            const kith_resources* resources) {
  return guarded([&] {
    const KnnGraph& saved = required(graph, "graph").graph;
    const char* const path = required_text(ids_or_folder, "ids_or_folder");
    if (distances == nullptr) {
      save_graph_folder(saved, path, resources_of(resources));
    } else {
      save_graph(saved, path, distances, resources_of(resources));
    }
  });
}

void kith_graph_free(kith_graph* graph) { delete graph; }

kith_status kith_graph_get_rows(const kith_graph* graph, kith_graph_rows* out) {
  return guarded([&] {
    const KnnGraph& seen = required(graph, "graph").graph;
    give(out,
         {0, seen.ids(), seen.distances(), seen.rows(), seen.k(), static_cast<int32_t>(space_of(seen.space())),
          seen.space().device},
         "out", "kith_graph_rows");
  });
}

kith_status kith_graph_get_info(const kith_graph* graph, kith_graph_info* out) {
  return guarded([&] {
    const KnnGraph& about = required(graph, "graph").graph;
    const GraphReport& report = about.report();
    kith_graph_info told = {};
    told.method = report.method.c_str();
    told.metric = name_of(about.metric()).data();  // a literal
    told.rows = about.rows();
    told.k = about.k();
    told.recall = report.recall ? report.recall->recall : -1;
    told.seconds = report.seconds;
    told.reached = report.reached ? 1 : 0;
    give(out, told, "out", "kith_graph_info");
  });
}

}  // extern "C"
