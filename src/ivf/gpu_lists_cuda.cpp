// The steps of a search of lists on a device: the coarse step is exact search over the centres, the rest is
// ivf_search_cuda.hpp or list_range_cuda.hpp, for one segment after the other. Calls wait for their end, so that memory
// may be freed whenever nobody searches.
#include "ivf/gpu_lists.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "ivf/gpu_model_cuda.hpp"
#include "ivf/ivf_search_cuda.hpp"
#include "ivf/list_range_cuda.hpp"
#include "ivf/merge_found_cuda.hpp"
#include "ivf/pack_probes_cuda.hpp"
#include "ivf/prepared_segment_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

namespace kith {
namespace {

using Part = std::shared_ptr<const PreparedSegmentCuda>;

constexpr int64_t kMostProbes = int64_t{1} << 24;  // of the queries searched together

// Where a call's queries, and the lists of each, come to lie.
class QueryBatch {
 public:
  static int64_t bytes_for_each(const MatrixView& queries, int64_t probes) {
    return (queries.space().host_readable() ? queries.cols() * 4 : 0) + probes * 20;
  }

  QueryBatch(const GpuModelCuda& model, const MatrixView& queries, int64_t together, int64_t probes, bool check_finite,
             std::shared_ptr<const DeviceContext> context, const Resources& resources)
      : model_(model),
        all_(queries),
        probes_(probes),
        check_finite_(check_finite),
        context_(std::move(context)),
        resources_(resources),
        rows_(queries.space().host_readable() ? together * queries.cols() * 4 : 0, "queries on the device", context_,
              resources),
        ranked_(together * probes * 12, "the queries' lists", context_, resources),
        packed_(together * probes * 8, "the queries' lists", context_, resources) {}

  // Brings some of them and ranks their lists.
  void load(int64_t first, int64_t count) {
    now_ = all_.slice(first, count);
    if (all_.space().host_readable()) {
      const auto width = static_cast<size_t>(now_.cols()) * sizeof(float);
      KITH_CUDA_CHECK(cudaMemcpy2DAsync(rows_.data(), width, now_.data(),
                                        static_cast<size_t>(now_.row_stride()) * sizeof(float), width,
                                        static_cast<size_t>(count), cudaMemcpyHostToDevice, context_->stream()));
      now_ = {rows_.data(), DType::f32, {count, now_.cols(), now_.cols()}, MemorySpace::cuda(context_->device())};
    }
    auto* const to = reinterpret_cast<uint64_t*>(packed_.data());
    if (model_.centres() == nullptr) {  // one list
      KITH_CUDA_CHECK(cudaMemsetAsync(to, 0, static_cast<size_t>(count) * sizeof(uint64_t), context_->stream()));
      return;
    }
    auto* const lists = reinterpret_cast<int64_t*>(ranked_.data());
    auto* const distances = reinterpret_cast<float*>(lists + count * probes_);
    model_.centres()->nearest(now_, probes_, check_finite_, lists, distances, resources_);
    launch_pack_probes(lists, count * probes_, to, context_->stream());
  }

  const float* queries() const { return static_cast<const float*>(now_.data()); }
  int64_t stride() const { return now_.row_stride(); }
  const uint64_t* probes() const { return reinterpret_cast<const uint64_t*>(packed_.data()); }

 private:
  const GpuModelCuda& model_;
  const MatrixView all_;
  const int64_t probes_;
  const bool check_finite_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources& resources_;
  const DeviceBuffer rows_;
  const DeviceBuffer ranked_;
  const DeviceBuffer packed_;
  MatrixView now_;
};

class GpuListsCuda final : public GpuLists {
 public:
  GpuListsCuda(int device, std::shared_ptr<const IvfModel> model, const std::vector<SharedSegment>& segments,
               const Resources& resources)
      : device_(device), host_model_(std::move(model)), model_(gpu_model(device, *host_model_, resources)) {
    for (const SharedSegment& segment : segments) {
      rows_ += segment->size();
      if (segment->size() == 0) continue;
      parts_.push_back(prepared_segment(device, *segment, *host_model_, model_, resources));
    }
  }

