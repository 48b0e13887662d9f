// Exact search by several ranks.
//
// Divided queries: a rank searches all rows for its queries, and nothing is exchanged. Divided rows: a rank searches
// its rows for all queries, one block of queries after the other; each block belongs to a rank, which receives the
// results of the others, 12 bytes a neighbour, and merges them.
#include <kith/distributed.hpp>

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/name_table.hpp"
#include "exact/knn_on_parts.hpp"
#include "exact/search_checks.hpp"
#include "io/row_slice.hpp"
#include "ranks/agreement.hpp"
#include "ranks/join_neighbors.hpp"
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr NameTable<Dealt, 3> kDealtNames{
    {{{Dealt::automatic, "auto"}, {Dealt::queries, "queries"}, {Dealt::rows, "rows"}}}};

constexpr int64_t kBlockBytes = 32 << 20;  // of what all ranks have found for a block of queries

std::string describe(const SearchShape& shape, const KnnParams& params, Dealt dealt) {
  return fmt::format(
      "knn of {} {} queries in {} {} rows of {} values, k = {}, metric {}, filter {} of {}, "
      "check_finite {}, dealt {}",
      shape.queries, name_of(shape.query_dtype), shape.rows, name_of(shape.base_dtype), shape.cols, params.k,
      name_of(params.metric), static_cast<int>(params.filter.form()), params.filter.size(), params.check_finite,
      name_of(dealt));
}

// A pure function of the request, so that all ranks make the same choice.
bool ranks_deal_rows(const SearchShape& shape, const KnnParams& params, Dealt dealt, int size) {
  const bool filters = params.filter.form() != RowFilter::Form::none;
  if (dealt == Dealt::rows && filters) {
    throw Unsupported("a search with a filter deals out queries; leave dealt at auto, or search without the filter");
  }
  return dealt == Dealt::automatic ? deals_rows(shape, params.k, filters, size) : dealt == Dealt::rows;
}

// Merges what the ranks have found in their rows. All ranks exchange blocks of queries in the same order; each exchange
// begins with an agreement.
class RankJoin {
 public:
  RankJoin(Communicator& ranks, const SearchShape& shape, const KnnParams& params, const Resources& resources)
      : ranks_(ranks), queries_(shape.queries), k_(params.k), metric_(params.metric) {
    const int size = ranks.size();
    for (int rank = 0; rank < size; ++rank) {
      parts_.push_back(part_of(shape.rows, 1, rank, size));
      widths_.push_back(std::min(k_, parts_.back().count));
    }
    const int64_t all_widths = std::accumulate(widths_.begin(), widths_.end(), int64_t{0});
    const int64_t most = std::max<int64_t>(kBlockBytes / (kNeighborBytes * std::max<int64_t>(all_widths, 1)), 1);
    block_ = std::clamp<int64_t>(divide_up(queries_, size), 1, most);
    ids_ = HostArray<int64_t>(block_ * width(), "the neighbours' ids", resources);
    distances_ = HostArray<float>(block_ * width(), "the neighbours' distances", resources);
    all_ids_ = HostArray<int64_t>(block_ * all_widths, "the ranks' neighbours", resources);
    all_distances_ = HostArray<float>(block_ * all_widths, "the ranks' neighbours", resources);
    joined_ids_ = HostArray<int64_t>(block_ * k_, "the neighbours' ids", resources);
    joined_distances_ = HostArray<float>(block_ * k_, "the neighbours' distances", resources);
  }

  RankPart part() const { return parts_[static_cast<size_t>(ranks_.rank())]; }
  int64_t width() const { return widths_[static_cast<size_t>(ranks_.rank())]; }  // found by this rank for a query
  int64_t blocks() const { return divide_up(queries_, block_); }
  RankPart block(int64_t number) const { return {number * block_, std::min(block_, queries_ - number * block_)}; }
  // The queries whose results this rank gets: whole blocks.
  RankPart owned(int rank) const { return part_of(queries_, block_, rank, ranks_.size()); }

  // Where this rank writes its results for a block of queries.
  NeighborsView own(int64_t queries) { return {ids_.data(), distances_.data(), queries, width(), {}}; }

  // Passes the block to the owner's sink, whose exceptions end all ranks at the next agreement.
  void exchange(int64_t number, const NeighborsSink& sink) {
    agree(ranks_, std::exchange(sink_error_, nullptr));
    const RankPart some = block(number);
    int owner = 0;
    while (owned(owner).end() <= some.first) ++owner;
    gather(owner, ids_.data(), all_ids_.data(), some.count);
    gather(owner, distances_.data(), all_distances_.data(), some.count);
    if (owner != ranks_.rank()) return;
    try {
      join(some.count);
      sink(some.first, {joined_ids_.data(), joined_distances_.data(), some.count, k_, {}});
    } catch (...) {
      sink_error_ = std::current_exception();
    }
  }
  // After the last block.
  void end() const {
    if (sink_error_ != nullptr) std::rethrow_exception(sink_error_);
  }

