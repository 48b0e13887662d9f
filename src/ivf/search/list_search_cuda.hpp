// The k nearest of each query in the segments of an index on a GPU, with the lists that search_ivf() would look at: one
// segment after the other (ivf_search_cuda.hpp), and what was found in each brought together.
//
// Where lists may hold too few vectors, queries that are short are searched again with four times as many ranked lists,
// of which each takes the least number that hold enough; until none is short.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_info.hpp"
#include "ivf/scan/prepared_segment_cuda.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/search/ivf_search_cuda.hpp"
#include "ivf/search/query_batch_cuda.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

using GpuParts = std::vector<std::shared_ptr<const PreparedSegmentCuda>>;

// What a search may take of a device: others may run beside it, and the ranking of lists wants some too.
int64_t list_search_room(const DeviceInfo& gpu, const Resources& resources);

// The bits of a filter over so many rows on the device; none where there is no filter.
DeviceArray<uint64_t> bits_on_device(const uint64_t* kept, int64_t rows,
                                     const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

class ListSearch {
 public:
  // `kept`: the filter's bits on the device, or null. `least`: vectors that a query's lists must hold; 0 where all do.
  // The resources work on the context's stream.
  ListSearch(Metric metric, const GpuModelCuda& model, const GpuParts& parts, const IvfSearch& search,
             const uint64_t* kept, int64_t least, std::shared_ptr<const DeviceContext> context,
             const Resources& resources);

  void run(const MatrixView& queries, bool check_finite, const NeighborsView& out);

 private:
  // Results of queries numbers[0], numbers[1], ..., or of all in their order. Returns those that are short.
  std::vector<uint32_t> run_round(const MatrixView& queries, const std::vector<uint32_t>* numbers, int64_t slots,
                                  bool check_finite, const NeighborsView& out);
  // The queries of a batch that are short, ascending.
  std::vector<uint32_t> limit_probes(const QueryBatch& batch, int64_t count, int64_t slots) const;
  // What lookups find beside the lists of each part; none where the plan will not look codes up.
  void take_terms(int64_t queries, int64_t slots);
  uint64_t* search_parts(const QueryBatch& batch, int64_t count, int64_t slots, uint64_t* found,
                         std::byte* memory) const;
  void deliver(const uint64_t* found, int64_t first, int64_t count, const NeighborsView& out) const;
  void deliver_listed(const uint64_t* found, int64_t first, int64_t count, const std::vector<uint32_t>& numbers,
                      const std::vector<uint32_t>& left_out, const NeighborsView& out) const;
  IvfSearchShape shape_of(size_t part, int64_t queries, int64_t slots) const;

  const Metric metric_;
  const GpuModelCuda& model_;
  const GpuParts& parts_;
  const IvfSearch& search_;
  const uint64_t* const kept_;
  const int64_t least_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources& resources_;
  const DeviceInfo gpu_;
  const int64_t lists_;
  DeviceArray<uint32_t> sizes_;       // of the lists, where queries may be short
  std::vector<IvfSearchPlan> plans_;  // of the round
  std::vector<ScanTerms> terms_;      // likewise
};

}  // namespace kith
