// The search of lists on a GPU, from a request to rounds of batches (list_backend_cuda.hpp): its memory and its plan.
// Calls wait until they are done, so that memory may be freed whenever no search is running.
#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "cuda/gpu_plan.hpp"
#include "exact/range_loop.hpp"
#include "ivf/search/all_lists_cuda.hpp"
#include "ivf/search/list_backend_cuda.hpp"
#include "ivf/search/pieced_lists_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kRangeQueryBytes = 64;  // host bytes per query besides its hits

class CudaSearcher final : public ListSearcher {
 public:
  CudaSearcher(int device, const GpuModelCuda& model, Metric metric, const GpuParts& parts, int64_t rows,
               const IvfSearch& task, int64_t queries, const Resources& given,
               const std::optional<InPieces>& in_pieces = {})
      : data_(device, model, metric, parts, rows, task, queries, given, in_pieces) {}

  const IvfSearch& task() const override { return data_.task; }
  Metric metric() const override { return data_.metric; }
  int64_t lists() const override { return data_.lists; }
  const Resources& resources() const { return data_.resources; }

  Footprint least(const ListsRound& first) const override;
  PlanWithin<ListsPlan> plan(const ListsRound& round, const PlanBudget& budget) const override;
  std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                      const Resources& planned) const override {
    return make_cuda_backend(data_, round, std::get<ListsCudaPlan>(plan), planned);
  }

 private:
  ListsCudaPlan plan_batch(const ListsRound& round, int64_t batch, bool few, int64_t most, int64_t for_ranking,
                           const DeviceInfo& gpu, const PlanBudget& budget) const;

  const CudaSearchData data_;
};

// `few`: one launch ranks. `for_ranking`: else the device memory that ranking may plan with.
ListsCudaPlan CudaSearcher::plan_batch(const ListsRound& round, int64_t batch, bool few, int64_t most,
                                       int64_t for_ranking, const DeviceInfo& gpu, const PlanBudget& budget) const {
  const RoundShape shape = data_.round_shape(round, few);
  const bool to_host = round.result_space.host_readable();
  const int64_t gathered = round.again ? array_bytes<uint32_t>(batch) : 0;  // numbers of queries
  ListsCudaPlan plan;
  plan.query_batch = batch;
  plan.ranks_few = few;
  plan.host_bytes = array_bytes<float>(shape.stages ? batch * shape.cols : 0) +
                    array_bytes<uint64_t>(to_host ? batch * data_.task.k : 0);
  int64_t beside = gathered;
  if (data_.model.centres() != nullptr && shape.ranked_lists == 0) {
    plan.ranking =
        plan_knn_cuda(data_.ranking_task(round, batch), gpu, {kNoLimit, for_ranking, budget.threads, budget.cpu});
    plan.host_bytes += plan.ranking->host_bytes;
    beside = saturating_add(beside, plan.ranking->device_bytes);
  }
  if (data_.task.most) {
    plan.device_bytes = saturating_add(RoundLayout(shape, batch).bytes, beside);
    plan.device_bytes += footprint_of<HitMemory>(data_.resources, batch, int64_t{0}, data_.context).device;
    plan.hits = std::max<int64_t>(1, (most - plan.device_bytes) / kHitBytes);
    plan.device_bytes += plan.hits * kHitBytes;
    return plan;
  }
  std::vector<IvfSearchShape> parts;
  for (size_t p = 0; p < data_.parts.size(); ++p) parts.push_back(data_.shape_of(p, batch, round.slots));
  plan_scans(shape, parts, beside, most, plan);
  return plan;
}

// Queries that are searched together at least. Where lists come in pieces each batch goes over all of them: so many
// then as take little beside a piece.
int64_t least_batch(const ListsRound& round, const CudaSearchData& data) {
  constexpr int64_t kBytes = int64_t{8} << 20;
  constexpr int64_t kMost = 16384;
  if (!data.in_pieces) return 1;
  const int64_t most = std::clamp<int64_t>(kMostProbes / std::max<int64_t>(round.slots, data.task.k), 1, kMost);
  const int64_t fits = kBytes / divide_up(RoundLayout(data.round_shape(round, false), 256).bytes, 256);
  return std::clamp<int64_t>(std::min(most, fits), 1, round.queries);
}

