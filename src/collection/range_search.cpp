// Range search of one version: what each part finds is kept as it comes, sorted, and merged query by query.
#include <kith/error.hpp>
#include <kith/range_search.hpp>

#include "collection/found_places.hpp"
#include "collection/host_limit.hpp"
#include "collection/part_search.hpp"
#include "collection/search.hpp"
#include "collection/search_memory.hpp"
#include "collection/search_queries.hpp"
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

// The rows of some queries in range, of one part.
struct Piece {
  size_t part;
  RangeNeighbors rows;
};

// One query's rows in a piece, and how many of them were taken.
struct Source {
  const Piece* piece;
  int64_t next;
  int64_t end;
};

class FoundPieces {
 public:
  explicit FoundPieces(int64_t queries) : of_query_(static_cast<size_t>(queries)) {}

  // `numbers`: of the piece's queries.
  void add(size_t part, RangeNeighbors rows, std::span<const int64_t> numbers) {
    const RangeView view = rows.view();
    if (view.size() == 0) return;
    pieces_.push_back(std::make_unique<Piece>(Piece{part, std::move(rows)}));
    for (int64_t q = 0; q < view.queries; ++q) {
      if (view.offsets[q] == view.offsets[q + 1]) continue;
      of_query_[static_cast<size_t>(numbers[static_cast<size_t>(q)])].push_back(
          {pieces_.back().get(), view.offsets[q], view.offsets[q + 1]});
    }
    total_ += view.size();
  }

  // All of them, nearest first, with packed places in the place of ids.
  RangeNeighbors merged(const Order& order, const Resources& resources) {
    const auto queries = static_cast<int64_t>(of_query_.size());
    constexpr int64_t kRowBytes = sizeof(int64_t) + sizeof(float);
    require_host_memory("the rows in range", total_ * kRowBytes + (queries + 1) * 8, resources);
    RangeNeighbors out(queries, total_, resources);
    int64_t at = 0;
    out.offsets()[0] = 0;
    for (int64_t q = 0; q < queries; ++q) {
      std::vector<Source>& sources = of_query_[static_cast<size_t>(q)];
      while (!sources.empty()) {
        auto best = sources.begin();
        for (auto other = best + 1; other != sources.end(); ++other) {
          if (order(distance(*other), place(*other), distance(*best), place(*best))) best = other;
        }
        out.ids()[at] = place(*best);
        out.distances()[at++] = distance(*best);
        if (++best->next == best->end) sources.erase(best);
      }
      out.offsets()[q + 1] = at;
    }
    return out;
  }

 private:
  static float distance(const Source& source) { return source.piece->rows.distances()[source.next]; }
  static int64_t place(const Source& source) {
    return packed(source.piece->part, source.piece->rows.ids()[source.next]);
  }

  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<std::vector<Source>> of_query_;
  int64_t total_ = 0;
};

RangeNeighbors copy_of(const RangeView& view, const Resources& resources) {
  RangeNeighbors copy(view.queries, view.size(), resources);
  std::copy_n(view.offsets, view.queries + 1, copy.offsets());
  std::copy_n(view.ids, view.size(), copy.ids());
  std::copy_n(view.distances, view.size(), copy.distances());
  return copy;
}

// A filter of one part: which rows, and whether they are few.
struct Kept {
  RowFilter filter;
  bool few = false;
};

void range_part(const CollectionState& state, size_t p, const MatrixView& queries, const CollectionRangeParams& wished,
                const Kept& kept, std::span<const int64_t> numbers, FoundPieces& found, const Resources& resources) {
  const StatePart& part = state.parts[p];
  const bool limited = is_limited(resources);
  const MatrixView view = part.rows->view();
  RangeSearchParams by_index;
  by_index.radius = wished.radius;
  by_index.filter = kept.filter;
  if (part.segment && !kept.few) {
    if (const SegmentIndex by = part.segment->index(queries.rows(), resources); by.index != nullptr) {
      by_index.probes = wished.probes;
      found.add(p, by.index->range_search(queries, by_index, resources), numbers);
      return;
    }
  }
  if (part.segment && !limited) {
    if (const auto flat = part.segment->flat(kept.few ? 0 : queries.rows(), resources)) {
      found.add(p, flat->range_search(queries, by_index, resources), numbers);
      return;
    }
  }
  RangeParams params;
  params.radius = wished.radius;
  params.metric = state.params->metric;
  params.check_finite = false;
  params.filter = kept.filter;
  if (!part.segment || (!limited && !view.empty())) {
    found.add(p, range_search(queries, view, params, resources), numbers);
    return;
  }
  const VectorFile asked = matrix_as_file(queries, "the queries");
  const VectorFile base =
      rows_as_file(part.rows, state.params->dtype, state.params->dimension, part.segment->file()->path());
  range_search(asked, base, [&](int64_t first, const RangeView& some) {
    found.add(p, copy_of(some, resources), numbers.subspan(static_cast<size_t>(first)));
  }, params, resources);
}

void range_together(const CollectionState& state, const MatrixView& queries, const CollectionRangeParams& params,
                     FoundPieces& found, const Resources& resources) {
  std::vector<int64_t> numbers(static_cast<size_t>(queries.rows()));
  std::iota(numbers.begin(), numbers.end(), 0);
  require_host_memory("a filter", memory_of_filter(state, params.filter), resources);
  const std::shared_ptr<const KeptItems> kept = state.keep(params.filter, params.filter.params, resources);
  for (size_t p = 0; p < state.parts.size() && queries.rows() > 0; ++p) {
    const PartFilter filter(state.parts[p], kept == nullptr ? nullptr : &kept->parts[p], resources);
    if (filter.count() == 0) continue;
    resources.check_cancelled();
    range_part(state, p, queries, params, {filter.filter(), filter.few()}, numbers, found, resources);
  }
}

void range_tenants(const CollectionState& state, const MatrixView& queries, const CollectionRangeParams& params,
                    FoundPieces& found, const Resources& resources) {
  for_tenants(state, params.filter, resources, [&](const TenantRound& round) {
    const std::span<const int64_t> all(round.queries);
    for (size_t i = 0; i < all.size();) {
      size_t end = i + 1;
      while (end < all.size() && round.group_of[end] == round.group_of[i]) ++end;
      const std::span<const int64_t> same = all.subspan(i, end - i);
      const MatrixBuffer some = some_queries(queries, same, resources);
      for (size_t p = 0; p < state.parts.size(); ++p) {
        const KeptPlaces& kept = round.groups[round.group_of[i]]->parts[p];
        if (kept.count() == 0) continue;
        range_part(state, p, some.view(), params, {kept.filter(), kept.few()}, same, found, resources);
      }
      resources.check_cancelled();
      i = end;
    }
  });
}

}  // namespace

CollectionRange range_search_state(const CollectionState& state, const MatrixView& given,
                                   const CollectionRangeParams& params, const Resources& resources) {
  if (params.probes != 0 && state.params->index.find("IVF") == std::string::npos) {
    throw InvalidArgument(fmt::format("the collection's index is '{}', which knows no probes", state.params->index));
  }
  check_params_of_queries(params.filter, given);
  const CollectionQueries queries(given, state, resources);
  FoundPieces found(given.rows());
  if (params.filter.params_of_queries.empty()) {
    range_together(state, queries.view(), params, found, resources);
  } else {
    range_tenants(state, queries.view(), params, found, resources);
  }
  CollectionRange result;
  result.neighbors = found.merged(Order(state), resources);
  result.texts = name_places(state, result.neighbors.ids(), result.neighbors.size(), resources);
  return result;
}

}  // namespace kith
