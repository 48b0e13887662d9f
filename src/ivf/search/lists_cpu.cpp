// The search of lists on the CPU, from what is asked to rounds of batches (list_backend_cpu.hpp): what it takes, what
// its rounds share, and the screens that few queries have made.
#include "core/byte_size.hpp"
#include "core/float_mode.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "core/reused_memory.hpp"
#include "exact/range_loop.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/scan/list_screen.hpp"
#include "ivf/search/kept_vectors.hpp"
#include "ivf/search/list_backend_cpu.hpp"
#include "ivf/search/list_loop.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/kept_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace kith {
namespace {

// Codeword tables of a search: for all queries at once, or for as many as there are tables at a time.
CodeWords::Wanted wanted_words(const IvfModel& model, int64_t queries, int64_t probes, bool screened) {
  const CpuExtensions cpu = cpu_extensions();
  const int64_t together = ListProductShape::batch_for_tables(model, queries, probes, cpu, screened);
  const auto of = [&](int64_t count) {
    return ListProductShape::choose(model, count, cpu, screened).wanted_words(model, count);
  };
  const CodeWords::Wanted all = of(queries);
  const CodeWords::Wanted some = of(together);
  return {all.columns || some.columns, all.rounded || some.rounded};
}

// The smallest plan, with what the model keeps of its codewords. A limit may have queries searched a few at a time,
// which is planned otherwise.
Footprint least_search(const IvfModel& model, const BatchNeeds& needs, int64_t queries, bool screened,
                       const Resources& resources) {
  const auto of = [&](int64_t count) {
    return CodeWords::footprint(model.codec->format(), wanted_words(model, count, needs.slots, screened))
        .beside(least_plan(
            [&](const PlanBudget& budget) {
              return PlanWithin{plan_lists_cpu(model, needs, count, screened, budget, resources)};
            },
            resources));
  };
  return of(queries).then(of(1));
}

Footprint search_footprint(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered, int64_t queries,
                           bool screened, const Resources& resources) {
  const int64_t slots = std::min(search.probes, model.lists());
  if (!search.most) {
    const BatchNeeds needs{std::min(search.k, rows), slots, search.k};
    return array_footprint<int64_t>(filtered ? model.lists() : 0)
        .beside(least_search(model, needs, queries, screened, resources));
  }
  constexpr int64_t kFirstHits = 64 << 10;  // per thread: its first two segments
  Footprint needed = least_search(model, {kRangeListLength, slots, 0}, queries, screened, resources)
                         .beside(array_footprint<std::byte>(resources.threads(), kFirstHits))
                         .beside(array_footprint<std::byte>(queries + 1, 64));
  needed.at_least = true;
  return needed;
}

// A reference vector near those of a list without a centre.
ReusedVector<float> mean_of_vectors(const ListedVectors& vectors) {
  constexpr int64_t kSample = 256;
  const int64_t cols = vectors.model().cols();
  std::vector<double> sums(static_cast<size_t>(cols), 0.0);
  ReusedVector<float> mean(static_cast<size_t>(cols), 0.0f);
  const int64_t count = std::min(kSample, vectors.size());
  for (int64_t i = 0; i < count; ++i) {
    auto place = static_cast<uint32_t>(vectors.size() * i / count);
    vectors.decode(&place, 1, mean.data());
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += mean[static_cast<size_t>(c)];
  }
  for (int64_t c = 0; c < cols; ++c) {
    const double value = count == 0 ? 0.0 : sums[static_cast<size_t>(c)] / static_cast<double>(count);
    mean[static_cast<size_t>(c)] = std::isfinite(value) ? static_cast<float>(value) : 0.0f;
  }
  return mean;
}

// A search on the CPU: the state its rounds share.
class CpuSearcher final : public ListSearcher {
 public:
  // The task says how many vectors a query's lists must hold where nearest ones are wanted. `kept`: how many the filter
  // keeps, where there is one.
  CpuSearcher(const ListedVectors& vectors, const PlaceTables& places, const IvfSearch& task, int64_t kept,
              int64_t queries, KeptListsPlan* plans, const Resources& resources)
      : resources_(resources),
        plans_(plans),
        data_{.vectors = vectors,
              .task = task,
              .kept = kept,
              .sizes = HostArray<int64_t>(wants_sizes(task) ? lists_of(vectors) : 0, "the lists' sizes", resources),
              .tables = ListTables(vectors.model(), origin_of(vectors, queries),
                                   wanted_words(vectors.model(), queries, task.probes, vectors.screened()),
                                   resources)} {
    std::fill(data_.sizes.begin(), data_.sizes.end(), kNotCounted);
    if (compares_kept()) data_.places = find_kept(vectors, places, task.kept, kept, resources);
  }

  const IvfSearch& task() const override { return data_.task; }
  Metric metric() const override { return model().metric; }
  int64_t lists() const override { return model().lists(); }
  Footprint least(const ListsRound& first) const override {
    return search_footprint(model(), data_.vectors.size(), data_.task, data_.task.kept != nullptr, first.queries,
                            data_.vectors.screened(), resources_);
  }

