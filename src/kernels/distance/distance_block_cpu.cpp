#include "kernels/distance/distance_block_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/distance_block_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#ifndef KITH_KERNELS_DISTANCE_DISTANCE_BLOCK_CPU_ONCE
#define KITH_KERNELS_DISTANCE_DISTANCE_BLOCK_CPU_ONCE
namespace kith {
namespace {

constexpr int64_t kSlab = 1024;        // columns packed at a time: a multiple of the lanes
constexpr int64_t kMostTileRows = 32;  // of any instruction set
constexpr int64_t kMostTileQueries = 6;
constexpr int64_t kMostQueryWidth = 8;  // what a tile's queries fill up to
constexpr int64_t kQueryUnit = 12;      // a multiple of every tile's queries
constexpr int64_t kQueryDoubles = 1 << 16;
constexpr int64_t kMostQueriesAtATime = 384;
constexpr int64_t kProofCols = 24;  // from so many columns on the intervals pay

int64_t packed_columns(int64_t cols) { return std::min(cols, kSlab); }
int64_t queries_at_a_time(int64_t cols) {
  const int64_t units = kQueryDoubles / packed_columns(std::max<int64_t>(cols, 1)) / kQueryUnit;
  return std::clamp<int64_t>(units, 4, kMostQueriesAtATime / kQueryUnit) * kQueryUnit;
}

// Where the columns of a slab lie when they are packed: lane by lane.
struct LaneOrder {
  int64_t first[kCanonicalLanes + 1];

  explicit LaneOrder(int64_t cols) {
    first[0] = 0;
    for (int64_t lane = 0; lane < kCanonicalLanes; ++lane) {
      first[lane + 1] = first[lane] + (cols - lane + kCanonicalLanes - 1) / kCanonicalLanes;
    }
  }
  int64_t place(int64_t col) const { return first[col % kCanonicalLanes] + col / kCanonicalLanes; }
};

// The lanes that have columns, in the order of a walk over the tree that keeps no more than its depth of unfinished
// sums, and how many of those each lane completes.
struct LaneWalk {
  struct Step {
    int lane;
    int joins;
  };
  Step steps[kCanonicalLanes];
  int count = 0;

  explicit LaneWalk(int64_t cols) {
    bool waiting[8];
    int depth = 0;
    for (int i = 0; i < kCanonicalLanes; ++i) {
      const int lane = (i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | (i & 8) >> 3;
      bool some = lane < cols;
      if (some) steps[count++] = {lane, 0};
      for (int t = i; (t & 1) != 0; t >>= 1) {
        const bool before = waiting[--depth];
        if (before && some) ++steps[count - 1].joins;
        some = some || before;
      }
      waiting[depth++] = some;
    }
  }
};

// Tiles for which intervals were too wide to tell make the next ones go without, twice as many each time.
class ProofUse {
 public:
  bool tries_next() {
    if (waiting_ == 0) return true;
    --waiting_;
    return false;
  }
  void count(bool proven) {
    misses_ = proven ? misses_ / 2 : misses_ + 4;
    if (misses_ < 12) return;
    misses_ = 8;
    waiting_ = wait_;
    wait_ = std::min<int64_t>(2 * wait_, 256);
  }

 private:
  int64_t misses_ = 0;
  int64_t wait_ = 8;
  int64_t waiting_ = 0;
};

// Where the parts of a block's scratch lie, in doubles.
struct BlockLayout {
  int64_t rows = 0;          // a panel
  int64_t row_inverses = 0;  // of the panel, for cosine
  int64_t row_norms = 0;     // squared, of the values as they are packed
  int64_t queries = 0;       // panels
  int64_t query_norms = 0;
  int64_t lanes = 0;  // of every tile of the queries with a panel, between slabs
  int64_t end = 0;

  explicit BlockLayout(int64_t cols) {
    const int64_t width = packed_columns(cols);
    const int64_t most = queries_at_a_time(cols);
    // Of any instruction set: tiles of four queries fill up to four, those of six to eight.
    const int64_t padded = most / kMostTileQueries * kMostQueryWidth;
    const auto take = [&](int64_t count) {
      const int64_t at = end;
      end += round_up(count, 8);
      return at;
    };
    rows = take(kMostTileRows * width);
    row_inverses = take(kMostTileRows);
    row_norms = take(kMostTileRows);
    queries = take(padded * width);
    query_norms = take(padded);
    lanes = take(cols > kSlab ? most * kCanonicalLanes * kMostTileRows : 0);
  }
};

struct BlockScratch {
  double* rows;
  double* row_inverses;
  double* row_norms;
  double* queries;
  double* query_norms;
  double* lanes;

