// The part of a search that all kinds of index share: checks, ids, filters, empty indexes, and refinement with vectors
// of a file.
#include <kith/index.hpp>
#include <kith/knn_filters.hpp>
#include <kith/refused_row.hpp>

#include "core/reused_memory.hpp"
#include "cuda/device_memory.hpp"
#include "exact/filter_groups.hpp"
#include "exact/knn_on_parts.hpp"
#include "exact/range_loop.hpp"
#include "exact/range_on_parts.hpp"
#include "index/host_neighbors.hpp"
#include "index/index_access.hpp"
#include "index/index_checks.hpp"
#include "index/index_impl.hpp"
#include "index/refine.hpp"
#include "index/shards.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {
namespace {

[[noreturn]] void throw_unknown_id(int64_t id, int64_t position) {
  throw InvalidArgument(fmt::format("the filter's id {} at position {} is not in the index", id, position));
}

// A caller's filter, translated to the stored rows of one version: a list contains ids, masks and bits are of the live
// rows. Without a filter, it leaves out dead rows, if there are any.
class IdFilter {
 public:
  // Unknown ids are ignored, or InvalidArgument if `strict`; so is a mask of the wrong size. The caller's memory must
  // outlive the filter.
  IdFilter(const RowFilter& filter, bool strict, const IdTable& ids, const Resources& resources)
      : filter_(shape_of(filter, ids)) {
    const LiveRows& live = ids.live();
    if (filter.form() == RowFilter::Form::rows) {
      const auto* const listed = static_cast<const int64_t*>(filter.data());
      if (ids.plain() && live.all() && first_beyond(listed, filter.size(), live.stored()) == filter.size()) return;
      rows_ = HostArray<int64_t>(filter.size(), "the filter's rows", resources);
      if (counts_only(resources)) return;
      int64_t found = 0;
      for (int64_t i = 0; i < filter.size(); ++i) {
        const int64_t row = ids.row(listed[i]);
        if (row < 0 && strict) throw_unknown_id(listed[i], i);
        if (row >= 0) rows_[found++] = row;
      }
      filter_ = RowFilter::rows(rows_.data(), found);
    } else if (masks_live(filter, ids)) {
      if (counts_only(resources)) {
        bits_ = HostArray<uint64_t>(KeptRows::words_for(live.stored()), "the filter's rows", resources);
        count_work(KeptRows::footprint(filter, live.count()), resources);
        return;
      }
      bits_ = live.spread(KeptRows(filter, live.count(), resources).bits(), resources);
      filter_ = RowFilter::bits(reinterpret_cast<const uint8_t*>(bits_.data()), live.stored());
    }
  }

  const RowFilter& of_rows() const { return filter_; }

 private:
  // A filter with only the form and the size of the translated one.
  static RowFilter shape_of(const RowFilter& filter, const IdTable& ids) {
    return filter.form() == RowFilter::Form::rows || ids.live().all() ? filter : ids.live().filter();
  }
  // The place of the first number that is not a row, or `count`.
  static int64_t first_beyond(const int64_t* numbers, int64_t count, int64_t rows) {
    return std::find_if(numbers, numbers + count, [&](int64_t one) { return one < 0 || one >= rows; }) - numbers;
  }
  static bool masks_live(const RowFilter& filter, const IdTable& ids) {
    return (filter.form() == RowFilter::Form::mask || filter.form() == RowFilter::Form::bits) && !ids.live().all();
  }

