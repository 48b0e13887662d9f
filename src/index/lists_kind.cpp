// "IVF4096,PQ32", "IVF100,Flat", "SQ8", ...: an index of codes in lists. Without IVF there is one list without a
// centre.
//
// A state is a trained model and segments of codes, which it shares with the states before and after it. An add makes a
// segment and merges it with small ones before it, as in a Flat index, so that n single adds cost n log n copies and
// leave log n segments.
#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/metric_unit.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "cuda/resolve_device.hpp"
#include "index/factory.hpp"
#include "index/host_neighbors.hpp"
#include "index/shards.hpp"
#include "ranks/parts.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/model/norm_training.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/segment/segment_copies.hpp"
#include "rows/finite_check.hpp"
#include "rows/host_rows.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"
#include "transform/transform_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <type_traits>

namespace kith {
namespace {

using Lists = Segments<SegmentCopies>;

// The memory space of all segments; the host if they are in several.
MemorySpace place_of(const Lists& lists) {
  const auto same = [&](const SharedSegment& segment) { return segment->space() == lists.all().front()->space(); };
  return !lists.empty() && std::all_of(lists.begin(), lists.end(), same) ? lists.all().front()->space() : MemorySpace();
}

class ListsState final : public IndexState {
 public:
  using Model = std::shared_ptr<const IvfModel>;

  // `probes`: the default of searches; 0: Kith's choice.
  ListsState(const IndexContent& content, const IndexParams& params, Model model, Lists segments, int64_t probes)
      : IndexState(content),
        params_(params),
        model_(std::move(model)),
        segments_(std::move(segments)),
        probes_(probes) {}

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override {
    const IvfSearch wanted{.k = params.k, .probes = probes_for(params.probes), .prepares = params_.prepare};
    if (is_divided(content().space, resources)) {
      return search_in_shards(queries, out, wanted.probes, params.filter, resources);
    }
    dispatch_search(queries, out.space, wanted, params.filter, resources,
                     [&](const SearchableLists& lists, const MatrixView& asked, const IvfSearch& all) {
                       lists.search(asked, all, out, resources);
                     });
  }

  void search_all(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                  const Resources& resources) const override {
    search(queries, out, {.k = params.k, .filter = params.filter, .probes = model_->lists()}, resources);
  }

  // All centres, and the vectors of the nearest lists, as in search(), but without the lists added for short queries.
  int64_t compared(const MatrixView& queries, const SearchParams& params, const Resources& given) const override {
    const int64_t lists = model_->lists();
    const int64_t probes = probes_for(params.probes);
    if (probes == lists) return queries.rows() * (content().rows + (model_->has_centres() ? lists : 0));
    const Resources resources = given.with_device(Device::cpu()).with_progress({});
    MatrixBuffer floats(DType::f32, queries.rows(), queries.cols(), "queries that are counted", resources);
    Neighbors nearest(queries.rows(), probes, resources);
    const KnnParams ranking{.k = probes, .metric = params_.metric, .check_finite = false};
    for (int64_t i = 0; i < queries.rows() && !counts_only(resources); ++i) {
      widen_row(queries, i, typed_row<float>(floats.mutable_view(), i));
    }
    call_or_count(resources, [&](const Resources& used) {
      knn(floats.view(), model_->centres.view(), nearest.view(), ranking, used);
    });
    int64_t total = queries.rows() * lists;
    if (counts_only(resources)) return total;
    std::vector<int64_t> sizes(static_cast<size_t>(lists));
    for (const SharedSegment& segment : segments_) segment->made().add_sizes(nullptr, sizes.data(), resources);
    for (int64_t i = 0; i < queries.rows() * probes; ++i) total += sizes[static_cast<size_t>(nearest.ids()[i])];
    return total;
  }

  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override {
    if (is_divided(content().space, resources)) {
      return range_search_shards(
          {ends(), params_.metric, params.filter, queries}, resources,
          [&](int number, const MatrixView& asked, const RowFilter& filter, const Resources& part) {
            const RangeSearchParams own{.radius = params.radius, .filter = filter, .probes = probes_for(params.probes)};
            const auto lists = shard(number, resources.parts(), part);
            return within_limits("the search of a shard", part, [&](const Resources& used) {
              return lists->range_search(asked, own, used);
            });
          });
    }
    const IvfSearch wanted{.probes = probes_for(params.probes),
                           .most = key_of(params_.metric, params.radius),
                           .prepares = params_.prepare};
    return dispatch_search(queries, MemorySpace::host(), wanted, params.filter, resources,
                            [&](const SearchableLists& lists, const MatrixView& asked, const IvfSearch& all) {
                              return lists.range_search(asked, all, resources);
                            });
  }

