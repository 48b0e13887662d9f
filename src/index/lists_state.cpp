#include "index/lists_state.hpp"

#include "core/memory_budget.hpp"
#include "core/result_exit.hpp"
#include "core/typed_row.hpp"
#include "cuda/resolve_device.hpp"
#include "core/metric_unit.hpp"
#include "index/host_rows.hpp"
#include "rows/finite_check.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"
#include "transform/transform_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kQueryShare = 4;  // of what is left, for queries as f32 and what is found

// Calls use(queries as f32, first) for all of them, as many at a time as fit well.
void for_float_queries(const MatrixView& queries, int64_t bytes_each, const Resources& resources,
                       const std::function<void(const MatrixView&, int64_t)>& use) {
  constexpr int64_t kTogether = 65536;
  const bool widens = queries.dtype() != DType::f32;
  const int64_t each = bytes_each + (widens ? array_bytes<float>(queries.cols()) : 0);
  const int64_t fit = resources.host_memory()->available() / kQueryShare / std::max<int64_t>(each, 1);
  const int64_t together = std::clamp<int64_t>(fit, 1, kTogether);
  MatrixBuffer wide(DType::f32, widens ? std::min(together, queries.rows()) : 0, queries.cols(), "queries as f32",
                    resources);
  for (int64_t first = 0; first < queries.rows(); first += together) {
    const int64_t count = std::min(together, queries.rows() - first);
    MatrixView some = queries.slice(first, count);
    if (widens) {
      for (int64_t i = 0; i < count; ++i) widen_row(some, i, typed_row<float>(wide.mutable_view(), i));
      some = wide.view().slice(0, count);
    }
    use(some, first);
  }
}

}  // namespace

int64_t ListsState::probes_for(int64_t asked) const {
  const int64_t lists = model_->lists();
  if (asked == 0) asked = probes_;
  if (asked == 0) asked = default_probes(lists);
  return std::min(asked, lists);
}

Device ListsState::device_for(const MatrixView& queries, const MemorySpace& out, int64_t probes,
                              const Resources& resources) const {
  const auto pairs = static_cast<double>(queries.rows()) * static_cast<double>(content().rows) *
                     static_cast<double>(probes) / static_cast<double>(model_->lists());
  DeviceRequest request;
  request.job = "a search of lists";
  request.spaces = {queries.space(), out};
  // Lists that lie on a GPU are searched there, unless the CPU is asked for: that gets a copy.
  if (resources.device().kind == DeviceKind::automatic) request.spaces.push_back(content().space);
  request.work = {2 * pairs * static_cast<double>(model_->cols()), static_cast<double>(bytes_to_come()), 5e13};
  request.fits = [](Device) { return true; };
  request.description = [&] {
    return fmt::format("{} queries, {} of {} lists of {} vectors", queries.rows(), probes, model_->lists(),
                       content().rows);
  };
  return resolve_device(request, resources);
}

template <typename OnCpu, typename OnGpu>
void ListsState::search_somewhere(Device device, bool data_on_host, const Resources& resources, const OnCpu& on_cpu,
                                  const OnGpu& on_gpu) const {
  if (device.kind == DeviceKind::cuda) {
    try {
      return on_gpu(*gpu_lists(device.index, model_, segments_.all(), resources));
    } catch (const OutOfMemory& error) {
      if (resources.device().kind != DeviceKind::automatic || !data_on_host) throw;
      resources.log(LogLevel::info, fmt::format("the lists are searched on the CPU: {}", error.what()));
    }
  }
  on_cpu();
}

std::vector<Segment> ListsState::on_host(const Resources& resources) const {
  std::vector<Segment> segments;
  segments.reserve(segments_.count());
  for (const SharedSegment& segment : segments_) segments.push_back(segment->on(Device::cpu(), resources));
  return segments;
}

void ListsState::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                        const Resources& resources) const {
  const bool on_host = queries.space().host_readable();
  if (params_.check_finite && on_host) refuse_not_finite("query", queries, {0}, resources);
  KeptRows kept(params.filter, content().rows, resources);
  const IvfSearch search{params.k, probes_for(params.probes), kept.leaves_some_out() ? kept.bits(resources) : nullptr};
  const Device device = device_for(queries, out.space, search.probes, resources);
  search_somewhere(
      device, on_host && out.space.host_readable(), resources, [&] { search_on_cpu(queries, search, out, resources); },
      [&](const GpuLists& lists) { search_on_gpu(lists, queries, search, kept.count(), out, resources); });
}

void ListsState::search_on_cpu(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                               const Resources& given) const {
  const Resources resources = given.with_device(Device::cpu());
  const std::vector<Segment> segments = on_host(resources);
  const ResultExit exit(params_.metric);
  for_float_queries(queries, array_bytes<uint64_t>(search.k), resources, [&](const MatrixView& some, int64_t first) {
    const HostArray<uint64_t> found(some.rows() * search.k, "the neighbours found", resources);
    search_ivf(*model_, segments, some, search, found.data(), resources);
    for (int64_t i = 0; i < found.size(); ++i) {
      out.ids[first * search.k + i] = exit.id(found[i]);
      out.distances[first * search.k + i] = exit.distance(found[i]);
    }
  });
}

