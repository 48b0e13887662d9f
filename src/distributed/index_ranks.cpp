// Indexes by several ranks: building a file, and searching with shares of the queries.
#include <kith/distributed.hpp>

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "exact/knn_on_parts.hpp"
#include "exact/search_checks.hpp"
#include "io/row_slice.hpp"
#include "ranks/agreement.hpp"
#include "rows/rows_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace kith {
namespace {

std::string describe(const Index& index, const IndexRows& rows) {
  const IndexParams& params = index.params();
  return fmt::format("an index {} of {} {} rows of {} values, metric {}, seed {}, expected_rows {}, ids {}, training rows {}",
                     index.factory(), rows.rows.rows(), name_of(rows.rows.dtype()), rows.rows.cols(),
                     name_of(params.metric), params.seed, params.expected_rows, rows.ids.size,
                     rows.training == nullptr ? 0 : rows.training->rows());
}

std::string describe(const Index& index, const RowsInfo& queries, const SearchParams& params) {
  return fmt::format("a search of {} with {} vectors for {} {} queries of {} values, k = {}, probes {}, refine {}, beam {}, "
                     "width {}, recall {}, filter {} of {}, filters {}",
                     index.factory(), index.size(), queries.rows, name_of(queries.dtype), queries.cols, params.k,
                     params.probes, params.refine, params.beam, params.width, params.recall,
                     static_cast<int>(params.filter.form()), params.filter.size(), params.filters.size());
}

void check_filters(int64_t queries, const SearchParams& params) {
  const auto filters = static_cast<int64_t>(params.filters.size());
  if (filters == 0 || filters == queries) return;
  throw InvalidArgument(fmt::format("{} filters for {} queries; give one for each", filters, queries));
}

// Selects the filters of a rank's queries, if there is one for each query.
SearchParams filtered_for(RankPart queries, const SearchParams& params) {
  SearchParams own = params;
  if (params.filters.empty()) return own;
  own.filters = params.filters.subspan(static_cast<size_t>(queries.first), static_cast<size_t>(queries.count));
  return own;
}

// A temporary file beside the one that the call writes; removed by the destructor.
class FileBeside {
 public:
  explicit FileBeside(std::string path) : path_(std::move(path)) {}
  ~FileBeside() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

std::string part_path(const std::string& path, int rank) { return fmt::format("{}.rank-{}.part", path, rank); }

// Gives rank 0's training to all.
void train_once(Index& index, Communicator& ranks, const IndexRows& rows, const std::string& path,
                const Resources& resources) {
  const std::string from = path + ".trained.part";
  std::optional<FileBeside> trained;  // until all have read it
  together(ranks, [&] {
    if (ranks.rank() > 0) return;
    trained.emplace(from);
    index.train(rows.training == nullptr ? rows.rows : *rows.training, resources);
    index.save(from, resources);
  });
  together(ranks, [&] {  // rank 0 has what it would read: all go on with the same
    if (ranks.rank() > 0) index = Index::load(from, resources);
  });
}

}  // namespace

void build_index(Index& index, Communicator& ranks, const IndexRows& rows, const std::string& path,
                 const Resources& resources) {
  const DefaultFloatMode mode;
  together(ranks, [&] {
    if (index.size() > 0) throw InvalidState("ranks build an index that has no rows; add to this one with one process");
    if (index.factory().find("Graph") != std::string::npos) {
      throw Unsupported(fmt::format("'{}' has a graph of all its rows, which one process builds", index.factory()));
    }
    if (rows.ids.size > 0 && rows.ids.size != rows.rows.rows()) {
      throw InvalidArgument(fmt::format("{} ids for {} rows; give one for each", rows.ids.size, rows.rows.rows()));
    }
  });
  check_same_request(ranks, describe(index, rows));
  // Whether one rank has a training is what all must have.
  const auto trained = [&] {
    const int64_t own = index.trained() ? 1 : 0;
    std::vector<int64_t> each(static_cast<size_t>(ranks.size()));
    ranks.all_gather(&own, std::vector<int64_t>(each.size(), sizeof(own)), each.data());
    return std::find(each.begin(), each.end(), 0) == each.end();
  };
  if (!trained()) train_once(index, ranks, rows, path, resources);

  const RankPart share = part_of(rows.rows.rows(), 1, ranks.rank(), ranks.size());
  const FileBeside own(part_path(path, ranks.rank()));
  together(ranks, [&] {
    if (share.count == 0 && ranks.rank() > 0) return;
    const VectorView<const int64_t> ids{rows.ids.data == nullptr ? nullptr : rows.ids.data + share.first,
                                        rows.ids.size == 0 ? 0 : share.count, rows.ids.space};
    with_rows_from(0, share.first, [&] {
      index.save_added(slice_of(rows.rows, share.first, share.count), ids, own.path(), resources);
    });
  });
  together(ranks, [&] {
    if (ranks.rank() > 0) return;
    std::vector<std::string> files;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == 0 || part_of(rows.rows.rows(), 1, rank, ranks.size()).count > 0) files.push_back(part_path(path, rank));
    }
    Index::merge_files(files, path, {.shift_ids = rows.ids.size == 0}, resources);
  });
}