// Batches take up to a third of the memory, or a sixth where hits may be many, and ranking up to a sixth; the scan the
// rest.
PlanWithin<ListsPlan> CudaSearcher::plan(const ListsRound& round, const PlanBudget& given) const {
  return plan_on_gpu(
      Device::cuda(data_.context->device()), given, [&](const DeviceInfo& gpu, const PlanBudget& budget) {
        constexpr int64_t kSome = 256;  // large enough that padding between arrays is negligible
        const int64_t most = std::min(budget.device, gpu.memory_free / 2);  // leaves room for other searches
        const int64_t wanted =
            std::clamp<int64_t>(kMostProbes / std::max<int64_t>(round.slots, data_.task.k), 1, round.queries);
        const int64_t each = divide_up(RoundLayout(data_.round_shape(round, false), kSome).bytes, kSome);
        const int64_t least = std::min(least_batch(round, data_), wanted);
        int64_t batch = std::clamp<int64_t>(most / (data_.task.most ? 6 : 3) / each, least, wanted);
        const auto fits = [&](const ListsCudaPlan& plan) {
          return plan.device_bytes <= most && plan.host_bytes <= budget.host;
        };
        ListsCudaPlan plan = plan_batch(round, batch, data_.ranks_few(round, batch), most, most / 6, gpu, budget);
        while (!fits(plan) && batch > least) {
          batch = std::max(divide_up(batch, 2), least);
          plan = plan_batch(round, batch, false, most, most / 6, gpu, budget);
        }
        if (!fits(plan)) plan = plan_batch(round, least, false, most, 0, gpu, budget);
        return ListsPlan(std::move(plan));
      });
}

// The largest of all rounds that may follow. A range search takes it twice: hits need room beside the plan, which gets
// half of the memory left.
Footprint CudaSearcher::least(const ListsRound& first) const {
  Footprint needed;
  for (ListsRound round = first;; round.again = true) {
    needed = needed.then(least_plan([&](const PlanBudget& budget) { return plan(round, budget); }, data_.resources));
    if (data_.task.fewest == 0 || (round.again && round.slots == data_.lists)) break;
    round.slots = std::min(4 * round.slots, data_.lists);
  }
  if (!data_.task.most) return needed;
  needed =
      needed.beside(RangeHits::footprint(0, first.queries, data_.resources.threads(), RangeHits::kFirstSegmentBytes))
          .beside(array_footprint<std::byte>(first.queries + 1, kRangeQueryBytes))
          .times(2);
  needed.at_least = true;
  return needed;
}

class GpuListsCuda final : public SearchableLists {
 public:
  GpuListsCuda(int device, std::shared_ptr<const IvfModel> model, const std::vector<SharedSegment>& segments,
               const Resources& resources)
      : device_(device), host_model_(std::move(model)), model_(gpu_model(device, *host_model_, resources)) {
    const Resources each = sharing_spare(resources, segments.size());
    for (const SharedSegment& segment : segments) {
      rows_ += segment->size();
      if (segment->size() == 0) continue;
      parts_.push_back(prepared_segment(device, *segment, *host_model_, model_, each));
    }
  }

  void search(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
              const Resources& resources) const override {
    if (queries.rows() == 0 || parts_.empty()) return;
    const ListsOnDevice there{device_, host_model_->metric, host_model_->lists(), rows_, parts_};
    if (search_all_lists(there, queries, search, out, resources)) return;
    const CudaSearcher searcher = for_search(search, queries, resources);
    search_lists(searcher, queries, out, searcher.resources());
  }

  RangeNeighbors range_search(const MatrixView& queries, const IvfSearch& search,
                              const Resources& resources) const override {
    if (queries.rows() == 0 || parts_.empty()) {
      return write_hits(host_model_->metric, {}, nullptr, queries.rows(), resources);
    }
    const CudaSearcher searcher = for_search(search, queries, resources);
    return range_search_lists(searcher, queries, searcher.resources());
  }

