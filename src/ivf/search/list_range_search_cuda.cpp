#include "ivf/search/list_range_search_cuda.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "ivf/search/list_range_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostRangeProbes = int64_t{1} << 24;  // of the queries searched together
constexpr int64_t kHitBytes = 20;                       // of one: as it comes, and beside those of its query
constexpr int64_t kFirstHits = int64_t{1} << 22;        // that there is room for at first

// Where hits are put on the device.
struct HitMemory {
  HitMemory(int64_t queries, int64_t capacity, const std::shared_ptr<const DeviceContext>& context,
            const Resources& resources)
      : neighbors(capacity, "the vectors in range", context, resources),
        grouped(capacity, "the vectors in range", context, resources),
        queries_of(capacity, "the vectors in range", context, resources),
        total(1, "the vectors in range", context, resources),
        counts(queries, "the vectors in range", context, resources),
        starts(queries, "the vectors in range", context, resources),
        hits{total.data(), counts.data(), neighbors.data(), queries_of.data(), capacity} {
    context->fill(total.data(), 0, 1);
    context->fill(counts.data(), 0, queries);
  }

  DeviceArray<uint64_t> neighbors;
  DeviceArray<uint64_t> grouped;
  DeviceArray<uint32_t> queries_of;  // of each neighbour
  DeviceArray<unsigned long long> total;
  DeviceArray<uint32_t> counts;
  DeviceArray<int64_t> starts;
  ListRangeHits hits;
};

void hand_over(const HitMemory& memory, int64_t first, int64_t count, int64_t total, RangeHits& hits,
               const DeviceContext& context, const Resources& resources) {
  const HostArray<uint32_t> counts(count, "the vectors in range", resources);
  const HostArray<int64_t> places(count, "the vectors in range", resources);
  context.copy_values(counts.data(), memory.counts.data(), count);
  context.synchronize();
  int64_t place = 0;
  for (int64_t q = 0; q < count; ++q) {
    places[q] = place;
    place += counts[q];
  }
  context.copy_values(memory.starts.data(), places.data(), count);
  launch_group_hits(memory.hits, total, memory.starts.data(), memory.grouped.data(), context.stream());
  const HostArray<uint64_t> neighbors(total, "the vectors in range", resources);
  context.copy_values(neighbors.data(), memory.grouped.data(), total);
  context.synchronize();
  for (int64_t q = 0; q < count; ++q) hits.add(0, first + q, neighbors.data() + places[q], counts[q]);
}

}  // namespace

void search_lists_in_range(const GpuModelCuda& model, const GpuParts& parts, const MatrixView& queries,
                           const IvfRange& range, const uint64_t* kept, bool check_finite, RangeHits& hits,
                           const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  if (queries.rows() == 0 || parts.empty()) return;
  const DeviceInfo gpu = usable_gpu(Device::cuda(context->device()));
  const int64_t most = list_search_room(gpu, resources);
  const int64_t probes = std::min(range.probes, parts.front()->lists().lists);
  const int64_t each = QueryBatch::bytes_for_each(queries, probes) + 12;
  const int64_t wanted = std::clamp<int64_t>(kMostRangeProbes / probes, 1, queries.rows());
  int64_t together = std::clamp<int64_t>(most / 4 / each, 1, wanted);
  int64_t capacity = std::clamp<int64_t>(most / 4 / kHitBytes, 1, kFirstHits);
  QueryBatch batch(model, queries, together, probes, check_finite, context, resources);
  for (int64_t first = 0; first < queries.rows();) {
    resources.check_cancelled();
    const int64_t count = std::min(together, queries.rows() - first);
    batch.load(first, count);
    const HitMemory memory(count, capacity, context, resources);
    ListRangeTask task;
    task.queries = batch.queries();
    task.query_stride = batch.stride();
    task.query_count = count;
    task.probes = batch.probes();
    task.slots = probes;
    task.kept = kept;
    task.most = range.most;
    task.multiprocessors = gpu.multiprocessors;
    task.hits = memory.hits;
    for (const auto& part : parts) {
      task.lists = part->lists();
      launch_list_range(task, context->stream());
    }
    unsigned long long counted = 0;
    context->copy_values(&counted, memory.hits.total, 1);
    context->synchronize();
    const auto total = static_cast<int64_t>(counted);
    if (total <= capacity) {
      hand_over(memory, first, count, total, hits, *context, resources);
      first += count;
      continue;
    }
    if (total <= most / 2 / kHitBytes) {
      capacity = total;
    } else if (together > 1) {
      together = (together + 1) / 2;
    } else {
      throw OutOfMemory(
          "more vectors are in range of one query than the device memory limit has room for; raise the limit, lower the "
          "radius, or search on the CPU",
          total * kHitBytes);
    }
  }
}

}  // namespace kith
