// A round of a search of lists on a GPU: queries brought there, their lists ranked, and one segment after the other
// searched (ivf_search_cuda.hpp, list_steps_cuda.hpp). What was found in each is brought together.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/exact_search.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/scan/prepared_segment_cuda.hpp"
#include "ivf/search/ivf_search_cuda.hpp"
#include "ivf/search/list_loop.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "ivf/search/piece_steps_cuda.hpp"
#include "kernels/rerank/few_nearest_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kith {

inline constexpr int64_t kMostProbes = int64_t{1} << 24;  // over the queries of a batch
inline constexpr int64_t kHitBytes = 20;                  // per hit: as found, and grouped by query

using GpuParts = std::vector<std::shared_ptr<const PreparedSegmentCuda>>;

// Lists that come to the device in pieces, one after the other: they are on the host. A search goes over them once for
// each of its batches. What comes is there in the order of the search's stream.
class ListPieces {
 public:
  struct Piece {
    PreparedSegmentCuda::Scanned scanned;
    int64_t filled = 0;  // nonempty lists
    // Not of a sample:
    PieceRange range = {};
    PieceProbes probes = {};    // counted before; at least one query
    uint32_t* taken = nullptr;  // on the device (TakeHereTask)
  };

  virtual ~ListPieces() = default;
  // The transfer of the first pieces starts, for a new batch.
  virtual void begin() = 0;
  // The batch's ranked lists; waits. Pieces that have none of them will be left out.
  virtual void expect(const RankedProbes& ranked, const DeviceContext& searching) = 0;
  // A sample of all lists, whose vectors come again with the pieces; none where there is no room, or it is of no use.
  virtual std::optional<Piece> sample(const DeviceContext& searching) = 0;
  // The next piece; none after the last. The one before, and the sample, have been released.
  virtual std::optional<Piece> next(const DeviceContext& searching) = 0;
  // All that reads the piece has been enqueued.
  virtual void release(const DeviceContext& searching) = 0;
  // After the last; waits.
  virtual void end(const DeviceContext& searching) = 0;
};

// Plan of a search whose lists come in pieces.
struct InPieces {
  ListPieces* pieces = nullptr;  // null when only counting memory
  int64_t filled = 0;            // nonempty lists of a piece
  int64_t longest = 0;           // longest list; 0: unknown
  // What a piece may need beyond a plan that knows no more than this: a query that meets the longest list has more
  // candidates than one of lists of one length.
  static constexpr int64_t kUnevenBytes = int64_t{2} << 20;
};

// Requirements of a round.
struct RoundShape {
  int64_t cols = 0;
  int64_t slots = 0;
  int64_t k = 0;            // 0 for a range search
  int64_t found_lists = 1;  // of neighbours: the best so far, those of one part, and the best of both
  bool stages = false;      // queries are staged in host memory
  bool brings = false;      // queries must be copied to the device or converted
  bool may_be_short = false;
  bool writes_singly = false;  // results are in device memory, at the places of queries that are not contiguous
  bool in_pieces = false;      // lists come in pieces
  int64_t ranked_lists = 0;    // of few queries, which one launch ranks (few_nearest_cuda.hpp); 0: as many queries are
  int multiprocessors = 0;
};

// The arrays of a batch on the device, in one block of memory: to take one from the device takes longer than most of
// what a search of few queries does on the host.
struct RoundLayout : WorkspaceLayout {
  RoundLayout(const RoundShape& shape, int64_t batch, int64_t scan_bytes = 0)
      : rows(take<float>(shape.brings ? batch : 0, shape.cols)),
        rank_keys(take<uint32_t>(batch, shape.ranked_lists)),
        rank_minima(take<uint32_t>(
            shape.ranked_lists > 0 ? few_nearest_minima(batch, shape.ranked_lists, shape.multiprocessors) : 0)),
        lists(take<int64_t>(shape.ranked_lists > 0 ? 0 : batch, shape.slots)),
        distances(take<float>(shape.ranked_lists > 0 ? 0 : batch, shape.slots)),
        probes(take<uint64_t>(batch, shape.slots)),
        short_queries(take<uint32_t>(shape.may_be_short ? batch + 1 : 0)),
        found(take<uint64_t>(batch, shape.k * shape.found_lists)),
        written_ids(take<int64_t>(shape.writes_singly ? batch : 0, shape.k)),
        written_distances(take<float>(shape.writes_singly ? batch : 0, shape.k)),
        bounds(take<uint64_t>(shape.in_pieces ? batch : 0)),
        numbers_here(take<uint32_t>(shape.in_pieces ? batch : 0)),
        rows_here(take<float>(shape.in_pieces ? batch : 0, shape.cols)),
        probes_here(take<uint64_t>(shape.in_pieces ? batch : 0, shape.slots)),
        bounds_here(take<uint64_t>(shape.in_pieces ? batch : 0)),
        scan(take<std::byte>(scan_bytes)) {}