void ListsState::search_on_gpu(const GpuLists& lists, const MatrixView& queries, const IvfSearch& search, int64_t kept,
                               const NeighborsView& out, const Resources& resources) const {
  const bool on_host = queries.space().host_readable();
  const bool all = search.probes == model_->lists();
  const int64_t wanted = std::min(search.k, kept);  // that every query finds
  const bool enough = all || (search.kept == nullptr && fewest_in(search.probes) >= wanted);
  const int64_t least = enough ? 0 : wanted;
  if (!on_host && queries.dtype() == DType::f32) {
    // The ranking of lists looks at values, where there are any to rank.
    if (params_.check_finite && !model_->has_centres()) refuse_not_finite_cuda("query", queries, resources);
    return lists.search(queries, search, least, params_.check_finite, out, resources);
  }
  const HostRows rows(queries, resources);
  const HostNeighbors found(out, resources);
  if (!on_host && params_.check_finite) refuse_not_finite("query", rows.view(), {0}, resources);
  for_float_queries(rows.view(), 0, resources, [&](const MatrixView& some, int64_t first) {
    const NeighborsView& to = found.view();
    const NeighborsView part{to.ids + first * to.k, to.distances + first * to.k, some.rows(), to.k, to.space};
    lists.search(some, search, least, false, part, resources);
  });
  found.deliver(resources);
}

int64_t ListsState::fewest_in(int64_t probes) const {
  std::call_once(counted_, [&] {
    std::vector<int64_t> sizes(static_cast<size_t>(model_->lists()));
    for (const SharedSegment& segment : segments_) segment->made().add_sizes(nullptr, sizes.data(), Resources());
    std::sort(sizes.begin(), sizes.end());
    std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
    fewest_ = std::move(sizes);
  });
  return fewest_[static_cast<size_t>(probes - 1)];
}

RangeNeighbors ListsState::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                        const Resources& resources) const {
  const bool on_host = queries.space().host_readable();
  if (params_.check_finite && on_host) refuse_not_finite("query", queries, {0}, resources);
  KeptRows kept(params.filter, content().rows, resources);
  const IvfRange range{key_of(params_.metric, params.radius), probes_for(params.probes),
                       kept.leaves_some_out() ? kept.bits(resources) : nullptr};
  std::vector<CollectedHits> parts;
  const auto search_all = [&](const auto& find) {  // find(f32 queries): what is in range of them
    const HostRows rows(queries, resources);
    if (!on_host && params_.check_finite) refuse_not_finite("query", rows.view(), {0}, resources);
    for_float_queries(rows.view(), 0, resources, [&](const MatrixView& some, int64_t) { parts.push_back(find(some)); });
  };
  search_somewhere(
      device_for(queries, MemorySpace::host(), range.probes, resources), on_host, resources,
      [&] {
        parts.clear();
        const std::vector<Segment> segments = this->on_host(resources);
        search_all([&](const MatrixView& some) {
          return range_search_ivf(*model_, segments, some, range, resources.with_device(Device::cpu()));
        });
      },
      [&](const GpuLists& lists) {
        search_all([&](const MatrixView& some) {
          RangeHits hits(resources);
          lists.range_search(some, range, false, hits, resources);
          return collect_in_range(hits, some.rows(), 0, resources);
        });
      });
  int64_t total = 0;
  for (const CollectedHits& part : parts) total += part.size();
  RangeNeighbors found(queries.rows(), total, resources);
  const ResultExit exit(params_.metric);
  int64_t query = 0;
  int64_t at = 0;
  found.offsets()[0] = 0;
  for (CollectedHits& part : parts) {
    for (int64_t i = 0; i < part.size(); ++i) {
      found.ids()[at + i] = exit.id(part.neighbors()[i]);
      found.distances()[at + i] = exit.distance(part.neighbors()[i]);
    }
    for (int64_t q = 0; q < part.queries(); ++q) found.offsets()[++query] = at + part.offsets()[q + 1];
    at += part.size();
    part = CollectedHits();
  }
  return found;
}

int64_t ListsState::smallest_host_bytes(const RowsInfo& queries, const SearchParams& params,
                                        const Resources& resources) const {
  const int64_t rows = content().rows;
  const bool filtered = params.filter.form() != RowFilter::Form::none;
  const bool widens = queries.dtype != DType::f32;
  const int64_t each = array_bytes<uint64_t>(params.k) + (widens ? array_bytes<float>(queries.cols) : 0);
  const int64_t behind =
      smallest_search_bytes(*model_, rows, {params.k, probes_for(params.probes)}, filtered, queries.rows, resources);
  return HostRows::bytes_for(queries) + (filtered ? KeptRows::most_bytes(params.filter, rows) : 0) + behind +
         std::max(behind / (kQueryShare - 1) + 1, each);
}

