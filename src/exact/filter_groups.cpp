#include "exact/filter_groups.hpp"

#include <kith/device.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/refused_row.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "io/container/xxh3.hpp"
#include "ranks/transfer.hpp"
#include "rows/host_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <tuple>
#include <unordered_map>

namespace kith {
namespace {

int64_t bytes_of(const RowFilter& filter) {
  switch (filter.form()) {
    case RowFilter::Form::mask: return filter.size();
    case RowFilter::Form::bits: return (filter.size() + 7) / 8;
    case RowFilter::Form::rows: return filter.size() * static_cast<int64_t>(sizeof(int64_t));
    default: return 0;
  }
}

bool is_readable(const RowFilter& filter) { return filter.size() > 0 && filter.data() != nullptr; }

bool are_equal(const RowFilter& a, const RowFilter& b) {
  if (a.form() != b.form() || a.size() != b.size()) return false;
  if (a.data() == b.data()) return true;
  return is_readable(a) && is_readable(b) && std::memcmp(a.data(), b.data(), static_cast<size_t>(bytes_of(a))) == 0;
}

uint64_t hash_of(const RowFilter& filter) {
  if (!is_readable(filter)) return static_cast<uint64_t>(filter.form());
  const auto* const bytes = static_cast<const std::byte*>(filter.data());
  return xxh3({bytes, static_cast<size_t>(bytes_of(filter))}) ^ static_cast<uint64_t>(filter.form());
}

// The queries of a group, copied together, and memory for their results.
class GroupArrays {
 public:
  GroupArrays(const std::vector<int64_t>& numbers, const MatrixView& queries, int64_t k, const Resources& resources)
      : numbers_(numbers),
        rows_(queries.dtype(), static_cast<int64_t>(numbers.size()), queries.cols(), "the queries of a filter",
              resources),
        found_(rows_.rows(), k, resources) {
    if (counts_only(resources)) return;
    const auto row_bytes = static_cast<size_t>(queries.cols() * size_of(queries.dtype()));
    const MutableMatrixView rows = rows_.mutable_view();
    for (int64_t i = 0; i < rows.rows(); ++i) std::memcpy(rows.row(i), queries.row(number(i)), row_bytes);
  }

  MatrixView rows() const { return rows_.view(); }
  NeighborsView found() { return found_.view(); }

  void put_into(const NeighborsView& out) const {
    for (int64_t i = 0; i < found_.queries(); ++i) {
      std::copy_n(found_.ids(i), out.k, out.ids + number(i) * out.k);
      std::copy_n(found_.distances(i), out.k, out.distances + number(i) * out.k);
    }
  }

 private:
  int64_t number(int64_t i) const { return numbers_[static_cast<size_t>(i)]; }