  BlockScratch(std::byte* memory, const BlockLayout& layout) {
    auto* const at = reinterpret_cast<double*>(memory);
    rows = at + layout.rows;
    row_inverses = at + layout.row_inverses;
    row_norms = at + layout.row_norms;
    queries = at + layout.queries;
    query_norms = at + layout.query_norms;
    lanes = at + layout.lanes;
  }
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The tile fills the registers: sums, a vector for each group of rows, and a query's value.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kTileQueries = 6;
constexpr int kTileVectors = 4;
#else
constexpr int kTileQueries = 4;
constexpr int kTileVectors = 3;
#endif
constexpr int64_t kTileRows = kTileVectors * kDoubles;
constexpr int64_t kQueryWidth = round_up(kTileQueries, kDoubles);  // of a panel of queries, whole registers
static_assert(kQueryWidth <= kMostQueryWidth);
static_assert(kTileRows <= kMostTileRows && kQueryUnit % kTileQueries == 0 && kTileQueries <= kMostTileQueries);

using Tile = Doubles[kTileQueries][kTileVectors];

template <typename Use>
HWY_INLINE void for_tile(const Use& use) {
#pragma GCC unroll 8
  for (int q = 0; q < kTileQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) use(q, v);
  }
}

HWY_INLINE void store_tile(const Tile& tile, double* to) {
  for_tile([&](int q, int v) HWY_ATTR { hn::Store(tile[q][v], F64(), to + (q * kTileVectors + v) * kDoubles); });
}

HWY_INLINE void load_tile(const double* from, Tile& tile) {
  for_tile([&](int q, int v) HWY_ATTR { tile[q][v] = hn::Load(F64(), from + (q * kTileVectors + v) * kDoubles); });
}

// Which of the slabs that make up the columns.
struct Slab {
  bool first;
  bool last;
};

// `count` columns, packed one after the other.
template <KeyKind kKind>
HWY_INLINE void add_columns(const double* queries, const double* rows, int64_t count, Tile& tile) {
  for (int64_t c = 0; c < count; ++c) {
    Doubles x[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) x[v] = hn::Load(F64(), rows + v * kDoubles);
#pragma GCC unroll 8
    for (int q = 0; q < kTileQueries; ++q) {
      const Doubles value = hn::Set(F64(), queries[q]);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) tile[q][v] = step_lanes<kKind>(tile[q][v], value, x[v]);
#if HWY_ARCH_ARM_A64
      __asm__ volatile("" ::: "memory");  // or else all values are loaded first, and sums have no register left
#endif
    }
    queries += kQueryWidth;
    rows += kTileRows;
  }
}

// One panel of queries and one of rows, and where their keys go.
struct TilePlace {
  const double* queries;
  const double* rows;
  const CanonicalQuery* canonical;  // the queries
  const double* row_inverses;
  float* keys;
  int64_t stride;
  int query_count;
  int64_t row_count;
};

using Floats = hn::Vec<hn::Rebind<float, F64>>;

HWY_INLINE void put_keys(const TilePlace& place, int q, int v, Floats keys) {
  const hn::Rebind<float, F64> d;
  if (q >= place.query_count) return;
  float* const to = place.keys + q * place.stride + v * kDoubles;
  const int64_t count = std::min(kDoubles, place.row_count - v * kDoubles);
  if (HWY_LIKELY(count == kDoubles)) return hn::StoreU(keys, d, to);
  HWY_ALIGN float some[kDoubles];
  hn::Store(keys, d, some);
  for (int64_t i = 0; i < count; ++i) to[i] = some[i];
}

// canonical_key.
template <KeyKind kKind>
HWY_INLINE Floats key_of(Doubles sum, Doubles inverse_x, double inverse_q) {
  const hn::Rebind<float, F64> d;
  if constexpr (kKind == KeyKind::inner_product) return hn::DemoteTo(d, hn::Neg(sum));
  if constexpr (kKind == KeyKind::l2) return hn::DemoteTo(d, hn::Sqrt(sum));
  if constexpr (kKind == KeyKind::cosine) {
    const Doubles one = hn::Set(F64(), 1.0);
    if (inverse_q == 0.0) return hn::DemoteTo(d, one);
    const Doubles half = hn::Mul(hn::Set(F64(), 0.5), sum);
    return hn::DemoteTo(d, hn::IfThenElse(hn::Eq(inverse_x, hn::Zero(F64())), one, half));
  }
  return hn::DemoteTo(d, sum);
}

template <KeyKind kKind>
HWY_INLINE Floats key_at(const TilePlace& place, int q, int v, Doubles sum) {
  Doubles inverse_x = hn::Zero(F64());
  double inverse_q = 0;
  if constexpr (kKind == KeyKind::cosine) {
    inverse_x = hn::Load(F64(), place.row_inverses + v * kDoubles);
    inverse_q = place.canonical[std::min(q, place.query_count - 1)].inverse_norm;
  }
  return key_of<kKind>(sum, inverse_x, inverse_q);
}

// Lane after lane. `lanes` holds them between slabs; after the last one they are joined.
template <KeyKind kKind>
HWY_NOINLINE void sum_tile(const TilePlace& place, const LaneOrder& order, const LaneWalk& walk, const Slab& slab,
                           double* lanes) {
  HWY_ALIGN double waiting[5][kTileQueries * kTileRows];
  int depth = 0;
  for (int i = 0; i < walk.count; ++i) {
    const auto [lane, joins] = walk.steps[i];
    const int64_t at = order.first[lane];
    Tile tile;
    if (slab.first) {
      for_tile([&](int q, int v) HWY_ATTR { tile[q][v] = hn::Zero(F64()); });
    } else {
      load_tile(lanes + lane * kTileQueries * kTileRows, tile);
    }
    add_columns<kKind>(place.queries + at * kQueryWidth, place.rows + at * kTileRows, order.first[lane + 1] - at, tile);
    if (!slab.last) {
      store_tile(tile, lanes + lane * kTileQueries * kTileRows);
      continue;
    }
    for (int j = 0; j < joins; ++j) {
      const double* const before = waiting[--depth];
      for_tile([&](int q, int v) HWY_ATTR {
        const Doubles other = hn::Load(F64(), before + (q * kTileVectors + v) * kDoubles);
        tile[q][v] = join_lanes<kKind>(F64(), other, tile[q][v]);
      });
    }
    if (i + 1 < walk.count) {
      store_tile(tile, waiting[depth++]);
    } else {
      for_tile([&](int q, int v) HWY_ATTR { put_keys(place, q, v, key_at<kKind>(place, q, v, tile[q][v])); });
    }
  }
}

// |q|^2 + |x|^2 - 2 q x within an interval: true where each interval rounds to one key, which is put. All that is added
// up, here and in the canonical sum, is at most (|q| + |x|)^2 <= 2 (|q|^2 + |x|^2), with a rounding for each column and
// a few more.
template <KeyKind kKind>
HWY_INLINE bool prove_sums(const TilePlace& place, const Tile& tile, int64_t cols, const double* query_norms,
                           const double* row_norms) {
  const Doubles share = hn::Set(F64(), 2.2 * static_cast<double>(cols + 32) * 0x1p-53);
  const Doubles least = hn::Set(F64(), 0x1p-960);  // what underflows
  const Doubles two = hn::Set(F64(), 2.0);
  const hn::Rebind<float, F64> d;
  auto proven = hn::Eq(hn::Zero(d), hn::Zero(d));
  for_tile([&](int q, int v) HWY_ATTR {
    const Doubles norms = hn::Add(hn::Set(F64(), query_norms[q]), hn::Load(F64(), row_norms + v * kDoubles));
    const Doubles middle = hn::Sub(norms, hn::Mul(two, tile[q][v]));
    const Doubles error = hn::Add(hn::Mul(norms, share), least);
    const Floats low = key_at<kKind>(place, q, v, hn::Sub(middle, error));
    const Floats high = key_at<kKind>(place, q, v, hn::Add(middle, error));
    if (q < place.query_count) proven = hn::And(proven, hn::Eq(low, high));  // a NaN is none
    put_keys(place, q, v, high);
  });
  return hn::AllTrue(d, proven);
}

// Adds up the products of a slab of `width` columns; after the last one, returns what prove_sums() says. `sums` holds
// them between slabs.
template <KeyKind kKind>
HWY_NOINLINE bool prove_tile(const TilePlace& place, int64_t width, int64_t cols, const Slab& slab, double* sums,
                             const double* query_norms, const double* row_norms) {
  Tile tile;
  if (slab.first) {
    for_tile([&](int q, int v) HWY_ATTR { tile[q][v] = hn::Zero(F64()); });
  } else {
    load_tile(sums, tile);
  }
  add_columns<KeyKind::inner_product>(place.queries, place.rows, width, tile);
  if (slab.last) return prove_sums<kKind>(place, tile, cols, query_norms, row_norms);
  store_tile(tile, sums);
  return false;
}

// Columns of kDoubles rows change places with rows.
HWY_INLINE void transpose(Doubles (&block)[kDoubles]) {
  [[maybe_unused]] const F64 d;
#if HWY_TARGET != HWY_SCALAR
#pragma GCC unroll 8
  for (int64_t i = 0; i < kDoubles; i += 2) {
    const Doubles a = block[i];
    const Doubles b = block[i + 1];
    block[i] = hn::InterleaveLower(d, a, b);
    block[i + 1] = hn::InterleaveUpper(d, a, b);
  }
#endif
#if HWY_TARGET <= HWY_AVX3
#pragma GCC unroll 8
  for (int64_t i = 0; i < kDoubles; ++i) {
    if ((i & 2) != 0) continue;
    const Doubles a = block[i];
    const Doubles b = block[i + 2];
    block[i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
    block[i + 2] = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
  }
#endif
#if HWY_TARGET <= HWY_AVX2
#pragma GCC unroll 8
  for (int64_t i = 0; i < kDoubles / 2; ++i) {
    const Doubles a = block[i];
    const Doubles b = block[i + kDoubles / 2];
    block[i] = hn::ConcatLowerLower(d, b, a);
    block[i + kDoubles / 2] = hn::ConcatUpperUpper(d, b, a);
  }
#endif
}

// Vectors that are packed side by side, and their columns from `first` on.
template <typename T>
struct PackedVectors {
  const T* from[kMostTileRows];
  double scales[kMostTileRows];  // what they are multiplied by
};

// A panel of `width` vectors, whole registers of them.
template <typename T>
HWY_INLINE void pack_vectors(const PackedVectors<T>& vectors, int64_t width, int64_t cols, const LaneOrder& order,
                             double* panel) {
  for (int64_t group = 0; group < width; group += kDoubles) {
    const T* const* const from = vectors.from + group;
    const double* const scales = vectors.scales + group;
    int64_t c = 0;
    for (; c + kDoubles <= cols; c += kDoubles) {
      Doubles block[kDoubles];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kDoubles; ++i) {
        block[i] = hn::Mul(load_doubles(from[i] + c), hn::Set(F64(), scales[i]));
      }
      transpose(block);
      const int64_t lane = c % kCanonicalLanes;
#pragma GCC unroll 8
      for (int64_t i = 0; i < kDoubles; ++i) {
        hn::Store(block[i], F64(), panel + (order.first[lane + i] + c / kCanonicalLanes) * width + group);
      }
    }
    for (; c < cols; ++c) {
      double* const to = panel + order.place(c) * width + group;
      for (int64_t i = 0; i < kDoubles; ++i) to[i] = static_cast<double>(static_cast<float>(from[i][c])) * scales[i];
    }
  }
}

// A panel fills up with its last vector.
using PackRows = void (*)(const MatrixView& rows, int64_t first, int64_t cols, const LaneOrder& order,
                          const double* inverses, double* panel);
template <typename T>
void pack_rows(const MatrixView& rows, int64_t first, int64_t cols, const LaneOrder& order, const double* inverses,
               double* panel) {
  PackedVectors<T> vectors;
  for (int64_t i = 0; i < kTileRows; ++i) {
    const int64_t row = std::min(i, rows.rows() - 1);
    vectors.from[i] = reinterpret_cast<const T*>(rows.row(row)) + first;
    vectors.scales[i] = inverses == nullptr ? 1.0 : inverses[row];
  }
  pack_vectors(vectors, kTileRows, cols, order, panel);
}

void pack_queries(KeyKind kind, const CanonicalQuery* queries, int64_t count, int64_t first, int64_t cols,
                  const LaneOrder& order, double* panel) {
  PackedVectors<float> vectors;
  for (int64_t i = 0; i < kQueryWidth; ++i) {
    const CanonicalQuery& query = queries[std::min(i, count - 1)];
    vectors.from[i] = query.values + first;
    vectors.scales[i] = kind == KeyKind::cosine ? query.inverse_norm : 1.0;
  }
  pack_vectors(vectors, kQueryWidth, cols, order, panel);
}

// Squared norms of the vectors of a panel, each in one sum: close enough for intervals. After the first slab they are
// added to.
HWY_INLINE void packed_norms(const double* panel, int64_t width, int64_t cols, bool first, double* norms) {
  for (int64_t group = 0; group < width; group += kDoubles) {
    Doubles sum = first ? hn::Zero(F64()) : hn::Load(F64(), norms + group);
    for (int64_t c = 0; c < cols; ++c) {
      const Doubles x = hn::Load(F64(), panel + c * width + group);
      sum = fused(x, x, sum);
    }
    hn::Store(sum, F64(), norms + group);
  }
}

// Some queries and all rows of a block, a panel of rows after the other: intervals first, then lanes for the tiles that
// these leave.
template <KeyKind kKind>
class QueriesRun {
 public:
  QueriesRun(const CanonicalBlock& block, PackRows pack, const BlockScratch& scratch, int64_t first_query,
             int64_t query_count)
      : block_(block),
        pack_(pack),
        scratch_(scratch),
        first_query_(first_query),
        query_count_(query_count),
        cols_(block.rows.cols()),
        slabs_(divide_up(cols_, kSlab)),
        tiles_(divide_up(query_count, kTileQueries)),
        walk_(cols_) {}