  int64_t probes_with_filter(int64_t probes, const std::function<int64_t()>& kept, int64_t live) const override {
    const int64_t lists = model_->lists();
    const int64_t asked = probes_for(probes);
    return asked < lists && kept_decide(kept(), live, asked, lists) ? lists : probes;
  }

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override {
    const HostArray<int64_t> wide(out.rows(), "rows to reconstruct", resources);
    if (counts_only(resources)) {  // the vectors found, and a table of places
      return count_work({copied_bytes() + out.rows() + array_bytes<uint32_t>(content().rows)}, resources);
    }
    std::copy(rows, rows + out.rows(), wide.begin());
    reconstruct_rows(*model_, on_host(resources), wide.data(), out.rows(), out, resources);
  }

  IndexBytes bytes() const override {
    return {model_->bytes() + segments_.bytes(DeviceKind::cpu),
            model_->on_gpus->bytes(DeviceKind::cuda) + segments_.bytes(DeviceKind::cuda)};
  }

  void describe(IndexInfo& info, const LiveRows& live) const override {
    const int64_t lists = model_->lists();
    info.lists = lists;
    info.code_bytes = model_->codec->format().bytes();
    std::vector<int64_t> sizes(static_cast<size_t>(lists));
    for (const SharedSegment& segment : segments_) segment->made().add_sizes(live.bits(), sizes.data(), Resources());
    double squares = 0;
    for (const int64_t size : sizes) {
      info.longest = std::max(info.longest, size);
      info.filled += size > 0;
      squares += static_cast<double>(size) * static_cast<double>(size);
    }
    const auto rows = static_cast<double>(live.count());
    info.imbalance = rows > 0 ? squares * static_cast<double>(lists) / (rows * rows) : 0;
    info.parts.emplace_back("centres and code", model_->bytes());
    info.parts.emplace_back("lists", segments_.bytes(DeviceKind::cpu));
  }

  void give_parts(IndexParts& parts, const Resources& resources) const override {
    if (counts_only(resources)) {
      return count_work({copied_bytes() + (segments_.count() == 1 ? 0 : segment_bytes(content().rows))}, resources);
    }
    ListParts own;
    own.lists = model_->lists();
    own.centres = PartMatrix(model_->centres.view(), model_);
    own.residual = model_->residual;
    own.codec = {model_->codec->format(), model_->codec->values(), model_->codec->recipe().code,
                 model_->codec->recipe().effort};
    const Segment all = whole(resources);
    all->check_lists();
    const auto size = static_cast<size_t>(all->size());
    own.offsets = PartArray<int64_t>({all->offsets(), static_cast<size_t>(own.lists) + 1}, all);
    own.codes = PartArray<uint8_t>({all->codes(), size * static_cast<size_t>(all->code_bytes())}, all);
    own.rows = PartArray<uint32_t>({all->rows(), size}, all);
    parts.lists = std::move(own);
    parts.probes = probes_;
  }

  // The same with other segments.
  SharedState with(Lists segments) const {
    IndexContent content = this->content().with_rows(segments.rows());
    content.space = place_of(segments);
    return std::make_shared<ListsState>(content, params_, model_, std::move(segments), probes_);
  }
  const Model& model() const { return model_; }
  const Lists& segments() const { return segments_; }
  // The host memory of a segment of `rows` vectors.
  int64_t segment_bytes(int64_t rows) const {
    return ListSegment::bytes_for(model_->lists(), rows, model_->codec->format().bytes());
  }

 private:
  std::vector<int64_t> ends() const {
    std::vector<int64_t> all;
    for (size_t i = 0; i < segments_.count(); ++i) all.push_back(segments_.first_row(i + 1));
    return all;
  }

