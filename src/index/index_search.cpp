// What every kind of index shares when it is searched: the checks, ids, searches of nothing, a second look at
// candidates with vectors of a file.
#include <kith/index.hpp>

#include "cuda/device_memory.hpp"
#include "rows/knn_checks.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_limit.hpp"
#include "index/file_vectors.hpp"
#include "index/host_rows.hpp"
#include "index/id_filter.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_impl.hpp"
#include "index/index_limits.hpp"
#include "index/refine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kith {
namespace {

// What any queries are searched in before the first add.
MatrixView no_rows(const MatrixView& queries) {
  return {nullptr, queries.dtype(), {0, queries.cols(), queries.cols()}};
}

// Rows become ids where they lie.
void rows_to_ids(const IdTable& ids, const VectorView<int64_t>& rows, const Resources& resources) {
  if (ids.plain() || rows.size == 0) return;
  if (rows.space.host_readable()) return ids.rows_to_ids(rows.data, rows.size);
  HostArray<int64_t> found(rows.size, "the ids found", resources);
  const int device = rows.space.device;
  wait_for_stream(device, resources);
  copy_to_host(rows.data, found.bytes(), device, found.data());
  ids.rows_to_ids(found.data(), rows.size);
  const MatrixView bytes(found.data(), DType::u8, {1, found.bytes(), found.bytes()});
  copy_to_device(bytes, reinterpret_cast<std::byte*>(rows.data), device, resources);
}

SearchParams for_candidates(const SearchParams& params, int64_t rows) {
  SearchParams coarse = params;
  coarse.k = candidates_for(params.refine > 0 ? params.refine : kDefaultRefine, params.k, rows);
  return coarse;
}

void search_and_refine_from(const VectorFile& file, const IndexVersion& version, const MatrixView& queries,
                            const NeighborsView& out, const SearchParams& params, const IndexParams& own,
                            const Resources& resources) {
  const FileVectors vectors(file, version, own, resources);
  const HostRows on_host(queries, resources);
  const HostNeighbors results(out, resources);
  const SearchParams coarse = for_candidates(params, rows_of(&version));
  const auto search = [&](const MatrixView& some, const NeighborsView& candidates) {
    version.state->search(some, candidates, coarse, resources);
  };
  search_and_refine({vectors, own.metric, coarse.k}, search, on_host.view(), results.view(), resources);
  results.deliver(resources);
}

// What a search takes on the host beside its results.
int64_t smallest_bytes(const IndexVersion* version, const RowsInfo& queries, SearchParams params,
                       const Resources& resources) {
  const IndexState* const state = state_of(version);
  if (rows_of(version) == 0) return 0;
  const int64_t filter = IdFilter::bytes_for(params.filter, version->ids);
  params.filter = IdFilter::shape_of(params.filter, version->ids);
  if (params.refine_from == nullptr) return filter + state->smallest_host_bytes(queries, params, resources);
  const SearchParams coarse = for_candidates(params, rows_of(version));
  return filter + HostRows::bytes_for(queries) + params.refine_from->memory_bytes() +
         refine_bytes(coarse.k, queries.cols, state->smallest_host_bytes(queries, coarse, resources), resources);
}

// A search of the version. The queries have lost the offset that its vectors lost.
template <typename Impl>
void search_version(const Impl& impl, const IndexVersion* version, const MatrixView& queries, const NeighborsView& out,
                    const SearchParams& params, const Resources& resources) {
  const IndexParams& own = impl.params;
  KnnParams{params.k, own.metric}.validate();
  check_search_params(params.probes, params.refine);
  check_output(out, queries.rows(), params.k);
  impl.refuse_untrained(version, "it is searched");
  const IndexState* const state = state_of(version);
  if (state != nullptr) check_queries(state->content(), queries, own.metric);
  if (params.refine_from != nullptr) {
    refuse_unshifted_file(offset_of(version), params.refine_from->path());
    check_refine_from(*params.refine_from, state, own);
  }
  if (rows_of(version) == 0) {
    return knn(queries, no_rows(queries), out, {params.k, own.metric, own.check_finite, params.filter}, resources);
  }
  warn_of_short_base(queries.rows(), rows_of(version), params.k, resources);
  const auto least = [&](int64_t probes) {
    SearchParams probing = params;
    probing.probes = probes;
    return Footprint{smallest_bytes(version, RowsInfo(queries), probing, resources)};
  };
  const auto search_rows = [&] {
    const IdFilter filter(params.filter, version->ids, resources);
    SearchParams of_rows = params;
    of_rows.filter = filter.of_rows();
    if (params.refine_from != nullptr) {
      search_and_refine_from(*params.refine_from, *version, queries, out, of_rows, own, resources);
    } else {
      state->search(queries, out, of_rows, resources);
    }
    rows_to_ids(version->ids, {out.ids, out.queries * out.k, out.space}, resources);
  };
  const bool on_gpu = works_on_gpu(resources, {queries.space(), out.space, state->content().space});
  const auto work = [&] {
    try {
      search_rows();
    } catch (const OutOfMemory&) {  // a query whose lists hold too few vectors looks at more of them
      if (!on_gpu && counts_memory(resources)) {
        require_memory("the search", least(std::numeric_limits<int64_t>::max()), resources);
      }
      throw;
    }
  };
  within_index_limits("the search", on_gpu, resources, [&] { return least(params.probes); }, work);
}

template <typename Impl>
RangeNeighbors range_search_version(const Impl& impl, const IndexVersion* version, const MatrixView& queries,
                                    const RangeSearchParams& params, const Resources& resources) {
  const IndexParams& own = impl.params;
  const RangeParams whole{params.radius, own.metric,          own.check_finite,
                          params.filter, params.result_space, params.allocate};
  whole.validate();
  check_search_params(params.probes, 0);
  impl.refuse_untrained(version, "it is searched");
  const IndexState* const state = state_of(version);
  if (state != nullptr) check_queries(state->content(), queries, own.metric);
  if (rows_of(version) == 0) {
    return kith::range_search(queries, no_rows(queries), whole, resources);
  }
  const auto least = [&] {
    RangeSearchParams of_rows = params;
    of_rows.filter = IdFilter::shape_of(params.filter, version->ids);
    return Footprint{IdFilter::bytes_for(params.filter, version->ids) +
                         state->smallest_range_bytes(RowsInfo(queries), of_rows, resources),
                     0, true};
  };
  const bool on_gpu = works_on_gpu(resources, {queries.space(), params.result_space, state->content().space});
  return within_index_limits("the search", on_gpu, resources, least, [&] {
    const IdFilter filter(params.filter, version->ids, resources);
    RangeSearchParams of_rows = params;
    of_rows.filter = filter.of_rows();
    RangeNeighbors found = state->range_search(queries, of_rows, resources);
    rows_to_ids(version->ids, {found.ids(), found.size(), found.space()}, resources);
    // A kind of index may know host memory alone.
    return in_space(std::move(found), params.result_space, params.allocate, resources);
  });
}

// call(queries, resources) with queries that have lost the version's offset.
template <typename Call>
decltype(auto) with_narrowed_queries(const MatrixView& queries, const Offset& offset, const Resources& resources,
                                     const Call& call) {
  if (!is_narrowed(queries, offset)) return call(queries, resources);
  return within_limits("the search", resources, [&](const Resources& used) {
    const NarrowedRows narrowed("queries", queries, offset, OfRounding::silent, used);
    return call(narrowed.view(), used);
  });
}

}  // namespace