  HostArray<int64_t> rows_;
  HostArray<uint64_t> bits_;
  RowFilter filter_;
};

// The same for an index without rows, where every listed id is unknown.
RowFilter filter_of_nothing(const RowFilter& filter, bool strict) {
  if (filter.form() != RowFilter::Form::rows) return filter;
  if (strict && filter.size() > 0) throw_unknown_id(*static_cast<const int64_t*>(filter.data()), 0);
  return {};
}

// The groups of queries with equal filters; none if there is one filter for all. Refuses a mask of the wrong size
// before anything is searched.
std::vector<FilterGroup> filter_groups(const SearchParams& params, int64_t rows) {
  std::vector<FilterGroup> groups = group_by_filter(params.filters);
  for (const FilterGroup& group : groups) {
    if (group.filter.form() == RowFilter::Form::rows) continue;
    naming_query(group, [&] { check_filter(group.filter, rows); });
  }
  return groups;
}

// The number of rows that a caller's filter keeps. With counting resources a list may keep none, since its ids may be
// duplicates. `of_rows`: the same filter in stored rows.
int64_t count_kept(const RowFilter& given, const RowFilter& of_rows, int64_t stored, const Resources& resources) {
  const auto* const bytes = static_cast<const uint8_t*>(given.data());
  switch (given.form()) {
    case RowFilter::Form::rows: return counts_only(resources) ? 0 : KeptRows(of_rows, stored, resources).count();
    case RowFilter::Form::mask: return given.size() - std::count(bytes, bytes + given.size(), uint8_t{0});
    case RowFilter::Form::bits: return count_set_bits(bytes, given.size());
    default: return given.size();
  }
}

// The number of lists to probe: more than requested if the caller's filter keeps few rows.
int64_t probes_of(const IndexState& state, int64_t probes, const RowFilter& given, const IdFilter& filter,
                  const LiveRows& live, const Resources& resources) {
  if (given.form() == RowFilter::Form::none) return probes;
  const auto kept = [&] { return count_kept(given, filter.of_rows(), live.stored(), resources); };
  return state.probes_with_filter(probes, std::cref(kept), live.count());  // which is not copied
}

// InvalidArgument for a file that cannot hold the vectors of `state`, which may be null, and for an index that stores
// its own vectors for refinement.
void check_refine_from(const VectorFile& file, const IndexState* state, const SearchUse& use,
                       const IndexParams& params) {
  if (params.metric == Metric::hamming) {
    throw InvalidArgument("refine_from compares vectors of numbers, and hamming bits: such searches are exact already");
  }
  if (use.refines) {
    throw InvalidArgument(
        "the index keeps vectors to refine with itself (RFlat, Refine): search it without refine_from");
  }
  if (state == nullptr || file.cols() == state->content().cols) return;
  throw InvalidArgument(fmt::format("refine_from: '{}' holds vectors of {} columns, and the index of {}", file.path(),
                                    file.cols(), state->content().cols));
}

// The original vectors of an index in a file, for refinement: the vector with id i is row i of the file. So the file
// that an index was built from fits it, also after a remove. Rows are read on demand, into memory that counts against
// the limit; nothing is mapped.
class FileVectors final : public RefineVectors {
 public:
  // Keeps references to all arguments but the resources.
  FileVectors(const VectorFile& file, const IndexVersion& version, const IndexParams& params,
              const Resources& resources)
      : file_(file), version_(version), params_(params), memory_(file.reserve_memory(resources)) {}

  // InvalidArgument for an id that is not a row of the file, and for values that cannot be searched.
  void fetch(const int64_t* rows, int64_t count, float* out) const override {
    const int64_t cols = file_.cols();
    for (const IdPlace& at : in_order_of_ids(rows, count)) {
      const int64_t id = at.id;
      if (id >= file_.rows()) {
        throw InvalidArgument(
            fmt::format("refine_from: the vector with id {} was found, and '{}' has {} rows: row i of the file must be "
                        "the vector with id i",
                        id, file_.path(), file_.rows()));
      }
      const MutableMatrixView row(out + at.place * cols, 1, cols);
      file_.read(id, row);
      naming_files({{"refine_from", file_}}, [&] {
        if (params_.check_finite && !row_is_finite(row, 0)) throw_not_finite("refine_from", id);
        if (params_.metric == Metric::chi_square && row_has_negative(row, 0)) throw_negative("refine_from", id);
      });
    }
  }

 private:
  struct IdPlace {
    int64_t id = 0;
    int64_t place = 0;  // among the rows
  };