  // A shard: pieces of the segments, in the memory of the part's device, as lists of their own.
  std::shared_ptr<const ListsState> shard(int number, int count, const Resources& part) const {
    const ShardRows rows(ends(), number, count);
    Lists pieces;
    for (size_t i = 0; i < segments_.count(); ++i) {
      const RankPart piece = rows.piece(i);
      if (piece.count == 0) continue;
      pieces.push_back(segments_.all()[i]->shard(count, number, [&] {
        const Segment whole = segments_.all()[i]->on(Device::cpu(), part);
        Segment made = cut_rows(*whole, piece.first, piece.end(), rows.first(i), part.with_progress({}));
        if (part.device().kind == DeviceKind::cuda) made = made->copied_to(part.device(), part);
        return std::make_shared<SegmentCopies>(std::move(made));
      }));
    }
    IndexContent own = content().with_rows(rows.count());
    own.space = MemorySpace();
    return std::make_shared<ListsState>(own, params_, model_, std::move(pieces), probes_);
  }

  // The nearest lists of many queries, ranked once by parts of CPUs, each for a share of the queries. Empty for few
  // queries or very many lists, and with GPUs, which rank faster than results can be copied to them (docs/devices.md).
  HostArray<int32_t> rank_once(const MatrixView& queries, int64_t lists, const Resources& resources) const {
    constexpr int64_t kFewQueries = 64;
    constexpr int64_t kMostRanked = int64_t{1} << 26;
    const std::vector<DeviceParts> devices = resources.devices();
    const bool on_cpus = std::all_of(devices.begin(), devices.end(),
                                     [](const DeviceParts& one) { return one.device == Device::cpu(); });
    if (!on_cpus || !model_->has_centres() || queries.rows() < kFewQueries) return {};
    if (queries.rows() * lists > kMostRanked) return {};
    HostArray<int32_t> ranked(queries.rows() * lists, "the queries' lists", resources);
    share_out(queries.rows(), 1, resources, [&](RankPart share, const Resources& part) {
      const HostRows here(queries.slice(share.first, share.count), part);
      MatrixBuffer floats(DType::f32, share.count, queries.cols(), "queries whose lists are ranked", part);
      for (int64_t i = 0; i < share.count; ++i) widen_row(here.view(), i, typed_row<float>(floats.mutable_view(), i));
      rank_lists(params_.metric, model_->centres.view(), floats.view(), lists, ranked.data() + share.first * lists,
                 part.with_progress({}));
    });
    return ranked;
  }

  // The lists that a query probes depend on the sizes of all shards: if its first `probes` lists have too few vectors,
  // it probes more, and every shard scans its piece of these. Such queries are grouped by their number of lists.
  void search_in_shards(const MatrixView& queries, const NeighborsView& out, int64_t probes, const RowFilter& filter,
                        const Resources& resources) const {
    const auto search = [&](const MatrixView& some, const NeighborsView& found, int64_t lists) {
      const HostArray<int32_t> ranked = rank_once(some, lists, resources);
      search_shards({ends(), params_.metric, filter, some}, found, resources,
                    [&](int number, const MatrixView& asked, const RowFilter& kept, const NeighborsView& to,
                        const Resources& part) {
                      const auto own = shard(number, resources.parts(), part);
                      within_limits("the search of a shard", part, [&](const Resources& used) {
                        own->search_lists_alone(asked, to, lists, ranked.size() > 0 ? ranked.data() : nullptr, kept,
                                                used);
                      });
                    });
    };
    KeptRows kept(filter, content().rows, resources);
    const int64_t most = std::min(out.k, kept.count());
    const bool filtered = kept.leaves_some_out();
    if (probes == model_->lists() || most == 0 || (!filtered && fewest_in(probes) >= most)) {
      return search(queries, out, probes);
    }
    // Queries that find fewer than `most` are those whose lists hold fewer. While memory is only counted,
    // all are assumed to be.
    const HostNeighbors all(out, resources);
    search(queries, all.view(), probes);
    std::vector<int64_t> short_queries;
    for (int64_t i = 0; i < queries.rows(); ++i) {
      if (counts_only(resources) || all.view().ids[i * out.k + most - 1] < 0) short_queries.push_back(i);
    }
    if (!short_queries.empty()) {
      const HostRows here(queries, resources);
      std::map<int64_t, std::vector<int64_t>> by_lists;
      const std::vector<int64_t> needed = [&] {
        const MatrixBuffer asked = rows_of(here.view(), short_queries, resources);
        return lists_needed(asked.view(), probes, most, filtered ? kept.bits(resources) : nullptr, resources);
      }();
      for (size_t i = 0; i < short_queries.size(); ++i) by_lists[needed[i]].push_back(short_queries[i]);
      for (const auto& [lists, numbers] : by_lists) {
        const auto count = static_cast<int64_t>(numbers.size());
        const MatrixBuffer some = rows_of(here.view(), numbers, resources);
        const Neighbors found(count, out.k, resources);
        search(some.view(), const_cast<Neighbors&>(found).view(), lists);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t to = numbers[static_cast<size_t>(i)] * out.k;
          std::copy_n(found.ids(i), out.k, all.view().ids + to);
          std::copy_n(found.distances(i), out.k, all.view().distances + to);
        }
      }
    }
    all.deliver(resources);
  }