  void search(const MatrixView& queries, const IvfSearch& search, bool check_finite, const NeighborsView& out,
              const Resources& given) const override {
    if (queries.rows() == 0) return;
    const DeviceGuard guard(device_);
    const auto context = std::make_shared<const DeviceContext>(device_, given.options().stream);
    const Resources resources = given.with_device(Device::cuda(device_)).with_stream(context->stream());
    const int64_t probes = std::min(search.probes, host_model_->lists());
    const DeviceBuffer kept = keep_bits(search.kept, context, resources);
    const bool several = parts_.size() > 1;
    const DeviceInfo gpu = usable_gpu(Device::cuda(device_));
    const int64_t most = room_for(gpu, resources);
    const int64_t each = QueryBatch::bytes_for_each(queries, probes) + search.k * (several ? 24 : 8);
    const int64_t wanted = std::clamp<int64_t>(kMostProbes / std::max<int64_t>(probes, search.k), 1, queries.rows());
    const int64_t together = std::clamp<int64_t>(most / 2 / each, 1, wanted);
    std::vector<IvfSearchPlan> plans;
    int64_t plan_bytes = 0;
    for (const Part& part : parts_) {
      plans.push_back(plan_ivf_search(shape_of(*part, together, probes, search, gpu), most - together * each));
      plan_bytes = std::max(plan_bytes, plans.back().bytes);
    }
    QueryBatch batch(*model_, queries, together, probes, check_finite, context, resources);
    const DeviceBuffer found(together * search.k * (several ? 24 : 8), "the neighbours found", context, resources);
    const DeviceBuffer memory(plan_bytes, "the search of lists", context, resources);
    const HostArray<uint64_t> on_host(out.space.host_readable() ? together * search.k : 0, "the neighbours found",
                                      resources);
    for (int64_t first = 0; first < queries.rows(); first += together) {
      resources.check_cancelled();
      const int64_t count = std::min(together, queries.rows() - first);
      batch.load(first, count);
      uint64_t* lists[3];  // the best so far, those of one part, and the best of both
      for (int i = 0; i < 3; ++i) lists[i] = reinterpret_cast<uint64_t*>(found.data()) + i * count * search.k;
      if (parts_.empty()) {
        KITH_CUDA_CHECK(cudaMemsetAsync(lists[0], 0xFF, static_cast<size_t>(count * search.k) * sizeof(uint64_t),
                                        context->stream()));  // kPadding
      }
      for (size_t p = 0; p < parts_.size(); ++p) {
        IvfSearchTask task;
        task.lists = parts_[p]->lists();
        task.prepared = parts_[p]->prepared();
        task.queries = batch.queries();
        task.query_stride = batch.stride();
        task.probes = batch.probes();
        task.kept = search.kept == nullptr ? nullptr : reinterpret_cast<const uint64_t*>(kept.data());
        task.neighbors = lists[p == 0 ? 0 : 1];
        launch_ivf_search(task, shape_of(*parts_[p], count, probes, search, gpu), plans[p], memory.data(),
                          context->stream());
        if (p == 0) continue;
        launch_merge_found(lists[0], lists[1], count, search.k, lists[2], context->stream());
        std::swap(lists[0], lists[2]);
      }
      deliver(lists[0], search.k, first, count, out, on_host, *context);
    }
    context->synchronize();
  }

  void range_search(const MatrixView& queries, const IvfRange& range, bool check_finite, RangeHits& hits,
                    const Resources& given) const override {
    const DeviceGuard guard(device_);
    const auto context = std::make_shared<const DeviceContext>(device_, given.options().stream);
    const Resources resources = given.with_device(Device::cuda(device_)).with_stream(context->stream());
    const int64_t probes = std::min(range.probes, host_model_->lists());
    const DeviceBuffer kept = keep_bits(range.kept, context, resources);
    constexpr int64_t kHitBytes = 20;  // of one: as it comes, and beside those of its query
    constexpr int64_t kFirstHits = int64_t{1} << 22;
    const DeviceInfo gpu = usable_gpu(Device::cuda(device_));
    const int64_t most = room_for(gpu, resources);
    const int64_t each = QueryBatch::bytes_for_each(queries, probes) + 12;
    int64_t together = std::min(kMostProbes / probes, queries.rows());
    together = std::clamp<int64_t>(most / 4 / each, 1, std::max<int64_t>(together, 1));
    QueryBatch batch(*model_, queries, together, probes, check_finite, context, resources);
    int64_t capacity = std::clamp<int64_t>(most / 4 / kHitBytes, 1, kFirstHits);
    for (int64_t first = 0; first < queries.rows();) {
      resources.check_cancelled();
      const int64_t count = std::min(together, queries.rows() - first);
      batch.load(first, count);
      const DeviceBuffer memory(capacity * kHitBytes, "the vectors in range", context, resources);
      const DeviceBuffer counted((count + 1) * 12, "the vectors in range", context, resources);
      ListRangeTask task;
      task.queries = batch.queries();
      task.query_stride = batch.stride();
      task.query_count = count;
      task.probes = batch.probes();
      task.slots = probes;
      task.kept = range.kept == nullptr ? nullptr : reinterpret_cast<const uint64_t*>(kept.data());
      task.most = range.most;
      task.multiprocessors = gpu.multiprocessors;
      task.hits.neighbors = reinterpret_cast<uint64_t*>(memory.data());
      auto* const grouped = task.hits.neighbors + capacity;
      task.hits.queries = reinterpret_cast<uint32_t*>(grouped + capacity);
      task.hits.capacity = capacity;
      auto* const starts = reinterpret_cast<int64_t*>(counted.data());
      task.hits.total = reinterpret_cast<unsigned long long*>(starts + count);
      task.hits.counts = reinterpret_cast<uint32_t*>(starts + count + 1);
      KITH_CUDA_CHECK(cudaMemsetAsync(counted.data(), 0, static_cast<size_t>(counted.bytes()), context->stream()));
      for (const Part& part : parts_) {
        task.lists = part->lists();
        launch_list_range(task, context->stream());
      }
      int64_t total = 0;
      context->copy(&total, task.hits.total, sizeof total);
      context->synchronize();
      if (total > capacity) {  // again: with room for all, or of fewer queries
        const int64_t larger = most / 2 / kHitBytes;
        if (total <= larger) {
          capacity = total;
        } else if (together > 1) {
          together = (together + 1) / 2;
        } else {
          throw OutOfMemory("more vectors are in range of one query than the device memory limit has room for; raise "
                            "the limit, lower the radius, or search on the CPU",
                            total * kHitBytes);
        }
        continue;
      }
      take(task.hits, first, count, total, starts, grouped, hits, *context, resources);
      first += count;
    }
  }