  const std::vector<int64_t>& numbers_;
  MatrixBuffer rows_;
  Neighbors found_;
};

// Whether each group is searched by one thread: many groups, such as one for each tenant, have searches too short for
// all threads together. Under a memory limit, and on GPUs, groups are searched one after the other.
bool suits_threads(const std::vector<FilterGroup>& groups, const Resources& resources) {
  constexpr size_t kGroupsOfAThread = 4;
  if (groups.size() < kGroupsOfAThread * static_cast<size_t>(resources.threads())) return false;
  if (resources.threads() == 1 || counts_memory(resources) || resources.parts() > 1) return false;
  const DeviceKind kind = resources.device().kind;
  return kind == DeviceKind::cpu || (kind == DeviceKind::automatic && cuda_devices().empty());
}

// Rethrows the error of the first group that has one. Sinks are called on the calling thread.
template <typename Search>
void search_on_threads(const std::vector<FilterGroup>& groups, const Resources& resources, const Search& search) {
  ProgressMeter meter("search", static_cast<int64_t>(groups.size()), resources);
  const Resources alone = resources.with_progress({}).with_log({}).with_cancel(resources.options().cancel);
  std::vector<std::exception_ptr> failed(groups.size());
  parallel_for(static_cast<int64_t>(groups.size()), meter, resources, [&](int64_t task, int) {
    const auto number = static_cast<size_t>(task);
    try {
      search(groups[number], alone);
    } catch (const Error&) {
      failed[number] = std::current_exception();
    }
    meter.add(1);
  });
  for (const std::exception_ptr& error : failed) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  meter.finish();
}

}  // namespace

void check_filters(std::span<const RowFilter> each, const RowFilter& for_all, int64_t queries) {
  if (for_all.form() != RowFilter::Form::none) {
    throw InvalidArgument("a filter for all queries and one for each; give one of them");
  }
  if (static_cast<int64_t>(each.size()) == queries) return;
  throw InvalidArgument(fmt::format("{} filters and {} queries; give one filter for each query", each.size(), queries));
}

void check_filter(const RowFilter& filter, int64_t rows) {
  if (filter.form() == RowFilter::Form::none) return;
  if (filter.size() < 0 || (filter.size() > 0 && filter.data() == nullptr)) {
    throw InvalidArgument(fmt::format("a filter of {} entries at a null pointer", filter.size()));
  }
  if (filter.form() != RowFilter::Form::rows) {
    if (filter.size() == rows) return;
    throw InvalidArgument(fmt::format("the filter is for {} rows, and there are {}", filter.size(), rows));
  }
  const auto* const listed = static_cast<const int64_t*>(filter.data());
  for (int64_t i = 0; i < filter.size(); ++i) {
    if (listed[i] >= 0 && listed[i] < rows) continue;
    throw InvalidArgument(fmt::format("the filter lists row {} at position {}, and there are {}", listed[i], i, rows));
  }
}

std::vector<FilterGroup> group_by_filter(std::span<const RowFilter> filters) {
  std::vector<FilterGroup> groups;
  std::map<std::tuple<RowFilter::Form, const void*, int64_t>, size_t> by_place;
  std::unordered_multimap<uint64_t, size_t> by_hash;
  const auto find_equal = [&](const RowFilter& filter) {
    const uint64_t hash = hash_of(filter);
    const auto [first, last] = by_hash.equal_range(hash);
    const auto equal = std::find_if(first, last, [&](const auto& at) { return are_equal(groups[at.second].filter, filter); });
    if (equal != last) return equal->second;
    by_hash.emplace(hash, groups.size());
    groups.push_back({filter, {}});
    return groups.size() - 1;
  };
  for (size_t query = 0; query < filters.size(); ++query) {
    const RowFilter& filter = filters[query];
    const auto [at, is_new] = by_place.try_emplace({filter.form(), filter.data(), filter.size()}, size_t{0});
    if (is_new) at->second = find_equal(filter);
    groups[at->second].queries.push_back(static_cast<int64_t>(query));
  }
  return groups;
}

void throw_for_query(int64_t query, std::string_view what) {
  throw InvalidArgument(fmt::format("query {}: {}", query, what));
}

void search_filter_groups(const std::vector<FilterGroup>& groups, const MatrixView& queries, const NeighborsView& out,
                          const Resources& resources, const GroupSearch& search) {
  const bool here = out.space.host_readable();
  if (!counts_only(resources)) wait_for_caller(resources, queries.space(), out.space);
  const HostRows rows(queries, resources);
  Neighbors elsewhere;
  if (!here) elsewhere = Neighbors(out.queries, out.k, resources);
  const NeighborsView all = here ? out : elsewhere.view();
  const auto search_one = [&](const FilterGroup& group, const Resources& used) {
    GroupArrays arrays(group.queries, rows.view(), out.k, used);
    try {
      search(group, arrays.rows(), arrays.found(), used);
    } catch (const RefusedRow& refused) {
      if (refused.what_row() != "query") throw;
      refused.throw_as(refused.what_row(), group.queries[static_cast<size_t>(refused.row())]);
    }
    if (!counts_only(used)) arrays.put_into(all);
  };
  if (groups.size() == 1) {
    search(groups.front(), rows.view(), all, resources);
  } else if (suits_threads(groups, resources)) {
    search_on_threads(groups, resources, search_one);
  } else {
    ProgressMeter meter("search", queries.rows(), resources);
    const Resources quiet = resources.with_progress({});
    for (const FilterGroup& group : groups) {
      search_one(group, quiet);
      if (counts_only(resources)) continue;
      meter.add(static_cast<int64_t>(group.queries.size()));
      meter.poll();
    }
    meter.finish();
  }
  if (here || counts_only(resources)) return;
  transfer(all.ids, array_bytes<int64_t>(out.queries * out.k), out.ids, out.space, resources);
  transfer(all.distances, array_bytes<float>(out.queries * out.k), out.distances, out.space, resources);
}

}  // namespace kith
