#include "graph/build/exact_on_disk/exact_on_disk.hpp"

#include "core/reservation.hpp"
#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/exact/without_self.hpp"
#include "graph/build/exact_on_disk/row_blocks.hpp"
#include "graph/handle/graph_output.hpp"
#include "io/row_slice.hpp"
#include "io/work_folder.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kBlock = "rows-";
constexpr std::string_view kSurvey = "survey";

WorkManifest manifest_of(const VectorFile& x, const KnnGraphParams& params, bool ends) {
  WorkManifest manifest;
  manifest.set("work", ends ? "an exact graph, since no other method reaches the recall sooner" : "an exact graph");
  put_source(x, manifest);
  manifest.set("k", params.k);
  manifest.set("metric", name_of(params.metric));
  if (ends) {
    manifest.set("recall", fmt::format("{}", params.recall));
    manifest.set("seed", fmt::format("{}", params.seed));
  }
  return manifest;
}

class ExactOnDisk {
 public:
  // Without a folder where memory is only counted.
  ExactOnDisk(const VectorFile& x, const KnnGraphParams& params, const DiskWork* work, WorkFolder* folder,
              const Resources& resources)
      : x_(x),
        params_(params),
        most_rows_(work == nullptr ? INT64_MAX : work->most_rows),
        folder_(folder),
        resources_(resources),
        quiet_(resources.with_progress({})),
        blocks_(folder, kBlock, x.rows(), params.k, quiet_) {}

  void count() {
    count_survey(x_, params_.check_finite, quiet_);
    blocks_.count(most_rows_);
    const Reservation section(blocks_.section_bytes(), 0, quiet_);
    count_work(Footprint{2 * x_.memory_bytes()}.beside(search_footprint(shape(x_), request(), RowFilter(), quiet_)),
               quiet_);
  }

  void run(GraphSink& sink) {
    // Blocks without a survey belong to rows that cannot be verified.
    if (!folder_->find(std::string(kSurvey))) blocks_.forget();
    survey_rows(x_, "x", params_.check_finite, *folder_, std::string(kSurvey), resources_);
    ProgressMeter meter("blocks", x_.rows(), resources_);
    const std::vector<RowBlock> missing = blocks_.missing(most_rows_);
    int64_t left = 0;
    for (const RowBlock& block : missing) left += block.end - block.first;
    meter.add(x_.rows() - left);
    folder_->require_space(blocks_.missing_bytes() + sink.bytes_beside(folder_->path()));
    for (const RowBlock& block : missing) {
      search(block);
      meter.add(block.end - block.first);
      meter.poll();
    }
    meter.finish();
    ProgressMeter writing("write", x_.rows(), resources_);
    sink.begin();
    blocks_.append_to(sink, writing);
    writing.finish();
  }

 private:
  SearchShape shape(const VectorFile& queries) const {
    return check_knn(RowsInfo(queries), RowsInfo(x_), {params_.k + 1, params_.metric});
  }
  SearchRequest request() const { return {.k = params_.k + 1, .check_finite = false, .results_in_memory = false}; }

  // The neighbours of the rows of a block among all.
  void search(const RowBlock& block) {
    const VectorFile queries = slice_of(x_, block.first, block.end - block.first);
    RowBlocks::Writer writer(blocks_, block);
    const auto put = [&](int64_t first, const NeighborsView& part) {
      for (int64_t i = 0; i < part.queries; ++i) {
        const NeighborPlaces to = writer.next();
        put_others(part.ids + i * part.k, part.distances + i * part.k, block.first + first + i, params_.k, to.ids,
                   to.distances);
      }
    };
    const SearchShape searched = shape(queries);
    const auto least = [&] { return search_footprint(searched, request(), RowFilter(), quiet_); };
    search_files(queries, x_, quiet_, least, [&](RowSource& query_rows, RowSource& base) {
      search_knn(searched, request(), {query_rows, base, RowFilter()}, put, quiet_);
    });
    writer.commit();
  }

  const VectorFile& x_;
  const KnnGraphParams& params_;
  const int64_t most_rows_;
  WorkFolder* const folder_;
  const Resources& resources_;
  const Resources quiet_;
  const RowBlocks blocks_;
};

}  // namespace

Footprint exact_on_disk_footprint(const VectorFile& x, const KnnGraphParams& params, const Resources& resources) {
  return counted(resources,
                 [&](const Resources& counting) { ExactOnDisk(x, params, nullptr, nullptr, counting).count(); });
}

GraphReport exact_on_disk(const VectorFile& x, const KnnGraphParams& params, const DiskWork& work, GraphSink& sink,
                          const Resources& resources) {
  const auto least = [&] { return exact_on_disk_footprint(x, params, resources); };
  return within_limits("the graph", resources, least, [&] {
    WorkFolder folder(work.disk, work.folder, manifest_of(x, params, work.exact_ends), resources);
    return repairing(folder, [&] {
      ExactOnDisk(x, params, &work, &folder, resources).run(sink);
      GraphReport report;
      report.method = name_of(GraphMethod::exact);
      report.recall = exact_recall(x.rows());
      sink.finish(report);
      folder.finish({}, work.keep);
      return report;
    });
  });
}

}  // namespace kith