  static MatrixBuffer rows_of(const MatrixView& queries, const std::vector<int64_t>& numbers,
                              const Resources& resources) {
    MatrixBuffer some(queries.dtype(), static_cast<int64_t>(numbers.size()), queries.cols(), "queries of short lists",
                      resources);
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::memcpy(some.mutable_view().row(static_cast<int64_t>(i)), queries.row(numbers[i]),
                  static_cast<size_t>(queries.cols() * size_of(queries.dtype())));
    }
    return some;
  }

  // The number of lists that each query probes: `probes`, or enough to hold `most` kept vectors.
  std::vector<int64_t> lists_needed(const MatrixView& queries, int64_t probes, int64_t most, const uint64_t* kept,
                                    const Resources& given) const {
    const Resources resources = given.with_device(Device::cpu()).with_progress({});
    const int64_t lists = model_->lists();
    std::vector<int64_t> sizes(static_cast<size_t>(lists));
    for (const SharedSegment& segment : segments_) segment->made().add_sizes(kept, sizes.data(), resources);
    MatrixBuffer floats(DType::f32, queries.rows(), queries.cols(), "queries whose lists are counted", resources);
    for (int64_t i = 0; i < queries.rows(); ++i) widen_row(queries, i, typed_row<float>(floats.mutable_view(), i));
    std::vector<int64_t> needed(static_cast<size_t>(queries.rows()), 0);
    for (int64_t ranked = probes;; ranked = std::min(4 * ranked, lists)) {
      const HostArray<int32_t> nearest(queries.rows() * ranked, "the queries' lists", resources);
      rank_lists(params_.metric, model_->centres.view(), floats.view(), ranked, nearest.data(), resources);
      bool all = true;
      for (int64_t i = 0; i < queries.rows(); ++i) {
        int64_t held = 0;
        int64_t count = 0;
        while (count < ranked && (count < probes || held < most)) {
          held += sizes[static_cast<size_t>(nearest[i * ranked + count++])];
        }
        needed[static_cast<size_t>(i)] = count;
        all = all && (held >= most || ranked == lists);
      }
      if (all) return needed;
    }
  }

  // Searches exactly `lists` lists per query, however many vectors they have.
  void search_lists_alone(const MatrixView& queries, const NeighborsView& out, int64_t lists, const int32_t* ranked,
                          const RowFilter& filter, const Resources& resources) const {
    const IvfSearch wanted{
        .k = out.k, .probes = lists, .ranked = ranked, .extends = false, .prepares = params_.prepare};
    dispatch_search(queries, out.space, wanted, filter, resources,
                     [&](const SearchableLists& own, const MatrixView& asked, const IvfSearch& all) {
                       own.search(asked, all, out, resources);
                     });
  }

  int64_t probes_for(int64_t asked) const {
    const int64_t lists = model_->lists();
    if (asked == 0) asked = probes_;
    if (asked == 0) asked = default_probes(lists);
    return std::min(asked, lists);
  }

  Device device_for(const MatrixView& queries, const MemorySpace& out, int64_t probes,
                    const Resources& resources) const {
    const auto pairs = static_cast<double>(queries.rows()) * static_cast<double>(content().rows) *
                       static_cast<double>(probes) / static_cast<double>(model_->lists());
    ReusedVector<MemorySpace> spaces = {queries.space(), out};
    // Lists that lie on a GPU are searched there, unless the CPU is asked for: that gets a copy.
    if (resources.device().kind == DeviceKind::automatic) spaces.push_back(content().space);
    // What a GPU may do and the CPU can is counted for the CPU.
    const bool here =
        std::all_of(spaces.begin(), spaces.end(), [](const auto& space) { return space.host_readable(); });
    if (counts_only(resources) && here && resources.device().kind == DeviceKind::automatic) return Device::cpu();
    const auto description = [&] {
      return fmt::format("{} queries, {} of {} lists of {} vectors", queries.rows(), probes, model_->lists(),
                         content().rows);
    };
    return choose_device({"a search of lists", std::cref(description)}, spaces,
                         {{CostUnit::ranked_product, 2 * pairs * static_cast<double>(model_->cols())},
                          {CostUnit::copied_byte, static_cast<double>(bytes_to_come())}},
                         {}, resources);
  }

