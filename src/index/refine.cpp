#include "index/refine.hpp"

#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/metric_unit.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "index/host_neighbors.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/host_rows.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kBlock = 64;                    // vectors that a thread compares at a time
constexpr int64_t kCandidatesTogether = 1 << 20;  // of a batch of queries
constexpr int64_t kCandidateShare = 4;            // of the free memory; the first search needs most of it

// Computes distances to rows; thread-safe.
class RowComparer {
 public:
  RowComparer(const RefineVectors& vectors, Metric metric, int64_t cols, const Resources& resources)
      : vectors_(vectors),
        kind_(key_kind(metric)),
        cols_(cols),
        scratch_(resources.threads() * floats_for(cols), "vectors to refine with", resources),
        places_(kBlock, "vectors to refine with", resources) {
    if (counts_only(resources)) return;
    std::iota(places_.begin(), places_.end(), 0u);
  }

  // Replaces rows by packed neighbours, in place.
  void compare(const MatrixView& queries, int64_t query, int64_t* rows, int64_t count, int slot) const {
    float* const own = scratch_.data() + slot * floats_for(cols_);
    float* const vectors = own + cols_;
    float* const keys = vectors + kBlock * cols_;
    widen_row(queries, query, own);
    CanonicalQuery with{own};
    canonical_inverse_norms_cpu(MatrixView(own, 1, cols_), &with.inverse_norm);
    auto* const packed = reinterpret_cast<uint64_t*>(rows);
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t some = std::min(kBlock, count - first);
      vectors_.fetch(rows + first, some, vectors);
      canonical_keys_cpu(kind_, with, MatrixView(vectors, some, cols_), places_.data(), some, keys);
      for (int64_t i = 0; i < some; ++i) {
        packed[first + i] = pack_neighbor(ordered_key(keys[i]), static_cast<uint32_t>(rows[first + i]));
      }
    }
  }

 private:
  static int64_t floats_for(int64_t cols) { return cols + kBlock * (cols + 1); }

  const RefineVectors& vectors_;
  const KeyKind kind_;
  const int64_t cols_;
  HostArray<float> scratch_;
  HostArray<uint32_t> places_;
};

void refine(const RefineVectors& vectors, Metric metric, const MatrixView& queries, const NeighborsView& candidates,
            const NeighborsView& out, const Resources& resources) {
  const RowComparer comparer(vectors, metric, queries.cols(), resources);
  const ResultExit exit(metric);
  ProgressMeter meter("refine", queries.rows(), resources);
  parallel_for(queries.rows(), meter, resources, [&](int64_t query, int slot) {
    int64_t* const rows = candidates.ids + query * candidates.k;
    const int64_t count = std::find(rows, rows + candidates.k, int64_t{-1}) - rows;
    comparer.compare(queries, query, rows, count, slot);
    auto* const packed = reinterpret_cast<uint64_t*>(rows);
    std::fill(packed + count, packed + candidates.k, kPadding);
    std::partial_sort(packed, packed + out.k, packed + candidates.k);
    write_results(exit, packed, out.k, out.ids + query * out.k, out.distances + query * out.k);
    meter.add(1);
  });
  meter.finish();
}

}  // namespace

RefineTask::RefineTask(const IndexState& state, const SearchParams& params, int64_t usual, int64_t rows, Metric unit)
    : first(state), coarse(params), metric(unit) {
  const int64_t factor = params.refine > 0 ? params.refine : usual;
  coarse.k = factor > rows / params.k ? std::max(rows, params.k) : factor * params.k;
}

void search_and_refine(const RefineTask& task, const RefineVectors& vectors, const MatrixView& queries,
                       const NeighborsView& out, const Resources& resources) {
  const HostRows rows(queries, resources);
  const HostNeighbors results(out, resources);
  if (out.queries == 0) return;
  const int64_t candidates = task.coarse.k;
  const auto each = [&] { return footprint_of<Neighbors>(resources, int64_t{1}, candidates).host; };
  if (counts_only(resources)) {
    const NeighborsView some{out.ids, out.distances, out.queries, candidates};
    const Footprint first = footprint_of_call(
        resources, [&](const Resources& used) { task.first.search(rows.view(), some, task.coarse, used); });
    const Footprint second = footprint_of<RowComparer>(resources, vectors, task.metric, queries.cols());
    return count_work(first.then(second).beside_share(kCandidateShare, {each()}), resources);
  }
  const int64_t left = resources.host_memory()->available();
  const int64_t fit = counts_memory(resources) ? left / kCandidateShare / each() : kCandidatesTogether;
  const int64_t together = std::clamp<int64_t>(std::min(kCandidatesTogether / candidates, fit), 1, out.queries);
  Neighbors found(together, candidates, resources);
  for (int64_t first = 0; first < out.queries; first += together) {
    const int64_t count = std::min(together, out.queries - first);
    NeighborsView some = found.view();
    some.queries = count;
    NeighborsView to = results.view();
    to.ids += first * out.k;
    to.distances += first * out.k;
    to.queries = count;
    const MatrixView part = rows.view().slice(first, count);
    task.first.search(part, some, task.coarse, resources);
    refine(vectors, task.metric, part, some, to, resources);
  }
  results.deliver(resources);
}

RangeNeighbors refine_range(const RefineVectors& vectors, Metric metric, float radius, const MatrixView& queries,
                            RangeNeighbors near, const Resources& resources) {
  const float most = key_of(metric, radius);
  HostArray<int64_t> counts(near.queries(), "the rows in range", resources);
  auto* const packed = reinterpret_cast<uint64_t*>(near.ids());
  {
    const RowComparer comparer(vectors, metric, queries.cols(), resources);
    ProgressMeter meter("refine", queries.rows(), resources);
    parallel_for(near.queries(), meter, resources, [&](int64_t query, int slot) {
      const int64_t first = near.offsets()[query];
      const int64_t count = near.offsets()[query + 1] - first;
      comparer.compare(queries, query, near.ids() + first, count, slot);
      uint64_t* const begin = packed + first;
      uint64_t* const end = std::partition(
          begin, begin + count, [&](uint64_t neighbor) { return key_of_ordered(ordered_of(neighbor)) <= most; });
      std::sort(begin, end);
      counts[query] = end - begin;
      meter.add(1);
    });
    meter.finish();
  }
  RangeNeighbors found(near.queries(), std::accumulate(counts.begin(), counts.end(), int64_t{0}), resources);
  const ResultExit exit(metric);
  int64_t at = 0;
  found.offsets()[0] = 0;
  for (int64_t query = 0; query < near.queries(); ++query) {
    const uint64_t* const begin = packed + near.offsets()[query];
    write_results(exit, begin, counts[query], found.ids() + at, found.distances() + at);
    at += counts[query];
    found.offsets()[query + 1] = at;
  }
  return found;
}

}  // namespace kith