 private:
  // Others may run beside a search, and the ranking of lists wants some too.
  static int64_t room_for(const DeviceInfo& gpu, const Resources& resources) {
    return std::min(gpu.memory_free / 2, resources.device_memory()->available()) / 4 * 3;
  }

  static IvfSearchShape shape_of(const PreparedSegmentCuda& part, int64_t queries, int64_t probes,
                                 const IvfSearch& search, const DeviceInfo& gpu) {
    IvfSearchShape shape;
    shape.format = part.lists().codec.format;
    shape.queries = queries;
    shape.slots = probes;
    shape.k = search.k;
    shape.lists = part.lists().lists;
    shape.vectors = part.lists().count;
    shape.multiprocessors = gpu.multiprocessors;
    return shape;
  }

  DeviceBuffer keep_bits(const uint64_t* kept, const std::shared_ptr<const DeviceContext>& context,
                         const Resources& resources) const {
    if (kept == nullptr) return {};
    const int64_t bytes = array_bytes<uint64_t>(KeptRows::words_for(rows_));
    DeviceBuffer bits(bytes, "the filter on the device", context, resources);
    context->copy(bits.data(), kept, bytes);
    return bits;
  }

  void deliver(uint64_t* found, int64_t k, int64_t first, int64_t count, const NeighborsView& out,
               const HostArray<uint64_t>& on_host, const DeviceContext& context) const {
    const NeighborsView part{out.ids + first * k, out.distances + first * k, count, k, out.space};
    if (!out.space.host_readable()) {
      return launch_write_neighbors(host_model_->metric, {found, nullptr, count, k}, part, context.stream());
    }
    context.copy(on_host.data(), found, array_bytes<uint64_t>(count * k));
    context.synchronize();
    const ResultExit exit(host_model_->metric);
    for (int64_t i = 0; i < count * k; ++i) {
      part.ids[i] = exit.id(on_host[i]);
      part.distances[i] = exit.distance(on_host[i]);
    }
  }

  // Hands over what was found for some queries, grouped by query on the device.
  void take(const ListHits& found, int64_t first, int64_t count, int64_t total, int64_t* starts, uint64_t* grouped,
            RangeHits& hits, const DeviceContext& context, const Resources& resources) const {
    const HostArray<uint32_t> counts(count, "the vectors in range", resources);
    const HostArray<int64_t> places(count, "the vectors in range", resources);
    context.copy(counts.data(), found.counts, counts.bytes());
    context.synchronize();
    int64_t place = 0;
    for (int64_t q = 0; q < count; ++q) {
      places[q] = place;
      place += counts[q];
    }
    context.copy(starts, places.data(), places.bytes());
    launch_group_hits(found, total, starts, grouped, context.stream());
    const HostArray<uint64_t> neighbors(total, "the vectors in range", resources);
    context.copy(neighbors.data(), grouped, neighbors.bytes());
    context.synchronize();
    for (int64_t q = 0; q < count; ++q) hits.add(0, first + q, neighbors.data() + places[q], counts[q]);
  }

  const int device_;
  const std::shared_ptr<const IvfModel> host_model_;
  const std::shared_ptr<const GpuModelCuda> model_;
  std::vector<Part> parts_;
  int64_t rows_ = 0;
};

}  // namespace

std::shared_ptr<const GpuLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                          const std::vector<SharedSegment>& segments, const Resources& resources) {
  return std::make_shared<GpuListsCuda>(device, model, segments, resources);
}

}  // namespace kith
