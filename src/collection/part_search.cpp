#include "collection/part_search.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/knn_filters.hpp>

#include "collection/host_limit.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kith {
namespace {

KnnParams exact_params(const CollectionState& state, int64_t k) {
  KnnParams params;
  params.k = k;
  params.metric = state.params->metric;
  params.check_finite = false;
  return params;
}

// From memory, or read where a limit leaves no mapping.
Neighbors exact_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                     const RowFilter& filter, bool few, const Resources& resources) {
  const MatrixView view = part.rows->view();
  if (part.segment && !is_limited(resources)) {
    if (const std::shared_ptr<const Index> flat = part.segment->flat(few ? 0 : queries.rows(), resources)) {
      SearchParams search;
      search.k = k;
      search.filter = filter;
      return flat->search(queries, search, resources);
    }
  }
  KnnParams params = exact_params(state, k);
  params.filter = filter;
  if (!part.segment || (!is_limited(resources) && !view.empty())) return knn(queries, view, params, resources);
  Neighbors out(queries.rows(), k, resources);
  const NeighborsView to = out.view();
  const VectorFile asked = matrix_as_file(queries, "the queries");
  const VectorFile base =
      rows_as_file(part.rows, state.params->dtype, state.params->dimension, part.segment->file()->path());
  knn(asked, base, [&](int64_t first, const NeighborsView& some) {
    std::copy_n(some.ids, some.queries * k, to.ids + first * k);
    std::copy_n(some.distances, some.queries * k, to.distances + first * k);
  }, params, resources);
  return out;
}

// The neighbours of some queries, into those of all.
void put(const Neighbors& found, std::span<const int64_t> which, const NeighborsView& into) {
  for (size_t i = 0; i < which.size(); ++i) {
    std::copy_n(found.ids(static_cast<int64_t>(i)), into.k, into.ids + which[i] * into.k);
    std::copy_n(found.distances(static_cast<int64_t>(i)), into.k, into.distances + which[i] * into.k);
  }
}

// Queries of which an index found fewer than there are.
std::vector<int64_t> found_too_few(const Neighbors& found, int64_t k, const auto& kept_of) {
  std::vector<int64_t> queries;
  for (int64_t q = 0; q < found.queries(); ++q) {
    const int64_t there = std::min(k, kept_of(q));
    if (there > 0 && found.ids(q)[there - 1] < 0) queries.push_back(q);
  }
  return queries;
}

}  // namespace

MatrixBuffer some_queries(const MatrixView& queries, std::span<const int64_t> which, const Resources& resources) {
  MatrixBuffer out(queries.dtype(), static_cast<int64_t>(which.size()), queries.cols(), "some of the queries", resources);
  const auto row_bytes = static_cast<size_t>(queries.cols() * size_of(queries.dtype()));
  for (size_t i = 0; i < which.size(); ++i) {
    std::memcpy(out.mutable_view().row(static_cast<int64_t>(i)), queries.row(which[i]), row_bytes);
  }
  return out;
}

PartFilter::PartFilter(const StatePart& part, const PlaceBits* kept, const Resources& resources)
    : rows_(part.rows->size()) {
  count_ = kept != nullptr ? kept->count() : part.living();
  if (count_ == rows_ || count_ == 0) return;
  if (kept != nullptr) {
    bits_ = kept->bits();
  } else {
    inverted_ = HostBuffer((rows_ + 7) / 8, "living rows", resources);
    for (int64_t i = 0; i < inverted_.bytes(); ++i) {
      inverted_.as<uint8_t>()[i] = static_cast<uint8_t>(~part.dead->bits()[i]);
    }
    bits_ = inverted_.as<uint8_t>();
  }
  if (count_ > rows_ / kListShare) return;
  list_ = HostBuffer(count_ * static_cast<int64_t>(sizeof(int64_t)), "the rows that a filter keeps", resources);
  int64_t* next = list_.as<int64_t>();
  for (int64_t byte = 0; byte < (rows_ + 7) / 8; ++byte) {
    // Bits behind the last row are only there in `inverted_`.
    for (unsigned left = bits_[byte]; left != 0; left &= left - 1) {
      const int64_t row = byte * 8 + __builtin_ctz(left);
      if (row < rows_) *next++ = row;
    }
  }
}

int64_t PartFilter::most_bytes(const StatePart& part) {
  const int64_t rows = part.rows->size();
  return (rows + 7) / 8 + rows / kListShare * static_cast<int64_t>(sizeof(int64_t));
}