  void run(ProofUse& proofs) {
    for (int64_t row = 0; row < block_.rows.rows(); row += kTileRows) run_panel(row, proofs);
  }

 private:
  static constexpr int64_t kMostTiles = kMostQueriesAtATime / kTileQueries;
  static constexpr bool kProves = has_differences(kKind) || kKind == KeyKind::cosine;

  void run_panel(int64_t row, ProofUse& proofs) {
    const MatrixView rows = block_.rows.slice(row, std::min(kTileRows, block_.rows.rows() - row));
    if constexpr (kKind == KeyKind::cosine) {
      canonical_inverse_norms_cpu(rows, scratch_.row_inverses);
      std::fill(scratch_.row_inverses + rows.rows(), scratch_.row_inverses + kTileRows, 1.0);
    }
    bool packed = false;  // the only slab
    bool unproven[kMostTiles];
    std::fill_n(unproven, tiles_, true);
    if constexpr (kProves) {
      bool tries[kMostTiles];
      bool any = false;
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        tries[tile] = cols_ >= kProofCols && proofs.tries_next();
        any = any || tries[tile];
      }
      for (int64_t slab = 0; any && slab < slabs_; ++slab) {
        pack_slab(rows, row, slab);
        const int64_t width = width_of(slab);
        const bool first = slab == 0;
        packed_norms(scratch_.rows, kTileRows, width, first, scratch_.row_norms);
        for (int64_t tile = 0; tile < tiles_; ++tile) {
          if (!tries[tile]) continue;
          const double* const norms = scratch_.query_norms + tile * kQueryWidth;
          unproven[tile] = !prove_tile<kKind>(place_of(tile, row, width, rows.rows()), width, cols_,
                                              {first, slab + 1 == slabs_}, lanes_of(tile), norms, scratch_.row_norms);
        }
      }
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        if (tries[tile]) proofs.count(!unproven[tile]);
      }
      packed = any && slabs_ == 1;
    }
    if (std::find(unproven, unproven + tiles_, true) == unproven + tiles_) return;
    for (int64_t slab = 0; slab < slabs_; ++slab) {
      if (!packed) pack_slab(rows, row, slab);
      const int64_t width = width_of(slab);
      const LaneOrder order(width);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        if (!unproven[tile]) continue;
        sum_tile<kKind>(place_of(tile, row, width, rows.rows()), order, walk_, {slab == 0, slab + 1 == slabs_},
                        lanes_of(tile));
      }
    }
  }

  // Queries stay packed where there is one slab.
  void pack_slab(const MatrixView& rows, int64_t row, int64_t slab) {
    const int64_t width = width_of(slab);
    const LaneOrder order(width);
    pack_(rows, slab * kSlab, width, order, kKind == KeyKind::cosine ? scratch_.row_inverses : nullptr, scratch_.rows);
    if (slabs_ == 1 && row > 0) return;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      pack_queries(kKind, canonical(tile), count_of(tile), slab * kSlab, width, order, queries_of(tile, width));
      if constexpr (kProves) {
        packed_norms(queries_of(tile, width), kQueryWidth, width, slab == 0, scratch_.query_norms + tile * kQueryWidth);
      }
    }
  }

  int64_t width_of(int64_t slab) const { return std::min(kSlab, cols_ - slab * kSlab); }
  const CanonicalQuery* canonical(int64_t tile) const { return block_.queries + first_query_ + tile * kTileQueries; }
  int64_t count_of(int64_t tile) const { return std::min<int64_t>(kTileQueries, query_count_ - tile * kTileQueries); }
  double* queries_of(int64_t tile, int64_t width) const { return scratch_.queries + tile * kQueryWidth * width; }
  // Between slabs.
  double* lanes_of(int64_t tile) const {
    return slabs_ == 1 ? nullptr : scratch_.lanes + tile * kTileQueries * kTileRows * kCanonicalLanes;
  }
  TilePlace place_of(int64_t tile, int64_t row, int64_t width, int64_t row_count) const {
    float* const keys = block_.keys + (first_query_ + tile * kTileQueries) * block_.stride + row;
    return {
        queries_of(tile, width),          scratch_.rows, canonical(tile), scratch_.row_inverses, keys, block_.stride,
        static_cast<int>(count_of(tile)), row_count};
  }

  const CanonicalBlock& block_;
  const PackRows pack_;
  const BlockScratch& scratch_;
  const int64_t first_query_;
  const int64_t query_count_;
  const int64_t cols_;
  const int64_t slabs_;
  const int64_t tiles_;
  const LaneWalk walk_;
};