  PlanWithin<ListsPlan> plan(const ListsRound& round, const PlanBudget& budget) const override {
    const BatchNeeds needs = data_.needs(round.slots);
    const bool screened = data_.vectors.screened();
    if (plans_ != nullptr) return {plans_->get(model(), needs, round.queries, screened, budget, resources_)};
    return {plan_lists_cpu(model(), needs, round.queries, screened, budget, resources_)};
  }
  std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                      const Resources& planned) const override {
    return make_cpu_backend(data_, round.slots, std::get<ListsCpuPlan>(plan), planned);
  }

 private:
  const IvfModel& model() const { return data_.vectors.model(); }
  static int64_t lists_of(const ListedVectors& vectors) { return vectors.model().lists(); }

  // Whether the kept vectors are compared one by one, in the place of all lists: few are kept of them.
  bool compares_kept() const {
    return keeps_few(data_.vectors, data_.task, data_.kept) &&
           array_bytes<uint32_t>(data_.kept) <= resources_.host_memory()->available() / 4;
  }
  static bool wants_sizes(const IvfSearch& task) { return task.kept != nullptr && !task.most; }

  // Where some lists are decoded.
  static ReusedVector<float> origin_of(const ListedVectors& vectors, int64_t queries) {
    const IvfModel& model = vectors.model();
    if (vectors.screened() && model.residual) {
      const std::vector<float>& origin = vectors.screen(0)->origin();
      return {origin.begin(), origin.end()};
    }
    if (model.has_centres() || !has_differences(key_kind(model.metric))) return {};
    const CpuExtensions cpu = cpu_extensions();
    const bool screened = vectors.screened();
    const int64_t together = ListProductShape::batch_for_tables(model, queries, model.lists(), cpu, screened);
    const ListEngine engine = ListProductShape::choose(model, together, cpu, screened).engine_for(together);
    if (engine != ListEngine::panels && engine != ListEngine::tiles) return {};  // other engines decode nothing
    return mean_of_vectors(vectors);
  }

  const Resources& resources_;
  KeptListsPlan* const plans_;  // null: plans are not kept
  CpuSearchData data_;
};

void check_input(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                 int64_t probes) {
  model.validate();
  if (probes < 1) throw InvalidArgument(fmt::format("probes = {}; at least one list must be searched", probes));
  if (queries.cols() != model.cols()) {
    throw InvalidArgument(fmt::format("the queries have {} columns and the index {}", queries.cols(), model.cols()));
  }
  for (const Segment& segment : segments) {
    if (segment->lists() == model.lists() && segment->code_bytes() == model.codec->format().bytes()) continue;
    throw InvalidArgument("the lists are not of this model");
  }
}

int64_t count_kept(const ListedVectors& vectors, const IvfSearch& search) {
  return search.kept == nullptr ? vectors.size() : count_set_bits(search.kept, vectors.size());
}

// `kept`: how many vectors the filter keeps, or all.
void search_vectors(const ListedVectors& vectors, const PlaceTables& places, const MatrixView& queries,
                    const IvfSearch& search, int64_t kept, const NeighborsView& out, KeptListsPlan* plans,
                    const Resources& resources) {
  const IvfModel& model = vectors.model();
  check_input(model, vectors.segments(), queries, search.probes);
  if (search.k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", search.k));
  const ResultExit exit(model.metric);
  std::fill_n(out.ids, out.queries * out.k, exit.id(kPadding));
  std::fill_n(out.distances, out.queries * out.k, exit.distance(kPadding));
  if (kept == 0 || queries.rows() == 0) return;
  IvfSearch task = search;
  task.probes = std::min(search.probes, model.lists());
  task.fewest = std::min(search.k, kept);
  if (search_kept(vectors, places, queries, task, kept, out, resources)) return;
  search_lists(CpuSearcher(vectors, places, task, kept, queries.rows(), plans, resources), queries, out, resources);
}

RangeNeighbors range_search_vectors(const ListedVectors& vectors, const PlaceTables& places, const MatrixView& queries,
                                    const IvfSearch& search, int64_t kept, const Resources& resources) {
  const IvfModel& model = vectors.model();
  check_input(model, vectors.segments(), queries, search.probes);
  if (vectors.size() == 0) return write_hits(model.metric, {}, nullptr, queries.rows(), resources);
  IvfSearch task = search;
  task.probes = std::min(search.probes, model.lists());
  return range_search_lists(CpuSearcher(vectors, places, task, kept, queries.rows(), nullptr, resources), queries,
                            resources);
}

}  // namespace

void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, const NeighborsView& out, const Resources& resources) {
  const DefaultFloatMode mode;
  const ListedVectors vectors(model, segments);
  search_vectors(vectors, {}, queries, search, count_kept(vectors, search), out, nullptr, resources);
}