bool IndexAccess::ids_are_rows(const Index& index) {
  const std::shared_ptr<const IndexVersion> version = index.impl_->versions.current();
  if (version == nullptr) return true;
  const LiveRows& live = version->ids.live();
  if (version->ids.plain() && live.all()) return true;
  int64_t number = 0;  // among the live rows
  for (int64_t row = 0; row < live.stored(); ++row) {
    if (live.has(row) && version->ids.id(row) != number++) return false;
  }
  return true;
}

int64_t IndexAccess::smallest_search_bytes(const Index& index, const MatrixView& queries, const SearchParams& params,
                                           const Resources& resources) {
  const std::shared_ptr<const IndexVersion> version = index.impl_->versions.current();
  return smallest_bytes(version.get(), RowsInfo(queries), params, resources);
}

Neighbors Index::search(const MatrixView& queries, const SearchParams& params, const Resources& resources) const {
  KnnParams{params.k, impl_->params.metric}.validate();
  check_result_size(queries.rows(), params.k);
  return within_limits("the search", resources, [&](const Resources& used) {
    Neighbors result(queries.rows(), params.k, used);
    search(queries, result.view(), params, used);
    return result;
  });
}

void Index::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                   const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  with_narrowed_queries(queries, offset_of(version.get()), resources,
                        [&](const MatrixView& rows, const Resources& used) {
                          search_version(*impl_, version.get(), rows, out, params, used);
                        });
}

RangeNeighbors Index::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                   const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const auto search = [&](const MatrixView& rows, const Resources& used) {
    return range_search_version(*impl_, version.get(), rows, params, used);
  };
  return with_narrowed_queries(queries, offset_of(version.get()), resources, search);
}

namespace {

int64_t reconstruct_bytes_of(const IndexState* state, int64_t count, const MutableMatrixView& out, int threads) {
  return array_bytes<uint32_t>(count) + (state == nullptr ? 0 : state->reconstruct_bytes(count, threads)) +
         (out.dtype() == DType::f64 ? NarrowedRows::bytes_for(out) : 0);
}

}  // namespace

void Index::reconstruct(VectorView<const int64_t> ids, const MutableMatrixView& out, const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  check_ids(ids, ids.size);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const IndexState* const state = state_of(version.get());
  check_reconstructed(state, ids.size, out);
  const auto least = [&] { return Footprint{reconstruct_bytes_of(state, ids.size, out, resources.threads())}; };
  const bool on_gpu = state != nullptr && works_on_gpu(resources, {state->content().space});
  within_index_limits("the reconstructed vectors", on_gpu, resources, least, [&] {
    HostArray<uint32_t> rows(ids.size, "the rows to reconstruct", resources);
    for (int64_t i = 0; i < ids.size; ++i) {
      const int64_t row = version == nullptr ? -1 : version->ids.row(ids[i]);
      if (row < 0) throw InvalidArgument(fmt::format("the index has no vector with the id {}", ids[i]));
      rows[i] = static_cast<uint32_t>(row);
    }
    if (ids.size == 0) return;
    MatrixBuffer narrow;
    const bool wide = out.dtype() == DType::f64;
    if (wide) narrow = MatrixBuffer(DType::f32, out.rows(), out.cols(), "the reconstructed vectors", resources);
    const MutableMatrixView found = wide ? narrow.mutable_view() : out;
    state->reconstruct(rows.data(), found, resources);
    if (wide || version->offset != nullptr) restore_rows(found, version->offset, out);
  });
}

}  // namespace kith