void RunBlock(const CanonicalBlock& block, std::byte* memory) {
  const BlockScratch scratch(memory, BlockLayout(block.rows.cols()));
  const int64_t step = queries_at_a_time(block.rows.cols());
  const PackRows pack = visit_dtype(block.rows.dtype(),
                                    [](auto stored) -> PackRows { return pack_rows<typename decltype(stored)::type>; });
  ProofUse proofs;
  visit_kind(block.kind, [&](auto tag) {
    if constexpr (tag.kind != KeyKind::hamming) {
      for (int64_t first = 0; first < block.query_count; first += step) {
        QueriesRun<tag.kind>(block, pack, scratch, first, std::min(step, block.query_count - first)).run(proofs);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kith
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kith {

HWY_EXPORT(RunBlock);

int64_t canonical_block_bytes(int64_t cols) { return BlockLayout(cols).end * static_cast<int64_t>(sizeof(double)); }

void canonical_block_cpu(const CanonicalBlock& block, std::byte* scratch) {
  if (scratch != nullptr && block.kind != KeyKind::hamming && block.query_count >= kFewestInBlock &&
      block.rows.cols() > 0) {
    return HWY_DYNAMIC_DISPATCH(RunBlock)(block, scratch);
  }
  constexpr int64_t kRows = 256;
  uint32_t numbers[kRows];
  std::iota(numbers, numbers + kRows, 0u);
  for (int64_t first = 0; first < block.rows.rows(); first += kRows) {
    const MatrixView rows = block.rows.slice(first, std::min(kRows, block.rows.rows() - first));
    for (int64_t q = 0; q < block.query_count; ++q) {
      canonical_keys_cpu(block.kind, block.queries[q], rows, numbers, rows.rows(),
                         block.keys + q * block.stride + first);
    }
  }
}

}  // namespace kith
#endif