 private:
  template <typename T>
  void gather(int owner, const T* own, T* all, int64_t queries) {
    std::vector<int64_t> bytes;
    for (const int64_t width : widths_) bytes.push_back(array_bytes<T>(queries * width));
    ranks_.gather(owner, own, bytes, all);
  }

  void join(int64_t queries) {
    std::vector<FoundInPart> found;
    int64_t at = 0;
    for (size_t rank = 0; rank < parts_.size(); ++rank) {
      found.push_back({all_ids_.data() + at, all_distances_.data() + at, widths_[rank], parts_[rank].first});
      at += queries * widths_[rank];
    }
    join_neighbors(found, metric_, {joined_ids_.data(), joined_distances_.data(), queries, k_, {}});
  }

  Communicator& ranks_;
  const int64_t queries_;
  const int64_t k_;
  const Metric metric_;
  std::vector<RankPart> parts_;  // of the rows
  std::vector<int64_t> widths_;
  int64_t block_ = 1;
  HostArray<int64_t> ids_;
  HostArray<float> distances_;
  HostArray<int64_t> all_ids_;
  HostArray<float> all_distances_;
  HostArray<int64_t> joined_ids_;
  HostArray<float> joined_distances_;
  std::exception_ptr sink_error_;
};

// Searches this rank's rows; search(params, take) passes results to take(first query, found), in any batches.
template <typename Search>
void join_rows(RankJoin& join, Communicator& ranks, const KnnParams& params, const NeighborsSink& sink,
               const Search& search) {
  in_lockstep(ranks, [&] {
    int64_t number = 0;
    int64_t filled = 0;  // queries of that block
    KnnParams own = params;
    own.k = join.width();
    const auto take = [&](int64_t, const NeighborsView& found) {
      for (int64_t at = 0; at < found.queries;) {
        const int64_t room = join.block(number).count;
        const int64_t some = std::min(found.queries - at, room - filled);
        const NeighborsView to = join.own(room);
        std::copy_n(found.ids + at * own.k, some * own.k, to.ids + filled * own.k);
        std::copy_n(found.distances + at * own.k, some * own.k, to.distances + filled * own.k);
        at += some;
        filled += some;
        if (filled < room) continue;
        join.exchange(number++, sink);
        filled = 0;
      }
    };
    if (own.k > 0) search(own, take);
    while (number < join.blocks()) join.exchange(number++, sink);  // of a rank without rows
    join.end();
  });
}

void check_host_output(const NeighborsView& out, int64_t queries, int64_t k) {
  check_output(out, queries, k);
  if (!out.space.host_readable()) throw Unsupported("results of several ranks go to arrays in host memory");
}

void put(int64_t first, const NeighborsView& found, const NeighborsView& all) {
  std::copy_n(found.ids, found.queries * found.k, all.ids + first * all.k);
  std::copy_n(found.distances, found.queries * found.k, all.distances + first * all.k);
}

// Gives all ranks the results of each: consecutive queries, in the order of the ranks.
void give_to_all(Communicator& ranks, const std::vector<RankPart>& owned, const NeighborsView& out) {
  std::vector<int64_t> id_bytes;
  std::vector<int64_t> distance_bytes;
  for (const RankPart& part : owned) {
    id_bytes.push_back(array_bytes<int64_t>(part.count * out.k));
    distance_bytes.push_back(array_bytes<float>(part.count * out.k));
  }
  const int64_t at = owned[static_cast<size_t>(ranks.rank())].first * out.k;
  ranks.all_gather(out.ids + at, id_bytes, out.ids);
  ranks.all_gather(out.distances + at, distance_bytes, out.distances);
}

}  // namespace

std::string_view name_of(Dealt dealt) { return kDealtNames.name(dealt); }
Dealt parse_dealt(std::string_view name) { return kDealtNames.parse(name, "dealt"); }