  // The most that a scan may take for all to take no more than `bytes`; 0 if there is no room.
  static int64_t most_scan_bytes(const RoundShape& shape, int64_t batch, int64_t bytes) {
    const int64_t step = RoundLayout(RoundShape(), 0, 1).bytes;  // what one byte takes
    const int64_t others = RoundLayout(shape, batch).bytes;
    return others < bytes ? (bytes - others) / step * step : 0;
  }

  Slot<float> rows;  // queries
  Slot<uint32_t> rank_keys;
  Slot<uint32_t> rank_minima;
  Slot<int64_t> lists;
  Slot<float> distances;
  Slot<uint64_t> probes;
  Slot<uint32_t> short_queries;  // their number, and their places
  Slot<uint64_t> found;
  Slot<int64_t> written_ids;  // of neighbours on their way to the places of single queries
  Slot<float> written_distances;
  Slot<uint64_t> bounds;  // of each query (QueryBounds)
  Slot<uint32_t> numbers_here;  // of the queries that look at a piece, as the next (QueriesHere)
  Slot<float> rows_here;
  Slot<uint64_t> probes_here;
  Slot<uint64_t> bounds_here;
  Slot<std::byte> scan;
};

// Plans the scans of a batch, one for each part, where all of a batch may take `most` bytes of the device, `beside` of
// them for what is not in its layout: sets plan.parts, scan_bytes, and device_bytes, which is `beside` and what the
// layout takes with the scans. The best that fits, or the smallest. Pure.
void plan_scans(const RoundShape& shape, const std::vector<IvfSearchShape>& parts, int64_t beside, int64_t most,
                ListsCudaPlan& plan);

// Device memory for hits.
struct HitMemory {
  HitMemory(int64_t queries, int64_t capacity, const std::shared_ptr<const DeviceContext>& context,
            const Resources& resources)
      : neighbors(capacity, "the vectors in range", context, resources),
        grouped(capacity, "the vectors in range", context, resources),
        queries_of(capacity, "the vectors in range", context, resources),
        total(1, "the vectors in range", context, resources),
        counts(queries, "the vectors in range", context, resources),
        starts(queries, "the vectors in range", context, resources) {}

  ListRangeHits hits() const {
    return {total.data(), counts.data(), neighbors.data(), queries_of.data(), neighbors.size()};
  }

  DeviceArray<uint64_t> neighbors;
  DeviceArray<uint64_t> grouped;
  DeviceArray<uint32_t> queries_of;  // of each neighbour
  DeviceArray<unsigned long long> total;
  DeviceArray<uint32_t> counts;
  DeviceArray<int64_t> starts;
};

// State shared by the rounds of a search.
struct CudaSearchData {
  // `rows` of the index, for the filter. The resources are the caller's; `resources` work on the search's stream.
  // Where lists come in pieces `parts` is one that stands for each of them.
  CudaSearchData(int device, const GpuModelCuda& model, Metric metric, const GpuParts& parts, int64_t rows,
                 const IvfSearch& task, int64_t queries, const Resources& given,
                 const std::optional<InPieces>& in_pieces = {});

  int64_t cols() const { return parts.front()->lists().codec.format.cols; }
  // Whether one launch ranks the lists of a batch.
  bool ranks_few(const ListsRound& round, int64_t batch) const {
    return model.centres() != nullptr && suits_few_nearest(key_kind(metric), batch, cols(), round.slots);
  }
  IvfSearchShape shape_of(size_t part, int64_t queries, int64_t slots) const;
  IvfSearchShape shape_of(const PreparedSegmentCuda::Scanned& part, ScanTerm term, int64_t queries,
                          int64_t slots) const;
  // The same of a piece; of what stands for all of them, without `filled` lists, where only these are known.
  IvfSearchShape shape_of_piece(const PreparedSegmentCuda::Scanned& piece, int64_t filled, int64_t queries,
                                int64_t slots) const;
  // `few`: one launch ranks.
  RoundShape round_shape(const ListsRound& round, bool few) const;
  // The ranking of lists: an exact search of the centres.
  SearchTask ranking_task(const ListsRound& round, int64_t queries) const;

  const DeviceGuard guard;
  const std::shared_ptr<const DeviceContext> context;
  const Resources resources;
  const DeviceInfo gpu;
  const GpuModelCuda& model;
  const Metric metric;
  const GpuParts& parts;
  const IvfSearch task;
  const std::optional<InPieces> in_pieces;
  const int64_t lists;
  DeviceArray<uint64_t> kept;    // bits of the filter
  DeviceArray<uint32_t> sizes;   // list sizes, if queries may find too few vectors
  std::vector<ScanTerms> terms;  // per part
};

// The share of spare memory for one of that many segments: half for data kept with them, half for lookup terms.
Resources sharing_spare(const Resources& resources, size_t segments);

std::unique_ptr<ListsBackend> make_cuda_backend(const CudaSearchData& search, const ListsRound& round,
                                                const ListsCudaPlan& plan, const Resources& planned);

}  // namespace kith
