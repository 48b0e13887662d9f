// How products on the matrix units will run: which operands, which kernel, in which order. Pure functions, so that any
// machine can plan, and test plans, for any GPU.
#pragma once

#include <kith/dtype.hpp>

#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_layout.hpp"

#include <cstdint>

namespace kith {

// Halves with f32 sums, or signed bytes with s32 sums.
enum class OperandType : uint8_t { half, bytes };

// Whether bytes will do, for both sides: sums of products, norms and terms must fit 31 bits.
constexpr OperandType operand_type(KeyKind kind, DType queries, DType base, int64_t cols) {
  const bool both_bytes = queries == base && (base == DType::u8 || base == DType::i8);
  const bool fits = kind == KeyKind::inner_product ? cols <= 400 : has_differences(kind) && cols <= 8000;
  return both_bytes && fits ? OperandType::bytes : OperandType::half;
}
constexpr int64_t operand_value_bytes(OperandType type) { return type == OperandType::bytes ? 1 : 2; }

enum class ProductEngine : uint8_t { automatic, mma, wgmma };

// The engine that a device of this compute capability runs; Unsupported where it cannot run the one asked for.
ProductEngine product_engine(int compute_capability, ProductEngine asked = ProductEngine::automatic);

// Shared memory that one block may have on a device of this compute capability, in bytes; what every device from 8.0 on
// has, where it is not known.
int64_t most_shared_bytes(int compute_capability);
// What two blocks may each have, where both are to be on one multiprocessor.
int64_t half_shared_bytes(int64_t most_shared_bytes);

// Re-ranking keeps a query, widened and padded, and its rows within the limit in shared memory.
constexpr int64_t rerank_bytes(int64_t room, int64_t cols) {
  const int64_t padded = divide_up(cols, kCanonicalLanes) * kCanonicalLanes;
  return (room + padded) * int64_t{8};
}
// The most rows it has room for: an even number.
int64_t rerank_room(int64_t cols, int64_t shared_bytes);

// Expected number of rows at or below the k-th smallest minimum of `groups` groups, k or more, if near rows fall into
// groups at random. Larger than k, because rows share groups.
double rows_below_kth(int64_t k, int64_t groups);

// Few queries can be multiplied with rows as they are stored (stream_product_cuda.hpp): rows of these dtypes.
inline constexpr int64_t kStreamMostQueries = kOperandTile;
constexpr bool can_stream(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// What a block multiplies before it takes new queries: a tile of queries with a run of tiles of rows.
struct ProductItem {
  int query_tile;  // of kQueryTile queries
  int first_tile;  // of kOperandTile rows; even
  int end_tile;    // one past the last; even, or the odd end of the base in schedule_nearest; after the first

  KITH_HOST_DEVICE bool empty() const { return first_tile == end_tile; }  // in schedule_runs alone
};

// Which items are multiplied: all queries with all rows, cut into equal items or into runs, or those of a list. Equal
// items are numbered with the queries of a panel running fastest, then the rows, then the panels: blocks that run at a
// time share rows in the L2 cache, and the queries of a panel, which wide rows bring again for every tile, stay there.
// A list is best ordered so too. A run is what one block does: neighbouring pairs of tiles, of one tile of queries or
// of two, so that all blocks have the same number of them, or one less. Its items are numbers r and runs + r; the
// second may be empty.
struct ProductSchedule {
  int query_tiles = 0;                  // of kQueryTile queries
  int base_tiles = 0;                   // of kOperandTile rows
  int tiles_per_item = 0;               // even
  int panel_tiles = 0;                  // of queries, of equal items; 0: all are one panel
  int items = 0;                        // of a list whose length is on the device, the most there can be
  int runs = 0;                         // 0: equal items, or a list
  int run_pairs = 0;                    // pairs of tiles in each of them, at least
  int longer_runs = 0;                  // the first so many have one more
  const ProductItem* list = nullptr;    // on the device; null: all
  const int32_t* list_count = nullptr;  // on the device; null: `items`

  KITH_HOST_DEVICE int count() const { return list_count == nullptr ? items : *list_count; }
  KITH_HOST_DEVICE ProductItem item(int index) const {
    if (list != nullptr) return list[index];
    if (runs > 0) return index < runs ? item_of_run(index, 0) : item_of_run(index - runs, 1);
    return panel_tiles > 0 ? item_of_panel(index) : equal_item(index, 0, query_tiles);
  }
  KITH_HOST_DEVICE ProductItem equal_item(int index, int first_query, int queries) const {
    const int first = index / queries * tiles_per_item;
    return {first_query + index % queries, first,
            first + tiles_per_item < base_tiles ? first + tiles_per_item : base_tiles};
  }
  KITH_HOST_DEVICE ProductItem item_of_panel(int index) const {
    const int each = (base_tiles + tiles_per_item - 1) / tiles_per_item * panel_tiles;  // items of a panel
    const int first = index / each * panel_tiles;
    return equal_item(index % each, first, query_tiles - first < panel_tiles ? query_tiles - first : panel_tiles);
  }
  // A block takes items block, block + blocks, ... below this.
  KITH_HOST_DEVICE int end_for(int block) const {
    if (runs == 0) return count();
    return block < runs && !item_of_run(block, 1).empty() ? items : runs;
  }
  // Small numbers: a kernel holds this code several times, beside a loop that should stay in the instruction cache.
  KITH_HOST_DEVICE ProductItem item_of_run(int run, int part) const {
    const int pairs = base_tiles / 2;  // of a tile of queries
    const int first = run * run_pairs + (run < longer_runs ? run : longer_runs);
    const int end = first + run_pairs + (run < longer_runs ? 1 : 0);
    const auto tile = static_cast<int>(static_cast<unsigned>(first) / static_cast<unsigned>(pairs)) + part;
    const int start = tile * pairs;
    const int begin = part == 0 ? first - start : 0;
    const int last = end - start < pairs ? end - start : pairs;
    return {tile, 2 * begin, 2 * (last < begin ? begin : last)};
  }
};
// Rows of more `chunks` than a block keeps of its queries are multiplied in panels.
ProductSchedule schedule_product(int64_t queries, int64_t rows, int multiprocessors, int64_t chunks = 1);
// Tiles of queries that should be multiplied at a time, so that they stay in the L2 cache; `all` where a block keeps
// its own in shared memory.
int64_t panel_of(int64_t all, int64_t chunks);
// In runs, one for each multiprocessor, where one has no more pairs than a tile of queries; else schedule_product's.
// For products of so few tiles that equal items would leave many multiprocessors idle at the end.
ProductSchedule schedule_runs(int64_t queries, int64_t rows, int multiprocessors, int64_t chunks = 1);
// At most `items` of a list on the device; `count`, likewise there, is how many where that is known only later.
ProductSchedule schedule_items(const ProductItem* list, int items, const int32_t* count = nullptr);

}  // namespace kith