  // Chooses the device, checks and converts the queries for it, and calls search(lists, queries, parameters).
  template <typename Search>
  auto dispatch_search(const MatrixView& queries, const MemorySpace& out, IvfSearch wanted, const RowFilter& filter,
                        const Resources& resources, const Search& search) const
      -> std::invoke_result_t<Search, const SearchableLists&, const MatrixView&, const IvfSearch&> {
    const bool there = !queries.space().host_readable() && queries.dtype() == DType::f32;
    const HostRows on_host(there ? MatrixView() : queries, resources);
    const bool checks = params_.check_finite && !counts_only(resources);
    if (checks && !there) refuse_not_finite("query", on_host.view(), {0}, resources);
    // The ranking of lists looks at values, where there are any to rank.
    wanted.check_finite = checks && there;
    if (wanted.check_finite && !model_->has_centres()) refuse_not_finite_cuda("query", queries, resources);
    KeptRows kept(filter, content().rows, resources);
    wanted.kept = kept.leaves_some_out() ? kept.bits(resources) : nullptr;
    const auto search_on = [&](Device device) {
      return search(*searchable_on(device, resources), there ? queries : on_host.view(), wanted);
    };
    const Device device = device_for(queries, out, wanted.probes, resources);
    const int64_t most = std::min(wanted.k, kept.count());  // that every query finds
    const auto enough = [&] {
      return wanted.probes == model_->lists() || most == 0 ||
             (wanted.kept == nullptr && fewest_in(wanted.probes) >= most);
    };
    if (device.kind == DeviceKind::cuda) {
      wanted.fewest = !wanted.extends || enough() ? 0 : most;
      try {
        return search_on(device);
      } catch (const OutOfMemory& error) {
        const bool data_on_host = queries.space().host_readable() && out.host_readable();
        if (resources.device().kind != DeviceKind::automatic || !data_on_host) throw;
        resources.log(LogLevel::info, fmt::format("the lists are searched on the CPU: {}", error.what()));
      }
    }
    if (!counts_only(resources)) return search_on(Device::cpu());
    // A query whose lists may hold too few vectors looks at more of them.
    if (!enough()) wanted.probes = model_->lists();
    const Footprint copies{copied_bytes()};
    const bool filtered = wanted.kept != nullptr;
    count_work(
        copies.beside(search_ivf_footprint(*model_, content().rows, wanted, filtered, queries.rows(), resources)),
        resources);
    return std::invoke_result_t<Search, const SearchableLists&, const MatrixView&, const IvfSearch&>();
  }

  // Keeps lists on the host ready for the CPU's next search, with its plan.
  std::shared_ptr<const SearchableLists> searchable_on(Device device, const Resources& resources) const {
    const bool here = std::all_of(segments_.begin(), segments_.end(),
                                  [](const SharedSegment& segment) { return segment->space().host_readable(); });
    if (device.kind != DeviceKind::cpu || !here) return lists_on(device, model_, segments_.all(), resources);
    const std::lock_guard hold(ready_lock_);
    if (ready_ == nullptr) ready_ = lists_on(device, model_, segments_.all(), resources);
    return ready_;
  }

  // The least number of vectors in `probes` lists.
  int64_t fewest_in(int64_t probes) const {
    std::call_once(counted_, [&] {
      std::vector<int64_t> sizes(static_cast<size_t>(model_->lists()));
      for (const SharedSegment& segment : segments_) segment->made().add_sizes(nullptr, sizes.data(), Resources());
      std::sort(sizes.begin(), sizes.end());
      std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
      fewest_ = std::move(sizes);
    });
    return fewest_[static_cast<size_t>(probes - 1)];
  }

  // The segments on the host.
  std::vector<Segment> on_host(const Resources& resources) const {
    std::vector<Segment> segments;
    segments.reserve(segments_.count());
    for (const SharedSegment& segment : segments_) segments.push_back(segment->on(Device::cpu(), resources));
    return segments;
  }