void ListsState::reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const {
  HostArray<int64_t> wide(out.rows(), "rows to reconstruct", resources);
  std::copy(rows, rows + out.rows(), wide.begin());
  reconstruct_rows(*model_, on_host(resources), wide.data(), out.rows(), out, resources);
}

// Copies of segments that lie on a GPU alone.
int64_t ListsState::copied_bytes() const {
  int64_t bytes = 0;
  for (const SharedSegment& segment : segments_) {
    if (segment->space().host_readable()) continue;
    bytes += ListSegment::bytes_for(model_->lists(), segment->size(), model_->codec->format().bytes());
  }
  return bytes;
}

int64_t ListsState::smallest_range_bytes(const RowsInfo& queries, const RangeSearchParams& params,
                                         const Resources& resources) const {
  const bool filtered = params.filter.form() != RowFilter::Form::none;
  const int64_t behind = kith::smallest_range_bytes(*model_, probes_for(params.probes), queries.rows, resources);
  const int64_t each = queries.dtype == DType::f32 ? 0 : array_bytes<float>(queries.cols);
  return HostRows::bytes_for(queries) + (filtered ? KeptRows::most_bytes(params.filter, content().rows) : 0) + behind +
         (each == 0 ? 0 : std::max(behind / (kQueryShare - 1) + 1, each));
}

int64_t ListsState::reconstruct_bytes(int64_t count, const Resources&) const {
  const int64_t each = sizeof(int64_t) + 1;  // its number, and whether it was found
  return copied_bytes() + count * each + array_bytes<uint32_t>(content().rows);
}

int64_t ListsState::give_parts_bytes() const {
  const int64_t whole = ListSegment::bytes_for(model_->lists(), content().rows, model_->codec->format().bytes());
  return copied_bytes() + (segments_.count() == 1 ? 0 : whole);
}

int64_t ListsState::bytes_to_come() const {
  int64_t total = 0;
  for (const SharedSegment& segment : segments_) {
    const bool on_gpu = segment->copies().bytes(DeviceKind::cuda) > 0;
    total += on_gpu ? 0 : segment->copies().bytes(DeviceKind::cpu);
  }
  return total;
}

int64_t ListsState::codes_bytes() const {
  int64_t total = 0;
  for (const SharedSegment& segment : segments_) total += segment->bytes(DeviceKind::cpu);
  return total;
}

IndexBytes ListsState::bytes() const {
  int64_t there = model_->on_gpus->bytes(DeviceKind::cuda);
  for (const SharedSegment& segment : segments_) there += segment->bytes(DeviceKind::cuda);
  return {model_->bytes() + codes_bytes(), there};
}

void ListsState::describe(IndexInfo& info, const LiveRows& live) const {
  const int64_t lists = model_->lists();
  info.lists = lists;
  info.code_bytes = model_->codec->format().bytes();
  std::vector<int64_t> sizes(static_cast<size_t>(lists));
  for (const SharedSegment& segment : segments_) segment->made().add_sizes(live.bits(), sizes.data(), Resources());
  double squares = 0;
  for (const int64_t size : sizes) {
    info.longest = std::max(info.longest, size);
    squares += static_cast<double>(size) * static_cast<double>(size);
  }
  const auto rows = static_cast<double>(live.count());
  info.imbalance = rows > 0 ? squares * static_cast<double>(lists) / (rows * rows) : 0;
  info.parts.emplace_back("centres and code", model_->bytes());
  info.parts.emplace_back("lists", codes_bytes());
}

Segment ListsState::whole(const Resources& resources) const {
  if (segments_.count() == 1) return segments_.all()[0]->on(Device::cpu(), resources);
  if (!segments_.empty()) return merge_segments(on_host(resources), resources);
  HostArray<int64_t> offsets(model_->lists() + 1, "the offsets of no vectors", resources);
  std::fill(offsets.begin(), offsets.end(), int64_t{0});
  return std::make_shared<ListSegment>(std::move(offsets), HostArray<uint8_t>(), HostArray<uint32_t>(),
                                       model_->codec->format().bytes(), resources);
}

void ListsState::give_parts(IndexParts& parts, const Resources& resources) const {
  ListParts own;
  own.lists = model_->lists();
  own.centres = PartMatrix(model_->centres.view(), model_);
  own.residual = model_->residual;
  own.codec = {model_->codec->format(), model_->codec->values(), model_->codec->recipe().code,
               model_->codec->recipe().effort};
  const Segment all = whole(resources);
  const auto size = static_cast<size_t>(all->size());
  own.offsets = PartArray<int64_t>({all->offsets(), static_cast<size_t>(own.lists) + 1}, all);
  own.codes = PartArray<uint8_t>({all->codes(), size * static_cast<size_t>(all->code_bytes())}, all);
  own.rows = PartArray<uint32_t>({all->rows(), size}, all);
  parts.lists = std::move(own);
  parts.probes = probes_;
}

}  // namespace kith