 private:
  CudaSearcher for_search(const IvfSearch& wanted, const MatrixView& queries, const Resources& resources) const {
    IvfSearch search = wanted;
    search.probes = std::min(search.probes, host_model_->lists());
    return CudaSearcher(device_, *model_, host_model_->metric, parts_, rows_, search, queries.rows(), resources);
  }

  const int device_;
  const std::shared_ptr<const IvfModel> host_model_;
  const std::shared_ptr<const GpuModelCuda> model_;
  GpuParts parts_;
  int64_t rows_ = 0;
};

// Lists in host memory: copied to the GPU and kept there if it has room, else searched in pieces.
class ListsForGpu final : public SearchableLists {
 public:
  ListsForGpu(int device, std::shared_ptr<const IvfModel> model, std::vector<SharedSegment> segments)
      : device_(device), model_(std::move(model)), segments_(std::move(segments)) {
    for (const SharedSegment& segment : segments_) rows_ += segment->size();
  }

  void search(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
              const Resources& resources) const override {
    const auto there = [&](const Resources& used) { all_there(used).search(queries, search, out, used); };
    const auto in_pieces = [&](const Resources& used) { search_pieces(queries, search, out, used); };
    const Footprint whole = counted(resources, there);
    if (counts_only(resources)) {
      // The choice depends on the memory that is free at that time.
      const Footprint pieces = counted(resources, in_pieces);
      return count_work({std::max(whole.host, pieces.host), std::min(whole.device, pieces.device)}, resources);
    }
    return has_room_for(whole, resources) ? there(resources) : in_pieces(resources);
  }

  RangeNeighbors range_search(const MatrixView& queries, const IvfSearch& search,
                              const Resources& resources) const override {
    return all_there(resources).range_search(queries, search, resources);
  }

 private:
  GpuListsCuda all_there(const Resources& resources) const { return {device_, model_, segments_, resources}; }

  void search_pieces(const MatrixView& queries, const IvfSearch& wanted, const NeighborsView& out,
                     const Resources& resources) const {
    const std::shared_ptr<const GpuModelCuda> model = gpu_model(device_, *model_, resources);
    IvfSearch search = wanted;
    search.probes = std::min(search.probes, model_->lists());
    const auto search_pieces = [&](const std::shared_ptr<const PreparedSegmentCuda>& like, const InPieces& pieces,
                                   const IvfSearch& each, const Resources& used) {
      const GpuParts parts{like};
      const CudaSearcher searcher(device_, *model, model_->metric, parts, rows_, each, queries.rows(), used, pieces);
      search_lists(searcher, queries, out, searcher.resources());
    };
    search_in_pieces({device_, *model_, model, segments_}, queries, search, search_pieces, resources);
  }

  const int device_;
  const std::shared_ptr<const IvfModel> model_;
  const std::vector<SharedSegment> segments_;
  int64_t rows_ = 0;
};

}  // namespace

void plan_scans(const RoundShape& shape, const std::vector<IvfSearchShape>& parts, int64_t beside, int64_t most,
                ListsCudaPlan& plan) {
  const int64_t uneven = shape.in_pieces ? InPieces::kUnevenBytes : 0;
  const int64_t room = RoundLayout::most_scan_bytes(shape, plan.query_batch, most - beside);
  const int64_t left = std::max<int64_t>(0, room - uneven);
  for (const IvfSearchShape& part : parts) {
    plan.parts.push_back(plan_ivf_search(part, left));
    plan.scan_bytes = std::max(plan.scan_bytes, plan.parts.back().bytes);
    if (!shape.in_pieces) continue;
    // A piece is looked at by some of the queries, which fit together where all do not.
    const int64_t together = plan_ivf_search(part, kNoLimit).bytes;
    plan.scan_bytes = std::max(plan.scan_bytes, std::min(left, together));
  }
  plan.scan_bytes += uneven;
  plan.device_bytes = saturating_add(RoundLayout(shape, plan.query_batch, plan.scan_bytes).bytes, beside);
}

std::shared_ptr<const SearchableLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                                 const std::vector<SharedSegment>& segments,
                                                 const Resources& resources) {
  if (may_be_in_pieces(device, segments, resources)) return std::make_shared<ListsForGpu>(device, model, segments);
  return std::make_shared<GpuListsCuda>(device, model, segments, resources);
}

}  // namespace kith
