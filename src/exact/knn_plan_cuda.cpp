#include "exact/knn_plan_cuda.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "cuda/pinned_bytes.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/narrow_window.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "kernels/rerank/coarse_plan.hpp"
#include "kernels/select/select_plan.hpp"

#include <algorithm>
#include <variant>

namespace kith {
namespace {

constexpr int64_t kQueryTileDirect = 1024;
constexpr int64_t kQueryTileFewRows = 8192;
constexpr int64_t kQueryTileInPlace = 65536;            // where keys are written to the result: no tile holds them
constexpr int64_t kTileKeys = int64_t{1} << 24;         // 64 MiB of keys
constexpr int64_t kTileKeysLargeK = int64_t{1} << 28;   // where every tile goes over lists of more than 2,048
constexpr int64_t kTileKeysStaying = int64_t{1} << 25;  // of rows in range that stay on the device
constexpr int64_t kPieceBytes = int64_t{256} << 20;     // rows on the device at a time, unless k asks for more
constexpr int64_t kSelectBytes = int64_t{16} << 20;     // with less memory lists are kept instead of selecting tiles
constexpr int64_t kGoodRowTile = 1024;                  // below this selection spends its time on its lists
constexpr int64_t kGoodBatch = 64;
constexpr int64_t kSmallestRowTile = 32;
// Rows at a time in the smallest plan: with fewer, launches would take most of the time. Wide rows go below that, down
// to kFewestBytes.
constexpr int64_t kFewestRows = 128;
constexpr int64_t kFewestQueries = 16;
constexpr int64_t kFewestBytes = int64_t{8} << 10;
constexpr int64_t kFileChunkBytes = int64_t{64} << 20;
constexpr int64_t kPinnedFrom = kPinnedBytes;  // bytes of a base
constexpr int64_t kGatherBytes = int64_t{4} << 20;

constexpr int64_t kDirectQueries = 64;  // up to this many need no operands, where doubles are fast

// Products.
constexpr int64_t kProductFromRows = 4096;              // below this the direct engine is as fast
constexpr int64_t kProductFewRows = 512;                // the same with many queries,
constexpr int64_t kProductFewPairs = int64_t{1} << 21;  // that is, with at least this many keys to compute
constexpr int64_t kProductQueries = 16384;              // one or two gigabytes of minima with a full piece
constexpr int64_t kProductGoodQueries = 2048;
constexpr int64_t kProductLeastQueries = 256;
constexpr int64_t kProductRows = int64_t{1} << 20;
static_assert(kProductRows / kGroupRowsPerTile <= kKthLongestRow, "the k-th minimum is found among all of a piece's");
static_assert(kProductRows % kQueryTile == 0, "whole tiles make no piece longer");
constexpr int64_t kProductLeastRows = 16384;
constexpr int64_t kGroupsPerNeighbor = 8;
constexpr int64_t kGroupsLargestK = 32;  // up to this k whole groups are re-ranked, above it a second product filters
constexpr int64_t kNarrowLargestK = 256;  // of few columns, where canonical keys take no time
constexpr int kNarrowTiles = 2;           // of a group
constexpr int64_t kSpareGroups = 22;
constexpr int64_t kWideSpareGroups = 54;  // of more columns than this: their windows are wider
constexpr int64_t kWideFrom = 512;
constexpr int64_t kSelectLargestK = 512;  // up to this k selecting k groups is quicker than halving for the k-th
// Few queries are multiplied with rows in place from this many columns on, beside which the values are few.
constexpr int64_t kStreamFromCols = 256;
constexpr int64_t kStreamedRows = 128;  // selected for each query, and more where windows are wide
constexpr int64_t kStreamedWideRows = 512;
constexpr int kPartRows = 8;              // rows of the smallest groups
constexpr int64_t kSpareCandidates = 128;
constexpr int64_t kCandidatesPerNeighbor = 2;
constexpr int64_t kWideCandidates = 1024;   // the least of very wide rows, whose windows are wide too
constexpr double kLikelyCandidates = 1.2;   // room for candidates, as a multiple of the number expected
constexpr int64_t kRetryCandidates = 2048;  // at least; for large k
constexpr int64_t kRetryCandidatesPerNeighbor = 8;

// Range search.
constexpr int64_t kRangeQueries = 4096;  // their candidates take 32 MiB
constexpr int64_t kHitsPerQuery = 1024;  // room for hits of products, on average
constexpr int64_t kRangeCandidates = 2048;

// The length of equal pieces of at most `most` rows, as few as possible: a short last piece would have few groups.
int64_t cut_evenly(int64_t rows, int64_t most) { return divide_up(rows, divide_up(rows, most)); }

int64_t halve(int64_t value, int64_t least) { return std::max(divide_up(value, 2), least); }

// Host memory of the loop around the backend: a batch's packed neighbours, and buffers for what is read or written
// piece by piece.
int64_t host_bytes(const SearchTask& task, const KnnCudaPlan& plan) {
  const auto matrix = [&](int64_t rows, int64_t row_bytes) { return saturating_multiply(rows, row_bytes); };
  const bool packed = task.request.result_space.host_readable() && !task.within();
  int64_t bytes = packed ? matrix(plan.query_batch, saturating_multiply(task.k, 8)) : 0;
  const auto add = [&](int64_t more) { bytes = more > INT64_MAX - bytes ? INT64_MAX : bytes + more; };
  add(plan.pinned_bytes);
  add(plan.gather_bytes);
  add(task.read_bytes(plan.query_batch, plan.base_chunk));
  if (!task.request.results_in_memory) add(matrix(plan.query_batch, saturating_multiply(task.request.k, 12)));
  return bytes;
}

// Computes the sizes that follow from the rest of the plan, and its bytes.
void size_workspace(const SearchTask& task, KnnCudaPlan& plan) {
  if (!task.within()) {
    plan.device_bytes = KnnWorkspace(task, plan).bytes;
    return;
  }
  // Room for all hits of one query in a tile or among its candidates.
  plan.hits = std::max(plan.row_tile, plan.query_tile * plan.row_tile / 4);
  if (plan.product) {
    const int64_t candidates = std::get<RangeProduct>(plan.product->way).candidates.capacity;
    plan.hits = std::max({plan.hits, plan.product->queries * kHitsPerQuery, candidates});
  }
  plan.device_bytes = RangeWorkspace(task, plan).bytes;
}

// How many of `count` items of `bytes` bytes each the smallest plan handles at a time.
int64_t fewest(int64_t count, int64_t most, int64_t bytes) {
  return std::min(std::max<int64_t>(count, 1),
                  std::clamp<int64_t>(kFewestBytes / std::max<int64_t>(bytes, 1), 1, most));
}
int64_t fewest_rows(const SearchTask& task) {
  return fewest(task.rows, kFewestRows, task.shape.base_info().row_bytes());
}
int64_t fewest_queries(const SearchTask& task) {
  return fewest(task.shape.queries, kFewestQueries,
                task.shape.query_info().row_bytes() + array_bytes<uint64_t>(task.k));
}

void shrink_batch(const SearchTask& task, KnnCudaPlan& plan) {
  plan.query_batch = halve(plan.query_batch, fewest_queries(task));
  plan.query_tile = std::min(plan.query_tile, plan.query_batch);
  if (plan.product) plan.product->queries = std::min(plan.product->queries, plan.query_batch);
}

// Whether rows in range stay on the device: fewer tiles mean less to join.
bool leaves_range(const SearchTask& task) { return task.within() && !task.request.result_space.host_readable(); }

// Every canonical key.
KnnCudaPlan plan_direct(const SearchTask& task, const DeviceInfo& device, const PlanBudget& budget) {
  const int64_t rows = std::max<int64_t>(task.rows, 1);
  const int64_t row_bytes = std::max<int64_t>(task.shape.cols * size_of(task.shape.base_dtype), 1);

  KnnCudaPlan plan;
  plan.device = device.device;
  plan.multiprocessors = device.multiprocessors;
  plan.query_batch = std::max<int64_t>(task.shape.queries, 1);
  const int64_t most_queries = std::clamp(kTileKeys / rows, kQueryTileDirect, kQueryTileFewRows);
  plan.query_tile = std::min(plan.query_batch, task.keys_in_place() ? kQueryTileInPlace : most_queries);
  // A tile as long as the lists keeps the passes over the lists no dearer than those over the keys.
  const int64_t lists = task.within() ? 1 : std::min(task.k, kTileKeys);
  const int64_t tile_keys = leaves_range(task)         ? kTileKeysStaying
                            : task.k > kFilterLargestK ? kTileKeysLargeK
                                                       : kTileKeys;
  const int64_t wanted = std::max({tile_keys / plan.query_tile, lists, kSmallestRowTile});
  const int64_t affordable = rows_stay(task) ? rows : std::max({kPieceBytes / row_bytes, lists, kSmallestRowTile});
  if (task.keys_in_place()) {
    plan.row_tile = std::min(affordable, rows);
  } else {
    plan.row_tile = std::min({wanted, affordable, rows});
    plan.query_tile = std::clamp<int64_t>(tile_keys / plan.row_tile, 1, plan.query_tile);
  }

  const int64_t smallest_row_tile = std::min(rows, std::max(fewest_rows(task), kSmallestRowTile));
  for (;;) {
    size_workspace(task, plan);
    if (plan.device_bytes <= budget.device) break;
    if (plan.few) {
      plan.few = false;
    } else if (plan.selects_tiles && budget.device < kSelectBytes) {
      plan.selects_tiles = false;
    } else if (plan.row_tile > std::max(kGoodRowTile, smallest_row_tile)) {
      plan.row_tile = halve(plan.row_tile, smallest_row_tile);
    } else if (plan.query_batch > kGoodBatch) {
      shrink_batch(task, plan);
    } else if (plan.row_tile > smallest_row_tile) {
      plan.row_tile = halve(plan.row_tile, smallest_row_tile);
    } else if (plan.query_batch > fewest_queries(task)) {
      shrink_batch(task, plan);
    } else if (plan.selects_tiles) {
      plan.selects_tiles = false;
    } else {
      break;
    }
  }
  return plan;
}

// Whether the k-th minimum of so many groups is a threshold that few enough candidates pass.
bool enough_groups(int64_t k, int64_t groups, int64_t room) {
  const double likely = kLikelyCandidates * rows_below_kth(k, groups);
  return likely <= static_cast<double>(std::min(kCandidatesPerNeighbor * k, room));
}

// Whether smaller groups, which take longer to write and to scan, are needed because a piece of so many rows has too
// few groups for k.
bool needs_parts(int64_t k, int64_t rows, int64_t room) {
  const int64_t parts = part_count(rows, kPartRows);
  return k > kSelectLargestK && parts <= kKthLongestRow && !enough_groups(k, group_count(rows, 1), room) &&
         enough_groups(k, parts, room);
}

CandidateRoom retry_candidates(const SearchTask& task, int64_t most_shared) {
  const int64_t capacity = std::max(kRetryCandidates, kRetryCandidatesPerNeighbor * task.k);
  return {capacity, std::min(capacity, rerank_room(task.shape.cols, most_shared))};
}

// Room for candidates of a second product over at most `groups` groups.
CandidateRoom second_candidates(const SearchTask& task, int64_t most_shared, int64_t groups) {
  CandidateRoom candidates;
  candidates.capacity = kCandidatesPerNeighbor * task.k + kSpareCandidates;
  if (task.shape.cols > kWindowMostCols) candidates.capacity = std::max(candidates.capacity, kWideCandidates);
  candidates.room = std::min(candidates.capacity, rerank_room(task.shape.cols, most_shared));
  // If enough, room such that two blocks share a multiprocessor: one reads rows while the other sorts.
  const int64_t of_two = rerank_room(task.shape.cols, half_shared_bytes(most_shared));
  if (candidates.room > of_two && enough_groups(task.k, groups, of_two)) candidates.room = of_two;
  return candidates;
}

// Whether rows have too few columns for halves to distinguish them, and there are enough groups. Only products support
// filters.
bool suits_narrow(const SearchTask& task, const CudaChoice& choice, int64_t rows) {
  return !task.within() && choice.engine == CudaEngine::automatic && choice.product == ProductEngine::automatic &&
         choice.coarse == CoarsePath::automatic && !choice.second_product && task.filter != FilterPath::mask &&
         task.k <= kNarrowLargestK && is_narrow(key_kind(task.shape.metric), task.shape.cols) &&
         operand_type(key_kind(task.shape.metric), task.shape.query_dtype, task.shape.base_dtype, task.shape.cols) ==
             OperandType::half &&
         group_count(rows, kNarrowTiles) >= kGroupsPerNeighbor * task.k;
}

// Whether there are few rows and many queries, and k is well below the number of rows.
bool is_coarse(const SearchTask& task, const CudaChoice& choice, int64_t room) {
  if (task.within() || choice.coarse == CoarsePath::never || task.shape.cols > kWindowMostCols) return false;
  if (choice.coarse != CoarsePath::automatic) return true;
  if (suits_narrow(task, choice, task.rows)) return false;
  return choice.engine == CudaEngine::automatic && !choice.second_product && task.rows <= kCoarseMostRows &&
         task.shape.queries >= kCoarseLeastQueries && suits_coarse(task.k, task.rows) &&
         coarse_room(task.k, task.rows, room) >= kLikelyCandidates * plan_coarse(task.k, task.rows).likely;
}

CoarseProduct plan_coarse_product(const SearchTask& task, const CudaChoice& choice, int64_t most_shared,
                                  const ProductPlan& product) {
  CoarseProduct way;
  way.rows_per_minimum = plan_coarse(task.k, product.rows).rows_per_minimum;
  way.room = coarse_room(task.k, product.rows, rerank_room(task.shape.cols, most_shared));
  const CoarseRerank shape{product.queries,        product.rows,          task.shape.cols, task.k,
                           task.shape.query_dtype, task.shape.base_dtype, way.room,        most_shared,
                           product.multiprocessors};
  const bool tiled = choice.coarse == CoarsePath::always_by_tiles ? can_use_row_tiles(shape) : suits_row_tiles(shape);
  if (tiled) way.row_tile_bytes = most_shared;
  return way;
}

SelectedGroups plan_selected(const ProductPlan& product, int64_t groups, int64_t wanted) {
  const int64_t count = std::min(groups, wanted);
  // Batches of few queries are cut into slices, no more than about two for each multiprocessor, and merged.
  const int64_t sliced = array_bytes<uint64_t>(int64_t{4} * product.multiprocessors * count);
  const int64_t full = plan_select({product.queries, groups, count}, product.multiprocessors).workspace_bytes;
  return {count, std::max(sliced, full)};
}

// Whether there are few queries and wide rows without operands.
bool suits_streams(const SearchTask& task, const CudaChoice& choice, const ProductPlan& product) {
  return choice.engine == CudaEngine::automatic && choice.product == ProductEngine::automatic &&
         choice.coarse == CoarsePath::automatic && !choice.second_product && product.operands == OperandType::half &&
         !product.operands_ready && task.shape.queries <= kStreamMostQueries && task.k <= kGroupsLargestK &&
         task.shape.cols >= kStreamFromCols && can_stream(task.shape.base_dtype);
}

void choose_way(const SearchTask& task, const CudaChoice& choice, int64_t most_shared, ProductPlan& product) {
  if (task.within()) {
    product.way = RangeProduct{{kRangeCandidates, kRangeCandidates}};
    return;
  }
  const int64_t k = task.k;
  const int64_t room = rerank_room(task.shape.cols, most_shared);
  product.retry = retry_candidates(task, most_shared);
  if (is_coarse(task, choice, room)) {
    product.way = plan_coarse_product(task, choice, most_shared, product);
    return;
  }
  if (suits_narrow(task, choice, product.rows)) {
    const int64_t wanted = k + std::max(kSpareGroups, k / 2);
    product.way = GroupedProduct{group_rows(kNarrowTiles),
                                 plan_selected(product, group_count(product.rows, kNarrowTiles), wanted), true};
    return;
  }
  if (suits_streams(task, choice, product)) {
    const int64_t rows = task.shape.cols > kWindowMostCols ? kWideCandidates
                         : task.shape.cols > kWideFrom     ? kStreamedWideRows
                                                           : kStreamedRows;
    product.way = StreamedProduct{plan_selected(product, product.rows, rows)};
    return;
  }
  // Few groups make a loose threshold, so smaller ones are used. They also leave fewer wide rows to re-rank.
  const bool whole_groups = k <= kGroupsLargestK && !choice.second_product && task.shape.cols <= kWindowMostCols;
  const bool wide = whole_groups && product.operands == OperandType::half;
  const bool large = !wide && group_count(product.rows, 2) >= kGroupsPerNeighbor * k;
  const bool parts = needs_parts(k, product.rows, room);
  const int rows_per_minimum = parts ? kPartRows : group_rows(large ? 2 : 1);
  const int64_t groups = part_count(product.rows, rows_per_minimum);
  if (whole_groups) {
    const int64_t spare = wide && task.shape.cols > kWideFrom ? kWideSpareGroups : kSpareGroups;
    product.way = GroupedProduct{rows_per_minimum, plan_selected(product, groups, k + std::max(spare, k / 2))};
    return;
  }
  SecondProduct way;
  way.rows_per_minimum = rows_per_minimum;
  if (k <= kSelectLargestK) way.selected = plan_selected(product, groups, k);
  way.candidates = second_candidates(task, most_shared, parts ? groups : group_count(product.rows, 1));
  product.way = way;
}

// Whether there are few queries of rows on the device without operands: computing every key reads the rows once, while
// making operands reads them once more and writes.
bool needs_no_operands(const SearchTask& task, const DeviceInfo& device) {
  const bool operands_ready = task.prepared && task.filter != FilterPath::list;
  return (!task.within() || leaves_range(task)) && rows_stay(task) && !operands_ready &&
         task.shape.queries <= kDirectQueries && task.k <= kFilterLargestK &&
         has_fast_doubles(device.compute_capability);
}

// Plans products; false if they do not suit the task or do not fit.
bool plan_product(const SearchTask& task, const DeviceInfo& device, const PlanBudget& budget, const CudaChoice& choice,
                  KnnCudaPlan& plan) {
  if (choice.engine == CudaEngine::direct || device.compute_capability < 80 || !task.wants_products()) return false;
  if (!has_operands(task.shape.metric, task.shape.cols)) return false;
  const int64_t rows = std::max<int64_t>(task.rows, 1);
  const int64_t piece = divide_up(cut_evenly(rows, kProductRows), kQueryTile) * kQueryTile;
  const int64_t most_shared = most_shared_bytes(device.compute_capability);
  const int64_t room = rerank_room(task.shape.cols, most_shared);
  if (!task.within() && task.k > room) return false;
  const bool forced = choice.engine == CudaEngine::product;
  const bool chosen =
      forced || choice.second_product || (choice.coarse != CoarsePath::automatic && choice.coarse != CoarsePath::never);
  if (!chosen && needs_no_operands(task, device)) return false;
  const int64_t piece_rows = std::min(rows, piece);
  const bool few_groups = !task.within() && !is_coarse(task, choice, room) &&
                          !enough_groups(task.k, group_count(piece_rows, 1), room) &&
                          !(task.shape.queries > kDirectQueries && needs_parts(task.k, piece_rows, room));
  const bool many_pairs =
      task.rows >= kProductFewRows && saturating_multiply(task.shape.queries, task.rows) >= kProductFewPairs;
  const bool enough = task.rows >= kProductFromRows || many_pairs;
  if (!forced && (!enough || few_groups)) return false;

  const KeyKind kind = key_kind(task.shape.metric);
  plan = KnnCudaPlan();
  plan.device = device.device;
  plan.multiprocessors = device.multiprocessors;
  plan.query_batch = std::max<int64_t>(task.shape.queries, 1);
  ProductPlan& product = plan.product.emplace();
  product.engine = product_engine(device.compute_capability, choice.product);
  product.operands = operand_type(kind, task.shape.query_dtype, task.shape.base_dtype, task.shape.cols);
  product.operands_ready =
      task.prepared && task.filter != FilterPath::list &&
      product.operands == operand_type(kind, task.shape.base_dtype, task.shape.base_dtype, task.shape.cols);
  product.multiprocessors = device.multiprocessors;
  // The lists of very many queries would leave products no room.
  const int64_t list_bytes = task.within() ? 0 : saturating_multiply(task.k, 8);
  while (plan.query_batch > kProductQueries && saturating_multiply(plan.query_batch, list_bytes) > budget.device / 2) {
    plan.query_batch = halve(plan.query_batch, kProductQueries);
  }
  product.queries = std::min(plan.query_batch, task.within() ? kRangeQueries : kProductQueries);
  product.rows = piece_rows;
  plan.query_tile = std::min(plan.query_batch, kQueryTileDirect);
  plan.row_tile = std::min(rows, (leaves_range(task) ? kTileKeysStaying : kTileKeys) / plan.query_tile);
  const int64_t k = task.within() ? 1 : task.k;
  const int64_t least_rows = std::min(rows, std::max(kProductLeastRows, 4 * kGroupRowsPerTile * k));
  const int64_t least_queries = std::min<int64_t>(plan.query_batch, kProductLeastQueries);
  for (;;) {
    plan.query_tile = std::min(plan.query_tile, product.queries);  // failed queries are tried again as a batch
    choose_way(task, choice, most_shared, product);
    size_workspace(task, plan);
    if (plan.device_bytes <= budget.device) return true;
    if (plan.few) {
      plan.few = false;
    } else if (plan.selects_tiles && budget.device < kSelectBytes) {
      plan.selects_tiles = false;
    } else if (product.queries > std::min(plan.query_batch, kProductGoodQueries)) {
      product.queries = halve(product.queries, least_queries);
    } else if (product.rows > least_rows + kQueryTile) {
      product.rows = std::min(rows, divide_up(halve(product.rows, least_rows), kQueryTile) * kQueryTile);
    } else if (product.queries > least_queries) {
      product.queries = halve(product.queries, least_queries);
    } else if (plan.query_tile > kGoodBatch || plan.row_tile > kGoodRowTile) {
      plan.query_tile = halve(plan.query_tile, 1);
      plan.row_tile = halve(plan.row_tile, 1);
    } else if (plan.query_batch > least_queries) {
      plan.query_batch = halve(plan.query_batch, least_queries);
      product.queries = std::min(product.queries, plan.query_batch);
      plan.query_tile = std::min(plan.query_tile, plan.query_batch);
    } else if (plan.selects_tiles) {
      plan.selects_tiles = false;
    } else {
      return false;
    }
  }
}

}  // namespace

bool has_operands(Metric metric, int64_t cols) {
  switch (metric) {
    case Metric::l2:
    case Metric::sqeuclidean:
    case Metric::inner_product:
    case Metric::cosine: return cols <= kWindowMostHalfCols;
    default: return false;
  }
}

KnnCudaPlan plan_knn_cuda(const SearchTask& task, const DeviceInfo& device, const PlanBudget& budget,
                          const CudaChoice& choice) {
  KnnCudaPlan plan;
  if (!plan_product(task, device, budget, choice, plan)) plan = plan_direct(task, device, budget);
  const int64_t rows = std::max<int64_t>(task.rows, 1);
  const int64_t row_bytes = std::max<int64_t>(task.shape.cols * size_of(task.shape.base_dtype), 1);

  // A base in memory is passed whole and divided while it is copied to the device; a file is read in chunks. With
  // products a chunk is a piece, which needs enough groups for a large k.
  const bool in_groups = plan.product && !task.within();
  const int64_t least_chunk = in_groups ? std::min(2 * kGroupRowsPerTile * task.k, kProductRows) : 1;
  const int64_t most_chunk = std::max(kFileChunkBytes / row_bytes, least_chunk);
  plan.base_chunk = task.base_in_memory() ? rows : cut_evenly(rows, most_chunk);
  const bool comes_from_host = !task.prepared && task.shape.base_space.kind == MemoryKind::host;
  const int64_t all_bytes = saturating_multiply(rows, row_bytes);
  plan.pinned_bytes = comes_from_host && all_bytes >= kPinnedFrom ? kPinnedBytes : 0;
  const bool gathers = comes_from_host && task.filter == FilterPath::list;
  int64_t most_gathered = kGatherBytes;
  for (;;) {
    plan.gather_bytes = gathers && plan.pinned_bytes == 0 ? std::min(all_bytes, most_gathered) : 0;
    plan.host_bytes = host_bytes(task, plan);
    if (plan.host_bytes <= budget.host) break;
    if (plan.pinned_bytes > 0) {
      plan.pinned_bytes = 0;
    } else if (plan.gather_bytes > 0) {
      most_gathered /= 2;  // in the end rows go one by one
    } else if (!task.base_in_memory() && plan.base_chunk > std::min(rows, kGoodRowTile)) {
      plan.base_chunk = divide_up(plan.base_chunk, 2);
    } else if (plan.query_batch > kGoodBatch) {
      shrink_batch(task, plan);
    } else if (!task.base_in_memory() && plan.base_chunk > fewest_rows(task)) {
      plan.base_chunk = halve(plan.base_chunk, fewest_rows(task));
    } else if (plan.query_batch > fewest_queries(task)) {
      shrink_batch(task, plan);
    } else {
      break;
    }
  }
  size_workspace(task, plan);
  plan.apart = choice.apart;
  return plan;
}

}  // namespace kith
