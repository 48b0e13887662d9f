#include "graph/build/merge/extend_on_disk.hpp"

#include <kith/neighbors.hpp>

#include "core/ordered_key.hpp"
#include "core/reservation.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "exact/search_footprint.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/exact_on_disk/row_blocks.hpp"
#include "graph/build/ggm/graph_parts.hpp"
#include "graph/handle/graph_folder.hpp"
#include "io/row_slice.hpp"
#include "rows/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kOldBlock = "rows-";
constexpr std::string_view kNewBlock = "new-";
constexpr std::string_view kOldSurvey = "survey";
constexpr std::string_view kNewSurvey = "survey-new";
constexpr int64_t kFewestHeld = 64;  // new rows whose neighbours among the old ones are in memory

// A row's neighbours among some rows: nearest first, then -1.
struct FoundRow {
  const int64_t* ids;
  const float* distances;
  int64_t count;
  int64_t first_id;  // the row that is meant by id 0
  int64_t left_out;  // the id of the row itself; -1: it is not among them
};

// The first k of two, by (distance, row).
void put_nearest(Metric metric, const FoundRow& a, const FoundRow& b, int64_t k, const NeighborPlaces& out) {
  const ResultExit exit(metric);
  const auto next = [&](const FoundRow& row, int64_t& place) {
    if (place < row.count && row.ids[place] >= 0 && row.ids[place] == row.left_out) ++place;
    if (place >= row.count || row.ids[place] < 0) return kPadding;
    const float distance = exit.larger_is_nearer ? -row.distances[place] : row.distances[place];
    return pack_neighbor(ordered_key(distance + 0.0f), static_cast<uint32_t>(row.first_id + row.ids[place]));
  };
  int64_t of_a = 0;
  int64_t of_b = 0;
  for (int64_t i = 0; i < k; ++i) {
    const uint64_t first = next(a, of_a);
    const uint64_t second = next(b, of_b);
    const uint64_t nearest = std::min(first, second);
    write_results(exit, &nearest, 1, out.ids + i, out.distances + i);
    ++(second < first ? of_b : of_a);
  }
}

WorkManifest manifest_of(const GraphOfFile& old, const NewRows& fresh, const Resources& resources) {
  WorkManifest manifest;
  manifest.set("work", "an extended graph");
  put_source(old.x, manifest);
  put_source(fresh.x, manifest, " of the new rows");
  if (fresh.graph != nullptr) {
    const GraphHashes hashes = hash_graph(*fresh.graph, resources.with_progress({}));
    manifest.set("graph of the new rows", fmt::format("{:016x} {:016x}", hashes.ids, hashes.distances));
  }
  const GraphHashes hashes = hash_graph(old.graph, resources.with_progress({}));
  manifest.set("graph", fmt::format("{:016x} {:016x}", hashes.ids, hashes.distances));
  manifest.set("k", old.graph.k());
  manifest.set("metric", name_of(old.graph.metric()));
  return manifest;
}

class ExtendOnDisk {
 public:
  // Without a folder where memory is only counted.
  ExtendOnDisk(const GraphOfFile& old, const NewRows& fresh, const GraphMergeParams& params, const DiskWork* work,
               WorkFolder* folder, const Resources& resources)
      : graph_(old.graph),
        x_(old.x),
        fresh_(fresh.x),
        fresh_graph_(fresh.graph),
        params_(params),
        most_rows_(work == nullptr ? INT64_MAX : work->most_rows),
        folder_(folder),
        resources_(resources),
        quiet_(resources.with_progress({})),
        old_rows_(folder, kOldBlock, old.x.rows(), old.graph.k(), quiet_),
        new_rows_(folder, kNewBlock, fresh.x.rows(), old.graph.k(), quiet_) {}

  void count() {
    count_survey(x_, params_.check_finite, quiet_);
    count_survey(fresh_, params_.check_finite, quiet_);
    old_rows_.count(most_rows_);
    new_rows_.count(most_rows_);
    const Reservation section(new_rows_.section_bytes(), 0, quiet_);
    count_work(least_search(), quiet_);
    const Neighbors held(kFewestHeld, k(), quiet_);
    count_work(least_search(), quiet_);
  }

  void run(GraphSink& sink) {
    // Blocks without a survey belong to rows that cannot be verified.
    for (const std::string_view survey : {kOldSurvey, kNewSurvey}) {
      if (folder_->find(std::string(survey))) continue;
      old_rows_.forget();
      new_rows_.forget();
    }
    survey_rows(x_, "x", params_.check_finite, *folder_, std::string(kOldSurvey), resources_);
    survey_rows(fresh_, "new", params_.check_finite, *folder_, std::string(kNewSurvey), resources_);
    const int64_t rows = x_.rows() + fresh_.rows();
    folder_->require_space(old_rows_.missing_bytes() + new_rows_.missing_bytes() + sink.bytes_beside(folder_->path()));
    ProgressMeter meter("extend", rows, resources_);
    for (const RowBlock& block : old_rows_.missing(most_rows_)) {
      extend_old(block);
      meter.add(block.end - block.first);
      meter.poll();
    }
    for (const RowBlock& block : new_rows_.missing(std::min(most_rows_, rows_held()))) {
      search_new(block);
      meter.add(block.end - block.first);
      meter.poll();
    }
    meter.finish();
    ProgressMeter writing("write", rows, resources_);
    sink.begin();
    old_rows_.append_to(sink, writing);
    new_rows_.append_to(sink, writing);
    writing.finish();
  }

 private:
  int64_t k() const { return graph_.k(); }