  // Bytes of host copies of the segments that only a GPU holds.
  int64_t copied_bytes() const {
    return segments_.sum([&](const SegmentCopies& segment) {
      return segment.copies().find(Device::cpu()) != nullptr ? 0 : segment_bytes(segment.size());
    });
  }

  // Bytes of the segments that no GPU has.
  int64_t bytes_to_come() const {
    return segments_.sum([](const SegmentCopies& segment) {
      return segment.copies().bytes(DeviceKind::cuda) > 0 ? 0 : segment.copies().bytes(DeviceKind::cpu);
    });
  }

  // All vectors as one segment, even if there are none.
  Segment whole(const Resources& resources) const {
    if (segments_.count() == 1) return segments_.all()[0]->on(Device::cpu(), resources);
    if (!segments_.empty()) return merge_segments(on_host(resources), resources);
    HostArray<int64_t> offsets(model_->lists() + 1, "the offsets of no vectors", resources);
    std::fill(offsets.begin(), offsets.end(), int64_t{0});
    return std::make_shared<ListSegment>(std::move(offsets), HostArray<uint8_t>(), HostArray<uint32_t>(),
                                         model_->codec->format().bytes(), resources);
  }

  const IndexParams params_;
  const Model model_;
  const Lists segments_;
  const int64_t probes_;
  mutable std::once_flag counted_;
  mutable std::vector<int64_t> fewest_;  // in the 1, 2, ... shortest lists; once it was asked for
  mutable std::mutex ready_lock_;
  mutable std::shared_ptr<const SearchableLists> ready_;  // on the CPU, once that was searched
};

// The segments and a new one, which is merged with small ones before it. A GPU merges at the speed of its memory, far
// faster than it encodes, and searches few segments faster, so there it leaves fewer.
Lists grown(const Lists& before, SharedSegment added, const Resources& resources) {
  constexpr int64_t kTimesOnHost = 2;
  constexpr int64_t kTimesOnGpu = 64;
  const bool here = added->space().host_readable();
  const size_t stay = before.staying(added->size(), here ? kTimesOnHost : kTimesOnGpu);
  std::vector<SharedSegment> joined(before.begin() + static_cast<std::ptrdiff_t>(stay), before.end());
  joined.push_back(added);
  try {
    return before.with(stay, merge_copies(joined, resources));
  } catch (const OutOfMemory&) {
    if (here) throw;
    return before.with(before.count(), std::move(added));  // no room for both: it stays by itself
  }
}

void refuse_other_model(const IvfModel& a, const IvfModel& b) {
  if (&a == &b) return;
  const MatrixView x = a.centres.view();
  const MatrixView y = b.centres.view();
  const auto bytes = static_cast<size_t>(x.rows() * x.cols()) * sizeof(float);
  const bool same_centres = x.rows() == y.rows() && (bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0);
  if (!same_centres) throw_not_alike("the centres of their lists differ");
  if (a.residual != b.residual) throw_not_alike("the codes of one are of vectors less their centres");
  if (!same_code(*a.codec, *b.codec)) throw_not_alike("their codes differ");
}

const ListsState& lists(const IndexState& state) { return static_cast<const ListsState&>(state); }

class ListsKind final : public IndexKind {
 public:
  ListsKind(const FactorySpec& spec, const IndexParams& params) : spec_(spec), params_(params) {}

  SearchUse search_use() const override { return {.lists = spec_.has_lists}; }
  bool needs_training() const override { return true; }

  SharedState trained(RowSource& rows, const Resources& resources) const override {
    ListsState::Model model = train_ivf(training_for(rows.info()), params_.metric, rows, params_.seed, resources);
    return std::make_shared<ListsState>(content(*model, 0), params_, std::move(model), Lists(), 0);
  }

  Footprint training_footprint(const RowsInfo& rows, const Resources& resources) const override {
    return train_ivf_footprint(training_for(rows), params_.metric, rows, resources);
  }

  SharedState added(const IndexState* before, const MatrixView& rows, Ownership,
                    const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const int64_t first_row = state.content().rows;
    return state.with(grown(state.segments(), make_segment(*state.model(), rows, first_row, resources), resources));
  }

  Footprint add_footprint(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const Lists& segments = state.segments();
    const Footprint made = make_segment_footprint(*state.model(), rows, resources);
    if (!rows.space.host_readable()) return made;  // it stays by itself where there is no room to merge
    const int64_t joined = segments.rows() - segments.first_row(segments.staying(rows.rows)) + rows.rows;
    return made.then({state.segment_bytes(rows.rows) + state.segment_bytes(joined)});
  }

