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

// To `out`, which holds the results of all queries, or to the sink where there is one.
void search_batches(const SettledSearch& search, const NeighborsView& out, const NeighborsSink* sink) {
  const DefaultFloatMode mode;
  const SearchTask& task = search.task();
  const Resources& resources = search.resources();
  const int64_t batch = search.plan().query_batch;
  const std::unique_ptr<KnnBackend> backend = dispatch(
      search.plan().device,
      [&] { return make_knn_cpu(task, search.plan_as<KnnCpuPlan>(), search.kept(), resources); },
      [&](int) {
        return make_knn_cuda(task, search.plan_as<KnnCudaPlan>(), search.kept(), search.metric(), resources);
      });
  const int64_t packed = task.wish.result_space.host_readable() ? batch * task.k : 0;
  const HostArray<uint64_t> neighbors(packed, "the packed neighbours", resources);
  search.open(batch);
  Neighbors part = sink == nullptr ? Neighbors() : Neighbors(batch, task.wish.k, resources);
  ProgressMeter meter("search", task.shape.queries * task.rows, resources);
  for (int64_t first = 0; first < task.shape.queries; first += batch) {
    const int64_t count = std::min(batch, task.shape.queries - first);
    search.scan(*backend, first, count, meter);
    NeighborsView to = sink == nullptr ? out : part.view();
    to.queries = count;
    if (sink == nullptr) {
      to.ids += first * out.k;
      to.distances += first * out.k;
    }
    if (to.space.host_readable()) {
      backend->finish(neighbors.data());
      write_neighbors(task, neighbors.data(), search.numbers(), first, to);
    } else {
      backend->finish_on_device(to);
    }
    if (sink != nullptr) (*sink)(first, to);
  }
  meter.finish();
}

}  // namespace

void KnnBackend::finish_on_device(const NeighborsView&) {
  throw InvalidState("this backend has no device memory to write to");
}

void search_knn(const SettledSearch& search, const NeighborsView& out) { search_batches(search, out, nullptr); }

void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const NeighborsView& out,
                const Resources& resources) {
  const SettledSearch search(shape, wish, input, resources);
  if (search.anything_to_find()) return search_knn(search, out);
  if (out.space.host_readable()) return write_nothing(shape.metric, out);
  if (shape.queries > 0) write_nothing_cuda(shape.metric, out, resources);
}

void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const NeighborsSink& sink,
                const Resources& resources) {
  const SettledSearch search(shape, wish, input, resources);
  if (search.anything_to_find()) return search_batches(search, {}, &sink);
  Neighbors nothing(1, wish.k, resources);
  write_nothing(shape.metric, nothing.view());
  for (int64_t query = 0; query < shape.queries; ++query) sink(query, nothing.view());
}

}  // namespace kith