  Footprint least_search() const {
    const auto of = [&](const VectorFile& queries, const VectorFile& base, int64_t neighbors) {
      if (queries.rows() == 0 || base.rows() == 0) return Footprint();
      const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), {neighbors, graph_.metric()});
      return Footprint{queries.memory_bytes() + base.memory_bytes()}.beside(
          search_footprint(shape, request(neighbors), RowFilter(), quiet_));
    };
    return of(x_, fresh_, k()).then(of(fresh_, x_, k())).then(of(fresh_, fresh_, k() + 1));
  }

  // New rows of a block.
  int64_t rows_held() const {
    const int64_t usual = std::min(new_rows_.block_rows(most_rows_), fresh_.rows());
    const Footprint beside = Footprint{new_rows_.section_bytes()}.beside(least_search());
    return rows_that_fit(std::min(kFewestHeld, usual), usual, quiet_,
                         [&](int64_t rows) { return Footprint{rows * 12 * k()}.beside(beside); });
  }

  static SearchRequest request(int64_t neighbors) {
    return {.k = neighbors, .check_finite = false, .results_in_memory = false};
  }

  // Calls put(query, ids, distances) for each, in order, with its nearest in `base`.
  template <typename Put>
  void search(const VectorFile& queries, const VectorFile& base, int64_t neighbors, const Put& put) {
    if (base.rows() == 0) {
      const std::vector<int64_t> none(static_cast<size_t>(neighbors), -1);
      for (int64_t query = 0; query < queries.rows(); ++query) put(query, none.data(), nullptr);
      return;
    }
    const SearchShape shape = check_knn(RowsInfo(queries), RowsInfo(base), {neighbors, graph_.metric()});
    const auto least = [&] { return search_footprint(shape, request(neighbors), RowFilter(), quiet_); };
    const auto put_all = [&](int64_t first, const NeighborsView& part) {
      for (int64_t i = 0; i < part.queries; ++i) put(first + i, part.ids + i * part.k, part.distances + i * part.k);
    };
    search_files(queries, base, quiet_, least, [&](RowSource& query_rows, RowSource& base_rows) {
      search_knn(shape, request(neighbors), {query_rows, base_rows, RowFilter()}, put_all, quiet_);
    });
  }

  // The graph's neighbours of the rows of a block, and the new rows.
  void extend_old(const RowBlock& block) {
    const VectorFile queries = slice_of(x_, block.first, block.end - block.first);
    RowBlocks::Writer writer(old_rows_, block);
    search(queries, fresh_, k(), [&](int64_t query, const int64_t* ids, const float* distances) {
      const int64_t row = block.first + query;
      put_nearest(graph_.metric(), {graph_.ids(row), graph_.distances(row), k(), 0, -1},
                  {ids, distances, k(), x_.rows(), -1}, k(), writer.next());
    });
    writer.commit();
  }

  // The old rows, and the other new ones.
  void search_new(const RowBlock& block) {
    const VectorFile queries = slice_of(fresh_, block.first, block.end - block.first);
    Neighbors near(block.end - block.first, k(), quiet_);
    const NeighborsView among_old = near.view();
    search(queries, x_, k(), [&](int64_t query, const int64_t* ids, const float* distances) {
      std::copy_n(ids, k(), among_old.ids + query * k());
      if (distances != nullptr) std::copy_n(distances, k(), among_old.distances + query * k());
    });
    RowBlocks::Writer writer(new_rows_, block);
    if (fresh_graph_ != nullptr) {
      for (int64_t query = 0; query < queries.rows(); ++query) {
        const int64_t row = block.first + query;
        put_nearest(graph_.metric(), {among_old.ids + query * k(), among_old.distances + query * k(), k(), 0, -1},
                    {fresh_graph_->ids(row), fresh_graph_->distances(row), k(), x_.rows(), -1}, k(), writer.next());
      }
      return writer.commit();
    }
    search(queries, fresh_, k() + 1, [&](int64_t query, const int64_t* ids, const float* distances) {
      put_nearest(graph_.metric(), {among_old.ids + query * k(), among_old.distances + query * k(), k(), 0, -1},
                  {ids, distances, k() + 1, x_.rows(), block.first + query}, k(), writer.next());
    });
    writer.commit();
  }

  const KnnGraph& graph_;
  const VectorFile& x_;
  const VectorFile& fresh_;
  const KnnGraph* const fresh_graph_;
  const GraphMergeParams& params_;
  const int64_t most_rows_;
  WorkFolder* const folder_;
  const Resources& resources_;
  const Resources quiet_;
  const RowBlocks old_rows_;
  const RowBlocks new_rows_;
};

}  // namespace

Footprint extend_on_disk_footprint(const GraphOfFile& old, const NewRows& fresh, const GraphMergeParams& params,
                                   const Resources& resources) {
  return counted(resources, [&](const Resources& counting) {
    ExtendOnDisk(old, fresh, params, nullptr, nullptr, counting).count();
    check_part(old, "the graph", PartDistances::as_computed, counting);
  });
}

GraphReport extend_on_disk(const GraphOfFile& old, const NewRows& fresh, const GraphMergeParams& params,
                           const DiskWork& work, GraphSink& sink, const Resources& resources) {
  const auto least = [&] { return extend_on_disk_footprint(old, fresh, params, resources); };
  return within_limits("the graph", resources, least, [&] {
    check_part(old, "the graph", PartDistances::as_computed, resources);
    WorkFolder folder(work.disk, work.folder, manifest_of(old, fresh, resources), resources);
    return repairing(folder, [&] {
      ExtendOnDisk(old, fresh, params, &work, &folder, resources).run(sink);
      GraphReport report;
      report.method = "extend";
      sink.finish(report);
      folder.finish({}, work.keep);
      return report;
    });
  });
}

}  // namespace kith