  // With several files, sorts by id so that each file is read once rather than in candidate order.
  ReusedVector<IdPlace> in_order_of_ids(const int64_t* rows, int64_t count) const {
    ReusedVector<IdPlace> ids(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = {version_.ids.id(rows[i]), i};
    if (file_.files() > 1) std::sort(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return ids;
  }

  const VectorFile& file_;
  const IndexVersion& version_;
  const IndexParams& params_;
  const ReadMemory memory_;
};

// Whether no measured parameters reach the requested recall, so that the search is exact.
bool is_beyond(const SearchParams& params, const TuneTable* tuned) {
  return params.recall > 0 && tuned != nullptr && tuned->find(params.recall) == nullptr;
}

// Fills in the parameters that reach the requested recall; without a table the state does that.
SearchParams with_tuned(const SearchParams& params, const TuneTable* tuned, const SearchUse& use) {
  SearchParams chosen = params;
  if (params.recall == 0 || tuned == nullptr) return chosen;
  const TunedSearch* const found = tuned->find(params.recall);
  if (found == nullptr) return chosen;
  if (use.walks && found->beam == 0) return chosen;  // measured before there was a graph: left to the state
  chosen.recall = 0;
  chosen.beam = found->beam;
  chosen.probes = found->probes;
  if (params.width == 0) chosen.width = found->width;
  if (params.refine == 0) chosen.refine = found->refine;
  return chosen;
}

// An empty base for queries before the first add.
MatrixView no_rows(const MatrixView& queries) {
  return {nullptr, queries.dtype(), {0, queries.cols(), queries.cols()}};
}

// A search of an index without rows.
void find_nothing(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                  const IndexParams& own, const Resources& resources) {
  std::vector<RowFilter> filters;
  for (const FilterGroup& group : group_by_filter(params.filters)) {
    filters.resize(params.filters.size());
    const RowFilter filter = naming_query(group, [&] { return filter_of_nothing(group.filter, params.filter_strict); });
    for (const int64_t query : group.queries) filters[static_cast<size_t>(query)] = filter;
  }
  KnnParams all{.k = params.k, .metric = own.metric, .check_finite = own.check_finite};
  if (!filters.empty()) return knn(queries, no_rows(queries), filters, out, all, resources);
  all.filter = filter_of_nothing(params.filter, params.filter_strict);
  knn(queries, no_rows(queries), out, all, resources);
}

// Replaces rows by ids, in any memory.
void rows_to_ids(const IdTable& ids, const VectorView<int64_t>& rows, const Resources& resources) {
  if (ids.plain() || rows.size == 0) return;
  const bool here = rows.space.host_readable();
  const HostArray<int64_t> found(here ? 0 : rows.size, "the ids found", resources);
  if (counts_only(resources)) return;
  if (here) return ids.rows_to_ids(rows.data, rows.size);
  const int device = rows.space.device;
  wait_for_stream(device, resources);
  copy_to_host(rows.data, found.bytes(), device, found.data());
  ids.rows_to_ids(found.data(), rows.size);
  const MatrixView bytes(found.data(), DType::u8, {1, found.bytes(), found.bytes()});
  copy_to_device(bytes, reinterpret_cast<std::byte*>(rows.data), device, resources);
}

// The version to search; null or without rows: nothing will be found.
template <typename Impl>
std::shared_ptr<const IndexVersion> searched_version(const Impl& impl, const MatrixView& queries) {
  std::shared_ptr<const IndexVersion> version = impl.versions.current();
  impl.refuse_untrained(version.get(), "it is searched");
  if (const IndexState* const state = state_of(version.get())) {
    check_queries(state->content(), queries, impl.params.metric);
  }
  return version;
}

// Checks a part's own share of the limits before its search; in a group of parts each shard does so.
template <typename Call>
auto counted_by_part(const IndexState& state, const Resources& part, const Call& call) {
  if (is_divided(state.content().space, part)) return call(part);
  return within_limits("the search", part, call);
}

// Distributes queries over the copies of an index. All parts of a copy search it in shards, which a state does when its
// resources have several parts.
void search_placed(const IndexState& state, const MatrixView& queries, const NeighborsView& out,
                   const SearchParams& params, int copies, const Resources& resources) {
  if (!is_divided(state.content().space, resources) || copies == 1)
    return state.search(queries, out, params, resources);
  wait_for_caller(resources, queries.space(), out.space);
  const auto search = [&](RankPart share, RankPart, const NeighborsView& found, const Resources& part) {
    const RowsOnPart own(queries.slice(share.first, share.count), part);
    counted_by_part(state, part, [&](const Resources& used) { state.search(own.view(), found, params, used); });
  };
  if (copies == resources.parts()) {
    return knn_on_parts({queries.rows(), state.content().rows, Metric::l2, false}, search, out, resources);
  }
  const HostNeighbors here(out, resources);
  const NeighborsView all = here.view();
  run_groups(copies, resources, [&](int group, const Resources& own) {
    const RankPart share = part_of(queries.rows(), 1, group, copies);
    const int64_t at = share.first * all.k;
    if (share.count == 0) return;
    with_rows_from(share.first, 0, [&] {
      search(share, {}, {all.ids + at, all.distances + at, share.count, all.k, {}}, own);
    });
  });
  here.deliver(resources);
}

RangeNeighbors range_search_placed(const IndexState& state, const MatrixView& queries, const RangeSearchParams& params,
                                   int copies, const Resources& resources) {
  if (!is_divided(state.content().space, resources) || copies == 1)
    return state.range_search(queries, params, resources);
  wait_for_caller(resources, queries.space());
  RangeSearchParams own = params;
  own.result_space = MemorySpace::host();
  own.allocate = {};
  const auto search = [&](RankPart share, const Resources& part) {
    const RowsOnPart some(queries.slice(share.first, share.count), part);
    return counted_by_part(state, part,
                           [&](const Resources& used) { return state.range_search(some.view(), own, used); });
  };
  if (copies == resources.parts()) {
    return range_on_parts(queries.rows(), params.result_space, params.allocate, resources, search);
  }
  std::vector<RangeNeighbors> found(static_cast<size_t>(copies));
  run_groups(copies, resources, [&](int group, const Resources& part) {
    const RankPart share = part_of(queries.rows(), 1, group, copies);
    if (share.count == 0) return;
    with_rows_from(share.first, 0, [&] { found[static_cast<size_t>(group)] = search(share, part); });
  });
  return in_space(one_after_the_other(std::move(found), resources), params.result_space, params.allocate, resources);
}

// For a search that is a step of another call: it is not divided among devices that each hold all vectors.
Resources for_step(int copies, const Resources& resources) {
  return copies == resources.parts() ? resources.with_device(resources.device()) : resources;
}

// Searches if the limits have room for it. If no device was requested, the index is on a GPU without enough memory, and
// the data are on the host, the CPU searches a copy.
template <typename Call>
auto search_within_limits(std::string_view job, const IndexState* state, std::initializer_list<MemorySpace> data,
                          bool at_least, const Resources& resources, const Call& call) {
  if (!counts_memory(resources)) return call(resources);
  if (state != nullptr && is_divided(state->content().space, resources)) {
    // Each part checks its own share when it begins: an index in shards need not fit on one GPU.
    const Footprint on_host{footprint_of_call(resources.with_device(Device::cpu()), call).host};
    require_memory(job, on_host.times(resources.parts()), resources);
    return call(resources);
  }
  const auto here = [](const MemorySpace& space) { return space.host_readable(); };
  const bool may_move = resources.device().kind == DeviceKind::automatic && state != nullptr &&
                        !here(state->content().space) && std::all_of(data.begin(), data.end(), here);
  Resources used = resources;
  Footprint least = footprint_of_call(used, call);
  if (may_move && !has_room_for(least, resources)) {
    resources.log(LogLevel::info, "the CPU searches a copy of the index: its GPU has no room for the search");
    used = resources.with_device(Device::cpu());
    least = footprint_of_call(used, call);
  }
  least.at_least = at_least;
  return call(admitted(job, least, used));
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

Neighbors Index::search(const MatrixView& queries, const SearchParams& params, const Resources& given) const {
  KnnParams{params.k, impl_->params.metric}.validate();
  check_result_size(queries.rows(), params.k);
  const Resources resources = impl_->on_device(given);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const auto search_once = [&](const Resources& used) {
    Neighbors result(queries.rows(), params.k, used);
    search(queries, result.view(), params, used);
    return result;
  };
  return search_within_limits("the search", state_of(version.get()), {queries.space()}, false, resources, search_once);
}

void Index::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                   const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  const IndexParams& own = impl_->params;
  KnnParams{params.k, own.metric}.validate();
  const SearchUse use = impl_->kind->search_use();
  check_search_params(use, impl_->factory, params);
  check_output(out, queries.rows(), params.k);
  const std::shared_ptr<const IndexVersion> version = searched_version(*impl_, queries);
  const IndexState* const state = state_of(version.get());
  if (params.refine_from != nullptr) {
    refuse_unshifted_file(offset_of(version.get()), params.refine_from->path());
    check_refine_from(*params.refine_from, state, use, own);
  }
  const TuneTable* const tuned = version == nullptr ? nullptr : version->tuned.get();
  if (state != nullptr) check_recall(use, impl_->factory, params.recall, tuned != nullptr);
  if (!params.filters.empty()) check_filters(params.filters, params.filter, queries.rows());
  if (rows_of(version.get()) == 0) return find_nothing(queries, out, params, own, resources);
  const std::vector<FilterGroup> groups = filter_groups(params, rows_of(version.get()));
  warn_of_short_base(queries.rows(), rows_of(version.get()), params.k, resources);
  const auto search_filtered = [&](const MatrixView& rows, const NeighborsView& found, const RowFilter& asked,
                                   const IdFilter& filter, const Resources& used) {
    SearchParams of_rows = with_tuned(params, tuned, use);
    if (params.refine_from != nullptr) {
      of_rows.refine = params.refine;  // the tuned table's is for the index's own re-ranking
      if (is_beyond(params, tuned)) of_rows.probes = INT32_MAX;
    }
    of_rows.filter = filter.of_rows();
    of_rows.filters = {};
    of_rows.probes = probes_of(*state, of_rows.probes, asked, filter, version->ids.live(), used);
    if (params.refine_from != nullptr) {
      const FileVectors vectors(*params.refine_from, *version, own, used);
      const RefineTask task(*state, of_rows, kDefaultRefine, rows_of(version.get()), own.metric);
      search_and_refine(task, vectors, rows, found, for_step(impl_->copies(used), used));
    } else if (is_beyond(params, tuned)) {
      state->search_all(rows, found, {.k = params.k, .filter = of_rows.filter}, for_step(impl_->copies(used), used));
    } else {
      search_placed(*state, rows, found, of_rows, impl_->copies(used), used);
    }
    rows_to_ids(version->ids, {found.ids, found.queries * found.k, found.space}, used);
  };
  const auto search_group = [&](const FilterGroup& group, const MatrixView& rows, const NeighborsView& found,
                                const Resources& used) {
    const IdFilter filter =
        naming_query(group, [&] { return IdFilter(group.filter, params.filter_strict, version->ids, used); });
    search_filtered(rows, found, group.filter, filter, used);
  };
  const auto search_once = [&](const Resources& used) {
    const NarrowedRows narrowed("queries", queries, version->offset, OfRounding::silent, used);
    if (!groups.empty()) return search_filter_groups(groups, narrowed.view(), out, used, search_group);
    const IdFilter filter(params.filter, params.filter_strict, version->ids, used);
    search_filtered(narrowed.view(), out, params.filter, filter, used);
  };
  search_within_limits("the search", state, {queries.space(), out.space}, false, resources, search_once);
}

RangeNeighbors Index::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                   const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  const IndexParams& own = impl_->params;
  RangeParams whole{params.radius, own.metric, own.check_finite, params.filter, params.result_space, params.allocate};
  whole.validate();
  check_search_params(impl_->kind->search_use(), impl_->factory, params);
  const std::shared_ptr<const IndexVersion> version = searched_version(*impl_, queries);
  const IndexState* const state = state_of(version.get());
  if (rows_of(version.get()) == 0) {
    whole.filter = filter_of_nothing(params.filter, params.filter_strict);
    return kith::range_search(queries, no_rows(queries), whole, resources);
  }
  const auto search = [&](const Resources& used) {
    const NarrowedRows narrowed("queries", queries, version->offset, OfRounding::silent, used);
    const IdFilter filter(params.filter, params.filter_strict, version->ids, used);
    RangeSearchParams of_rows = params;
    of_rows.filter = filter.of_rows();
    of_rows.probes = probes_of(*state, params.probes, params.filter, filter, version->ids.live(), used);
    RangeNeighbors found = range_search_placed(*state, narrowed.view(), of_rows, impl_->copies(used), used);
    if (counts_only(used)) return found;
    rows_to_ids(version->ids, {found.ids(), found.size(), found.space()}, used);
    // Some kinds of index only fill host memory.
    return in_space(std::move(found), params.result_space, params.allocate, used);
  };
  return search_within_limits("the range search", state, {queries.space(), params.result_space}, true, resources,
                              search);
}

void Index::reconstruct(VectorView<const int64_t> ids, const MutableMatrixView& out, const Resources& given) const {
  const Resources resources = impl_->on_device(given);
  check_ids(ids, ids.size);
  const std::shared_ptr<const IndexVersion> version = impl_->versions.current();
  const IndexState* const state = state_of(version.get());
  check_reconstructed(state, ids.size, out);
  within_limits("the reconstructed vectors", resources, [&](const Resources& used) {
    const HostArray<uint32_t> rows(ids.size, "the rows to reconstruct", used);
    for (int64_t i = 0; i < ids.size && !counts_only(used); ++i) {
      const int64_t row = version == nullptr ? -1 : version->ids.row(ids[i]);
      if (row < 0) throw InvalidArgument(fmt::format("the index has no vector with the id {}", ids[i]));
      rows[i] = static_cast<uint32_t>(row);
    }
    if (ids.size == 0 || state == nullptr) return;
    const bool wide = out.dtype() == DType::f64;
    MatrixBuffer narrow;
    if (wide) narrow = MatrixBuffer(DType::f32, out.rows(), out.cols(), "the reconstructed vectors", used);
    const MutableMatrixView found = wide ? narrow.mutable_view() : out;
    state->reconstruct(rows.data(), found, used);
    if (counts_only(used)) return;
    if (wide || version->offset != nullptr) restore_rows(found, version->offset, out);
  });
}

}  // namespace kith
