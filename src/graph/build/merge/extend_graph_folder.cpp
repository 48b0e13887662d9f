#include <kith/graph_of_files.hpp>

#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_merge.hpp>
#include <kith/refused_row.hpp>

#include "core/within_limits.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/ggm/graph_parts.hpp"
#include "graph/build/ggm/shard_work.hpp"
#include "graph/build/merge/extend_on_disk.hpp"
#include "graph/build/merge/new_rows.hpp"
#include "graph/build/method/folder_sink.hpp"
#include "graph/build/method/graph_steps.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/disk.hpp"
#include "io/row_slice.hpp"
#include "io/work_folder.hpp"
#include "rows/finite_check.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace kith {
namespace {

void check_extension(const GraphOfFile& old, const VectorFile& fresh) {
  if (old.graph.k() < 1) throw InvalidArgument("the graph has k = 0; graphs that are extended have neighbours");
  if (old.graph.rows() != old.x.rows()) {
    throw InvalidArgument(fmt::format("the graph has {} rows, and '{}' has {}; give the vectors that it was built of",
                                      old.graph.rows(), old.x.path(), old.x.rows()));
  }
  if (fresh.cols() != old.x.cols() || fresh.dtype() != old.x.dtype()) {
    throw InvalidArgument(fmt::format("'{}' has {} columns of {}, and '{}' {} of {}; new rows must have the same",
                                      old.x.path(), old.x.cols(), name_of(old.x.dtype()), fresh.path(), fresh.cols(),
                                      name_of(fresh.dtype())));
  }
  check_graph_size(old.x.rows() + fresh.rows(), old.graph.k());
}

std::vector<GraphOfFile> parts_of(const GraphOfFile& old, const VectorFile& fresh, const KnnGraph& graph) {
  std::vector<GraphOfFile> parts;
  parts.push_back({old.graph, slice_of(old.x, 0, old.x.rows())});
  parts.push_back({graph, slice_of(fresh, 0, fresh.rows())});
  return parts;
}

KnnGraph extend_in_memory(const GraphOfFile& old, const VectorFile& fresh, const GraphMergeParams& params,
                          const Resources& resources) {
  const MatrixBuffer x = all_rows(old.x, resources);
  const MatrixBuffer added = all_rows(fresh, resources);
  return extend_graph(old.graph, x.view(), added.view(), params, resources);
}

bool has_room_in_memory(const GraphOfFile& old, const VectorFile& fresh, const GraphMergeParams& params,
                        const Resources& resources) {
  if (!counts_memory(resources)) return true;
  const auto call = [&](const Resources& counting) { (void)extend_in_memory(old, fresh, params, counting); };
  return has_room_for(footprint_of_call(resources, call), resources);
}

// The graph of the new rows, while it waits to be merged: inside the result's folder, where nobody else's files are.
std::string folder_of_new_graph(const std::string& folder) { return own_steps_folder(folder) + ".new"; }

// Is already there if its merge, which knows it by its hash, has begun.
KnnGraph graph_of_new_rows(const VectorFile& fresh, const KnnGraphParams& params, const std::string& steps,
                           const std::string& own, const Resources& resources) {
  if (!WorkFolder::holds_work(real_disk(), steps) || !holds_graph(own)) {
    knn_graph_folder(fresh, own, params, GraphWork(), resources);
  }
  return load_graph_folder(own, resources);
}

// Many new rows: their graph first, which is then merged with the old one.
GraphReport extend_by_rounds(const GraphOfFile& old, const VectorFile& fresh, const GraphMergeParams& params,
                             const std::string& folder, const DiskWork& work, GraphSink& sink,
                             const Resources& resources) {
  const int64_t k = old.graph.k();
  const Metric metric = old.graph.metric();
  const KnnGraphParams of_fresh = params_of_new_rows({fresh.rows(), fresh.cols(), k, metric, params.recall}, params);
  const bool few = old.x.rows() <= kFewExtended;
  const auto least = [&] {
    const Footprint built = graph_folder_footprint(fresh, of_fresh, resources);
    if (few) return built.then(extend_on_disk_footprint(old, {fresh}, params, resources));
    const KnnGraph to_come = KnnGraph::unchecked({nullptr, nullptr, fresh.rows(), k, {}}, nullptr, metric);
    const std::vector<GraphOfFile> parts = parts_of(old, fresh, to_come);
    return built.then(merge_on_disk_footprint(merge_work(parts, params), resources));
  };
  return within_limits("extending graphs", resources, least, [&] {
    const KnnGraph graph = naming_rows("new", [&] {
      return graph_of_new_rows(fresh, of_fresh, work.folder, folder_of_new_graph(folder), resources);
    });
    if (few) return extend_on_disk(old, {fresh, &graph}, params, work, sink, resources);
    const std::vector<GraphOfFile> parts = parts_of(old, fresh, graph);
    ShardWork merge = merge_work(parts, params);
    put_parts(parts, merge.manifest, resources);
    merge.names = {"x", "new"};
    merge.put_method = [&](GraphReport& told) {
      told.method = "extend";
      told.parameters = {{"recall", params.recall}, {"seed", static_cast<int64_t>(params.seed)}};
    };
    return merge_on_disk(merge, work, sink, resources);
  });
}

}  // namespace

GraphReport extend_graph_folder(const GraphOfFile& old, const VectorFile& fresh, const std::string& folder,
                                const GraphMergeParams& params, const GraphWork& work, const Resources& resources) {
  validate_extension(params);
  check_extension(old, fresh);
  if (!work.part.alone()) throw Unsupported("graphs are not extended in parts of the work; leave the part out");
  const int64_t k = old.graph.k();
  const int64_t rows = old.x.rows() + fresh.rows();
  const DiskWork kept = disk_work(folder, work);
  // Where a list holds all rows the whole graph is made anew.
  const bool anew = rows - 1 <= merge_list_length(params, k);
  const bool exactly = extends_exactly(fresh.rows(), params);
  const bool begun = keeps_graph_steps(folder, work) ||
                     WorkFolder::holds_work(real_disk(), own_steps_folder(folder_of_new_graph(folder)));
  if (anew && begun) {
    throw Unsupported(fmt::format("the graph of {} rows is made anew in memory, which keeps no steps; leave work and "
                                  "keep_work out",
                                  rows));
  }
  if (anew || (!exactly && !begun && has_room_in_memory(old, fresh, params, resources))) {
    const KnnGraph graph = within_limits("extending graphs", resources, [&](const Resources& used) {
      return extend_in_memory(old, fresh, params, used);
    });
    save_graph_folder(graph, folder, work.form, resources);
    remove_graph_folder(folder_of_new_graph(folder));
    return graph.report();
  }
  FolderSink sink({rows, k}, old.graph.metric(), folder, work.form);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    return naming_files({{"x", old.x}, {"new", fresh}}, [&] {
      if (exactly) return extend_on_disk(old, {fresh}, params, kept, sink, counted);
      return extend_by_rounds(old, fresh, params, folder, kept, sink, counted);
    });
  });
  remove_own_folder(work, kept.folder);
  if (!work.keep) remove_graph_folder(folder_of_new_graph(folder));
  return report;
}

}  // namespace kith