  SharedState compacted(const IndexState& before, const KeptRows& kept, const Resources& resources) const override {
    const ListsState& state = lists(before);
    Lists segments;
    for (const SharedSegment& segment : state.segments()) {
      SharedSegment left = without(*segment, kept, state.content().rows, resources);
      if (left->size() > 0) segments.push_back(std::move(left));
    }
    return state.with(std::move(segments));
  }

  SharedState merged(const IndexState* before, const IndexState& other, const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const auto* const more = dynamic_cast<const ListsState*>(&other);
    if (more == nullptr) throw_not_alike("the other index has no lists of codes");
    refuse_other_model(*state.model(), *more->model());
    Lists segments = state.segments();
    const int64_t rows = state.content().rows;
    for (const SharedSegment& segment : more->segments()) {
      auto numbered =
          std::make_shared<SegmentCopies>(renumbered(*segment->on(Device::cpu(), resources), rows, resources));
      segments = grown(segments, std::move(numbered), resources);
    }
    return state.with(std::move(segments));
  }

  SharedState restored(IndexParts& parts, const Resources& resources) const override {
    ListParts& own = *parts.lists;
    auto model = std::make_shared<IvfModel>();
    model->metric = params_.metric;
    if (own.centres.rows() > 0) model->centres = std::move(own.centres).take("the lists' centres", resources);
    model->residual = own.residual;
    model->codec = Codec::from_parts(own.codec.recipe(), own.codec.format.cols, std::move(own.codec.values), resources);
    model->validate();
    Lists segments;
    IndexParams params = params_;
    const auto restore = [&](ListArrayParts& arrays) {
      if (arrays.rows.empty()) return;
      if (!arrays.path.empty()) params.prepare = false;  // what lies on the disk gets no copies in memory
      segments.push_back(restored_segment(arrays, own.lists, parts.rows, model->codec->format().bytes(), resources));
    };
    restore(own);
    for (ListArrayParts& arrays : own.behind) restore(arrays);
    const IndexContent whole = content(*model, segments.rows());
    return std::make_shared<ListsState>(whole, params, model, std::move(segments), parts.probes);
  }

 private:
  static SharedSegment restored_segment(ListArrayParts& arrays, int64_t lists, int64_t rows, int64_t code_bytes,
                                        const Resources& resources) {
    constexpr std::string_view kPurpose = "the index's lists";
    if (arrays.path.empty()) {
      return std::make_shared<SegmentCopies>(std::make_shared<ListSegment>(
          std::move(arrays.offsets).take(kPurpose, resources), std::move(arrays.codes).take(kPurpose, resources),
          std::move(arrays.rows).take(kPurpose, resources), code_bytes, resources));
    }
    const auto held = std::make_shared<const ListArrayParts>(std::move(arrays));
    ListSegment::Unchecked unchecked{rows, held->path};
    unchecked.own_bytes = static_cast<int64_t>(held->offsets.bytes().size());
    if (!held->rows.unchecked()) unchecked.own_bytes += static_cast<int64_t>(held->rows.bytes().size());
    const ListSegment::Arrays there{held->offsets.data(), held->codes.data(), held->rows.data(), lists,
                                    held->rows.size()};
    return std::make_shared<SegmentCopies>(
        std::make_shared<ListSegment>(there, code_bytes, held, unchecked, resources));
  }

  IvfSpec training_for(const RowsInfo& rows) const {
    IvfSpec spec;
    spec.lists = spec_.has_lists ? spec_.lists : kOneList;
    spec.expected_rows = params_.expected_rows;
    spec.code = spec_.code.value_or(CodeRecipe{.dtype = rows.dtype});
    return spec;
  }

  // Stored codes hold one dtype, unless the factory string names it; others are made from any.
  IndexContent content(const IvfModel& model, int64_t rows) const {
    const CodeFormat& format = model.codec->format();
    return {rows, format.cols, format.dtype, {}, spec_.code.has_value() || format.dtype == DType::f32, true};
  }

  const FactorySpec spec_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_lists_kind(const FactorySpec& spec, const IndexParams& params) {
  check_ivf_metric(params.metric);
  if (spec.code) check_norm_metric(spec.code->norm, params.metric);
  return std::make_shared<ListsKind>(spec, params);
}

}  // namespace kith
