#include "exact/knn_loop.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/result_exit.hpp"
#include "exact/knn_backend.hpp"
#include "kernels/select/other_neighbors.hpp"
#include "rows/knn_checks.hpp"

#include <algorithm>
#include <memory>
#include <variant>

namespace kith {
namespace {

// The packed neighbours of queries first_query, first_query + 1, ...
void write_neighbors(const SearchTask& task, const uint64_t* neighbors, const uint32_t* numbers, int64_t first_query,
                     const NeighborsView& out) {
  const ResultExit result(task.shape.metric, numbers);
  for (int64_t q = 0; q < out.queries; ++q) {
    const uint32_t itself = task.wish.without_self ? static_cast<uint32_t>(first_query + q) : OtherNeighbors::kNoOne;
    OtherNeighbors others{neighbors + q * task.k, task.k, itself};
    for (int64_t i = 0; i < out.k; ++i) {
      const uint64_t neighbor = others.next();
      out.ids[q * out.k + i] = result.id(neighbor);
      out.distances[q * out.k + i] = result.distance(neighbor);
    }
  }
}

}  // namespace

void KnnBackend::finish_on_device(const NeighborsView&) {
  throw InvalidState("this backend has no device memory to write to");
}

void search_knn(const SettledSearch& search, KnnOutput& output) {
  const DefaultFloatMode mode;
  const SearchTask& task = search.task();
  const KnnPlan& plan = search.plan();
  const Resources& resources = search.resources();
  const int64_t batch = search.batches().query_batch;
  const std::unique_ptr<KnnBackend> backend = dispatch(
      search.batches().device, [&] { return make_knn_cpu(task, std::get<KnnCpuPlan>(plan), search.kept(), resources); },
      [&](int) {
        return make_knn_cuda(task, std::get<KnnCudaPlan>(plan), search.kept(), search.metric(), resources);
      });
  const int64_t packed = task.wish.result_space.host_readable() ? batch * task.k : 0;
  const HostArray<uint64_t> neighbors(packed, "the packed neighbours", resources);
  search.open(batch);
  output.open(batch, resources);
  ProgressMeter meter("search", task.shape.queries * task.rows, resources);
  for (int64_t first = 0; first < task.shape.queries; first += batch) {
    const int64_t count = std::min(batch, task.shape.queries - first);
    search.scan(*backend, first, count, meter);
    const NeighborsView out = output.destination(first, count);
    if (out.space.host_readable()) {
      backend->finish(neighbors.data());
      write_neighbors(task, neighbors.data(), search.numbers(), first, out);
    } else {
      backend->finish_on_device(out);
    }
    output.done(first, out);
  }
  meter.finish();
}

void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, KnnOutput& output,
                const Resources& resources) {
  const SettledSearch search(shape, wish, input, resources);
  if (search.anything_to_find()) return search_knn(search, output);
  output.open(1, resources);
  if (!wish.result_space.host_readable() && shape.queries > 0) {
    return write_nothing_cuda(shape.metric, output.destination(0, shape.queries), resources);
  }
  for (int64_t query = 0; query < shape.queries; ++query) {
    const NeighborsView out = output.destination(query, 1);
    write_nothing(shape.metric, out);
    output.done(query, out);
  }
}

}  // namespace kith