void knn(Communicator& ranks, const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink,
         const KnnParams& params, const Resources& resources, Dealt dealt) {
  const DefaultFloatMode mode;
  const SearchShape shape = together(ranks, [&] {
    if (!sink) throw InvalidArgument("the search needs a sink for its results");
    return check_knn(RowsInfo(queries), RowsInfo(base), params);
  });
  check_same_request(ranks, describe(shape, params, dealt));
  const auto naming = [&](int64_t first_query, int64_t first_row, const auto& work) {
    naming_files({{"query", queries}, {"base", base}}, [&] { with_rows_from(first_query, first_row, work); });
  };
  if (!together(ranks, [&] { return ranks_deal_rows(shape, params, dealt, ranks.size()); })) {
    const RankPart part = part_of(shape.queries, 1, ranks.rank(), ranks.size());
    return together(ranks, [&] {
      if (part.count == 0) return;
      const auto pass_on = [&](int64_t first, const NeighborsView& found) { sink(part.first + first, found); };
      naming(part.first, 0, [&] { knn(slice_of(queries, part.first, part.count), base, pass_on, params, resources); });
    });
  }
  warn_of_short_base(shape.queries, shape.rows, params.k, resources);
  RankJoin join = together(ranks, [&] { return RankJoin(ranks, shape, params, resources); });
  join_rows(join, ranks, params, sink, [&](const KnnParams& own, const NeighborsSink& take) {
    const RankPart rows = join.part();
    naming(0, rows.first, [&] { knn(queries, slice_of(base, rows.first, rows.count), take, own, resources); });
  });
}

void knn(Communicator& ranks, const VectorFile& queries, const VectorFile& base, const NeighborsView& out,
         const KnnParams& params, const Resources& resources, Dealt dealt) {
  RankPart own;  // queries that this rank's sink has got
  const auto keep = [&](int64_t first, const NeighborsView& found) {
    if (own.count == 0) own.first = first;
    own.count += found.queries;
    put(first, found, out);
  };
  together(ranks, [&] { check_host_output(out, queries.rows(), params.k); });
  knn(ranks, queries, base, keep, params, resources, dealt);
  const auto size = static_cast<size_t>(ranks.size());
  std::vector<RankPart> owned(size);
  ranks.all_gather(&own, std::vector<int64_t>(size, sizeof(own)), owned.data());
  give_to_all(ranks, owned, out);
}

void knn(Communicator& ranks, const MatrixView& given_queries, const MatrixView& given_base, const NeighborsView& out,
         const KnnParams& params, const Resources& given, Dealt dealt) {
  const DefaultFloatMode mode;
  const SearchShape shape = together(ranks, [&] {
    check_host_output(out, given_queries.rows(), params.k);
    return check_knn(RowsInfo(given_queries), RowsInfo(given_base), params);
  });
  check_same_request(ranks, describe(shape, params, dealt));
  const bool rows = together(ranks, [&] { return ranks_deal_rows(shape, params, dealt, ranks.size()); });
  std::vector<RankPart> owned;
  if (!rows) {
    for (int rank = 0; rank < ranks.size(); ++rank) owned.push_back(part_of(shape.queries, 1, rank, ranks.size()));
    const RankPart part = owned[static_cast<size_t>(ranks.rank())];
    together(ranks, [&] {
      if (part.count == 0) return;
      with_rows_from(part.first, 0, [&] {
        const int64_t at = part.first * params.k;
        knn(given_queries.slice(part.first, part.count), given_base,
            NeighborsView{out.ids + at, out.distances + at, part.count, params.k, {}}, params, given);
      });
    });
  } else {
    warn_of_short_base(shape.queries, shape.rows, params.k, given);
    RankJoin join = together(ranks, [&] { return RankJoin(ranks, shape, params, given); });
    for (int rank = 0; rank < ranks.size(); ++rank) owned.push_back(join.owned(rank));
    const auto keep = [&](int64_t first, const NeighborsView& found) { put(first, found, out); };
    join_rows(join, ranks, params, keep, [&](const KnnParams& own, const NeighborsSink& take) {
      // Rows of f64 lose what all of them lose together.
      with_narrowed("the search", {"queries", given_queries, "base", given_base}, params.metric, given,
                    [&](const MatrixView& queries, const MatrixView& base, const Resources& resources) {
                      const MatrixView part = base.slice(join.part().first, join.part().count);
                      const HostArray<int64_t> ids(join.block(0).count * own.k, "the neighbours' ids", resources);
                      const HostArray<float> distances(ids.size(), "the neighbours' distances", resources);
                      for (int64_t number = 0; number < join.blocks(); ++number) {
                        const RankPart some = join.block(number);
                        const NeighborsView found{ids.data(), distances.data(), some.count, own.k, {}};
                        with_rows_from(some.first, join.part().first, [&] {
                          knn(queries.slice(some.first, some.count), part, found, own, resources);
                        });
                        take(some.first, found);
                      }
                    });
    });
  }
  give_to_all(ranks, owned, out);
}

Neighbors knn(Communicator& ranks, const MatrixView& queries, const MatrixView& base, const KnnParams& params,
              const Resources& resources, Dealt dealt) {
  Neighbors result = together(ranks, [&] {
    params.validate();
    return Neighbors(queries.rows(), params.k, resources);
  });
  knn(ranks, queries, base, result.view(), params, resources, dealt);
  return result;
}

}  // namespace kith