RowFilter PartFilter::filter() const {
  if (bits_ == nullptr) return {};
  if (list_.bytes() > 0) return RowFilter::rows(list_.as<int64_t>(), count_);
  return RowFilter::bits(bits_, rows_);
}

Neighbors search_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                      const PartFilter& filter, const SearchParams& wished, const Resources& resources) {
  const bool few = filter.few() && filter.count() < part.rows->size();
  const auto exactly = [&](const MatrixView& some) {
    return exact_part(state, part, some, k, filter.filter(), few, resources);
  };
  const SegmentIndex by = part.segment && !filter.few() ? part.segment->index(queries.rows(), resources) : SegmentIndex{};
  if (by.index == nullptr) return exactly(queries);
  SearchParams params = wished;
  params.k = k;
  params.filter = filter.filter();
  try {
    Neighbors found = by.index->search(queries, params, resources);
    const std::vector<int64_t> again = found_too_few(found, k, [&](int64_t) { return filter.count(); });
    if (again.empty()) return found;
    if (!queries.space().host_readable()) return exactly(queries);
    put(exactly(some_queries(queries, again, resources).view()), again, found.view());
    return found;
  } catch (const CorruptFile& error) {
    part.segment->distrust_index(error.what(), resources);
    return exactly(queries);
  }
}

Neighbors search_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                      std::span<const KeptPlaces* const> groups, std::span<const size_t> group_of,
                      const SearchParams& wished, const Resources& resources) {
  Neighbors out(queries.rows(), k, resources);
  const NeighborsView to = out.view();
  std::fill_n(to.ids, to.queries * k, int64_t{-1});
  SegmentIndex by;
  std::vector<int64_t> exact;
  std::vector<int64_t> indexed;
  for (int64_t q = 0; q < queries.rows(); ++q) {
    const KeptPlaces& kept = *groups[group_of[static_cast<size_t>(q)]];
    if (kept.count() == 0) continue;
    if (part.segment && !kept.few() && by.index == nullptr) by = part.segment->index(queries.rows(), resources);
    (kept.few() || by.index == nullptr ? exact : indexed).push_back(q);
  }
  const auto kept_of = [&](int64_t q) -> const KeptPlaces& { return *groups[group_of[static_cast<size_t>(q)]]; };
  const auto filters_of = [&](std::span<const int64_t> which) {
    std::vector<RowFilter> filters;
    for (const int64_t q : which) filters.push_back(kept_of(q).filter());
    return filters;
  };
  if (!indexed.empty()) {
    const MatrixBuffer some = some_queries(queries, indexed, resources);
    const std::vector<RowFilter> filters = filters_of(indexed);
    SearchParams params = wished;
    params.k = k;
    params.filters = filters;
    try {
      const Neighbors found = by.index->search(some.view(), params, resources);
      put(found, indexed, to);
      for (const int64_t i : found_too_few(found, k, [&](int64_t at) { return kept_of(indexed[static_cast<size_t>(at)]).count(); })) {
        exact.push_back(indexed[static_cast<size_t>(i)]);
      }
    } catch (const CorruptFile& error) {
      part.segment->distrust_index(error.what(), resources);
      exact.insert(exact.end(), indexed.begin(), indexed.end());
    }
  }
  if (exact.empty()) return out;
  const MatrixView view = part.rows->view();
  const MatrixBuffer some = some_queries(queries, exact, resources);
  const std::vector<RowFilter> filters = filters_of(exact);
  if (!view.empty() && (!part.segment || !is_limited(resources))) {
    if (const std::shared_ptr<const Index> flat = part.segment ? part.segment->flat(0, resources) : nullptr) {
      SearchParams params;
      params.k = k;
      params.filters = filters;
      put(flat->search(some.view(), params, resources), exact, to);
      return out;
    }
    put(knn(some.view(), view, filters, exact_params(state, k), resources), exact, to);
    return out;
  }
  // Read from the file, a group at a time.
  for (size_t i = 0; i < exact.size();) {
    size_t end = i + 1;
    const size_t group = group_of[static_cast<size_t>(exact[i])];
    while (end < exact.size() && group_of[static_cast<size_t>(exact[end])] == group) ++end;
    const std::span<const int64_t> same = std::span(exact).subspan(i, end - i);
    const MatrixView rows = some.view().slice(static_cast<int64_t>(i), static_cast<int64_t>(end - i));
    put(exact_part(state, part, rows, k, filters[i], true, resources), same, to);
    i = end;
  }
  return out;
}

}  // namespace kith
