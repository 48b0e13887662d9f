#include <kith/graph_of_files.hpp>

#include <kith/error.hpp>
#include <kith/graph_merge.hpp>
#include <kith/refused_row.hpp>

#include "core/within_limits.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/merge/extend_on_disk.hpp"
#include "graph/build/merge/graph_parts.hpp"
#include "graph/build/method/folder_sink.hpp"
#include "graph/build/method/graph_steps.hpp"
#include "graph/handle/graph_output.hpp"

#include <fmt/format.h>

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

}  // namespace

GraphReport extend_graph_folder(const GraphOfFile& old, const VectorFile& fresh, const std::string& folder,
                                const GraphMergeParams& params, const GraphWork& work, const Resources& resources) {
  validate_extension(params);
  check_extension(old, fresh);
  if (!work.part.alone()) throw Unsupported("graphs are not extended in parts of the work; leave the part out");
  const int64_t k = old.graph.k();
  const int64_t rows = old.x.rows() + fresh.rows();
  // Where a list holds all rows the whole graph is made anew.
  const bool from_disk = extends_exactly(fresh.rows(), params) && rows - 1 > merge_list_length(params, k);
  if (!from_disk) {
    if (keeps_graph_steps(folder, work)) {
      throw Unsupported(fmt::format("{} new rows are merged in memory, which keeps no steps; leave work and keep_work out, or "
                                    "ask for a recall of 1, with which they are compared with all",
                                    fresh.rows()));
    }
    const KnnGraph graph = within_limits("extending graphs", resources, [&](const Resources& used) {
      const MatrixBuffer x = all_rows(old.x, used);
      const MatrixBuffer added = all_rows(fresh, used);
      return extend_graph(old.graph, x.view(), added.view(), params, used);
    });
    save_graph_folder(graph, folder, work.form, resources);
    return graph.report();
  }
  const DiskWork kept = disk_work(folder, work);
  FolderSink sink({rows, k}, old.graph.metric(), folder, work.form);
  const GraphReport report = measured(resources, [&](const Resources& counted) {
    return naming_files({{"x", old.x}, {"new", fresh}},
                        [&] { return extend_on_disk(old, fresh, params, kept, sink, counted); });
  });
  remove_own_folder(work, kept.folder);
  return report;
}

}  // namespace kith