RangeNeighbors range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                                const IvfSearch& search, const Resources& resources) {
  const DefaultFloatMode mode;
  const ListedVectors vectors(model, segments);
  return range_search_vectors(vectors, {}, queries, search, count_kept(vectors, search), resources);
}

namespace {

class ListsOnCpu final : public SearchableLists {
 public:
  ListsOnCpu(const IvfModel& model, const std::vector<SharedSegment>& segments, const Resources& resources)
      : model_(model), shared_(segments) {
    for (const SharedSegment& segment : segments) segments_.push_back(segment->on(Device::cpu(), resources));
  }

  void search(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
              const Resources& resources) const override {
    const DefaultFloatMode mode;
    const Resources here = resources.with_device(Device::cpu());
    const ListedVectors vectors(model_, segments_, screens_for(queries, search, here));
    const int64_t kept = count_kept(vectors, search);
    search_vectors(vectors, places_for(vectors, queries, search, kept, here), queries, search, kept, out, &plans_, here);
  }
  RangeNeighbors range_search(const MatrixView& queries, const IvfSearch& search,
                              const Resources& resources) const override {
    const DefaultFloatMode mode;
    const Resources here = resources.with_device(Device::cpu());
    const ListedVectors vectors(model_, segments_, screens_for(queries, search, here));
    const int64_t kept = count_kept(vectors, search);
    return range_search_vectors(vectors, places_for(vectors, queries, search, kept, here), queries, search, kept, here);
  }

 private:
  // Memory a search does not need, available for data kept beside the lists.
  int64_t spare_room(const MatrixView& queries, const IvfSearch& search, bool screened,
                     const Resources& resources) const {
    const int64_t rows = std::accumulate(segments_.begin(), segments_.end(), int64_t{0},
                                         [](int64_t sum, const Segment& one) { return sum + one->size(); });
    const Footprint least =
        search_footprint(model_, rows, search, search.kept != nullptr, queries.rows(), screened, resources);
    return resources.host_memory()->available() - least.host;
  }
  static bool is_limited(const Resources& resources) {
    constexpr int64_t kPlenty = int64_t{1} << 50;  // without a limit
    return resources.host_memory()->available() < kPlenty;
  }

  // All segments' tables of places, or none: where few vectors of all lists are kept, and there is room.
  PlaceTables places_for(const ListedVectors& vectors, const MatrixView& queries, const IvfSearch& search, int64_t kept,
                         const Resources& resources) const {
    if (!search.prepares || !keeps_few(vectors, search, kept) || (is_limited(resources) && search.most)) return {};
    PlaceTables tables;
    for (const SharedSegment& segment : shared_) {
      SharedPlaceTable table = find_place_table(*segment);
      if (table == nullptr) {
        const int64_t room = spare_room(queries, search, vectors.screened(), resources) / 4;
        table = get_place_table(*segment, room, resources);
      }
      if (table == nullptr) return {};
      tables.push_back(std::move(table));
    }
    return tables;
  }

  // All segments' screens, or none. Few queries of a list have them made, any number where that takes less time than
  // decoding scalar codes; they are used where there is room for a search with them, which takes more than one without.
  ReusedVector<SharedScreen> screens_for(const MatrixView& queries, const IvfSearch& search,
                                         const Resources& resources) const {
    if (!search.prepares || !ListScreen::suits(model_)) return {};
    const int64_t probes = std::min(search.probes, model_.lists());
    const CpuExtensions cpu = cpu_extensions();
    const int64_t batch = ListProductShape::batch_for_tables(model_, queries.rows(), probes, cpu, true);
    const ListProductShape shape = ListProductShape::choose(model_, batch, cpu, true);
    const bool any_number = shape.engine == ListEngine::bytes && !model_.codec->format().stores_values();
    const bool makes = any_number || queries.rows() * probes <= shape.few_queries * model_.lists();
    const auto room = [&] { return spare_room(queries, search, true, resources); };
    if (is_limited(resources) && (search.most || room() < 0)) return {};  // what a range search finds may take the rest
    ReusedVector<SharedScreen> screens;
    for (const SharedSegment& segment : shared_) {
      SharedScreen screen = find_list_screen(*segment);
      if (screen == nullptr && makes) screen = get_list_screen(*segment, model_, room() / 2, resources);
      if (screen == nullptr) return {};
      screens.push_back(std::move(screen));
    }
    return screens;
  }

  const IvfModel& model_;
  const std::vector<SharedSegment>& shared_;
  std::vector<Segment> segments_;
  mutable KeptListsPlan plans_;
};

}  // namespace

std::shared_ptr<const SearchableLists> lists_on(Device device, const std::shared_ptr<const IvfModel>& model,
                                                const std::vector<SharedSegment>& segments,
                                                const Resources& resources) {
  if (device.kind == DeviceKind::cuda) return gpu_lists(device.index, model, segments, resources);
  return std::make_shared<ListsOnCpu>(*model, segments, resources);
}

Footprint search_ivf_footprint(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                               int64_t queries, const Resources& resources) {
  return search_footprint(model, rows, search, filtered, queries, false, resources);
}

}  // namespace kith