void search(const Index& index, Communicator& ranks, const VectorFile& queries, const NeighborsSink& sink,
            const SearchParams& params, const Resources& resources) {
  const DefaultFloatMode mode;
  together(ranks, [&] {
    if (!sink) throw InvalidArgument("the search needs a sink for its results");
    KnnParams{.k = params.k}.validate();
    check_filters(queries.rows(), params);
  });
  check_same_request(ranks, describe(index, RowsInfo(queries), params));
  const RankPart share = part_of(queries.rows(), 1, ranks.rank(), ranks.size());
  together(ranks, [&] {
    const ReadMemory memory = queries.reserve_memory(resources);
    // A query, its results and the search's memory for them: at most a quarter of the limit, and 64 MiB.
    const int64_t each = 4 * (RowsInfo(queries).row_bytes() + params.k * kNeighborBytes);
    const int64_t room = std::min<int64_t>(64 << 20, resources.host_memory()->available() / 4);
    const int64_t piece = std::clamp<int64_t>(room / each, 1, std::max<int64_t>(share.count, 1));
    MatrixBuffer rows(queries.dtype(), piece, queries.cols(), "a piece of the queries", resources);
    for (int64_t first = share.first; first < share.end(); first += piece) {
      resources.check_cancelled();
      const MutableMatrixView some = rows.mutable_view().slice(0, std::min(piece, share.end() - first));
      queries.read(first, some);
      const SearchParams own = filtered_for({first, some.rows()}, params);
      with_rows_from(first, 0, [&] { sink(first, index.search(some, own, resources).view()); });
    }
  });
}

void search(const Index& index, Communicator& ranks, const MatrixView& queries, const NeighborsView& out,
            const SearchParams& params, const Resources& resources) {
  const DefaultFloatMode mode;
  together(ranks, [&] {
    check_output(out, queries.rows(), params.k);
    check_filters(queries.rows(), params);
    if (!out.space.host_readable()) throw Unsupported("results of several ranks go to arrays in host memory");
  });
  check_same_request(ranks, describe(index, RowsInfo(queries), params));
  std::vector<int64_t> id_bytes;
  std::vector<int64_t> distance_bytes;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const int64_t found = part_of(queries.rows(), 1, rank, ranks.size()).count * params.k;
    id_bytes.push_back(array_bytes<int64_t>(found));
    distance_bytes.push_back(array_bytes<float>(found));
  }
  const RankPart share = part_of(queries.rows(), 1, ranks.rank(), ranks.size());
  const int64_t at = share.first * params.k;
  together(ranks, [&] {
    if (share.count == 0) return;
    with_rows_from(share.first, 0, [&] {
      index.search(queries.slice(share.first, share.count), {out.ids + at, out.distances + at, share.count, params.k, {}},
                   filtered_for(share, params), resources);
    });
  });
  ranks.all_gather(out.ids + at, id_bytes, out.ids);
  ranks.all_gather(out.distances + at, distance_bytes, out.distances);
}

Neighbors search(const Index& index, Communicator& ranks, const MatrixView& queries, const SearchParams& params,
                 const Resources& resources) {
  Neighbors result = together(ranks, [&] {
    KnnParams{.k = params.k}.validate();
    return Neighbors(queries.rows(), params.k, resources);
  });
  search(index, ranks, queries, result.view(), params, resources);
  return result;
}

}  // namespace kith
