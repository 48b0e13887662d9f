#include "kernels/distance/distance_block_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/distance_block_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/scratch_layout.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/distance_tile_cpu-inl.hpp"
#include "kernels/distance/lane_order.hpp"
#include "rows/load_cpu-inl.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#ifndef KITH_KERNELS_DISTANCE_DISTANCE_BLOCK_CPU_ONCE
#define KITH_KERNELS_DISTANCE_DISTANCE_BLOCK_CPU_ONCE
namespace kith {
namespace {

constexpr int64_t kFewestInBlock = 3;  // queries; with fewer, going row by row is faster
constexpr int64_t kSlab = 1024;        // columns packed at a time: a multiple of the lanes
constexpr int64_t kMostTileRows = 32;  // over all instruction sets
constexpr int64_t kMostTileQueries = 6;
constexpr int64_t kMostQueryWidth = 8;  // queries of a tile are padded to at most this many
constexpr int64_t kQueryUnit = 12;      // a multiple of every tile's queries
constexpr int64_t kQueryDoubles = 1 << 16;
constexpr int64_t kMostQueriesAtATime = 384;
constexpr int64_t kProofCols = 17;  // from this number of columns on, intervals pay off
constexpr int64_t kShortCols = 64;  // from 16 up to this many columns, lanes are joined in registers
constexpr int64_t kWideRows = 480;  // rows whose sums are carried from slab to slab

int64_t packed_columns(int64_t cols) { return std::min(cols, kSlab); }
int64_t queries_at_a_time(int64_t cols) {
  const int64_t units = kQueryDoubles / packed_columns(std::max<int64_t>(cols, 1)) / kQueryUnit;
  return std::clamp<int64_t>(units, 4, kMostQueriesAtATime / kQueryUnit) * kQueryUnit;
}

// After a tile whose intervals decided nothing, the next tiles skip them: twice as many each time.
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

// The layout of a block's scratch.
struct BlockLayout {
  Slot<double> rows;          // a panel
  Slot<double> row_inverses;  // of the panel, for cosine
  Slot<double> row_norms;     // squared norms of the packed values
  Slot<double> queries;       // panels
  Slot<double> query_norms;
  Slot<double> lanes;  // lanes of all tiles of a panel, or sums with many rows, carried between slabs
  int64_t bytes = 0;

  explicit BlockLayout(int64_t cols) {
    const int64_t width = packed_columns(cols);
    const int64_t most = queries_at_a_time(cols);
    // For any instruction set: tiles of four queries fill up to four, those of six to eight.
    const int64_t padded = most / kMostTileQueries * kMostQueryWidth;
    ScratchLayout layout;
    const auto take = [&](int64_t count) { return layout.take<double>(round_up(count, 8)); };
    rows = take(kMostTileRows * width);
    const int64_t kept_rows = cols > kSlab ? kWideRows : kMostTileRows;
    row_inverses = take(kept_rows);
    row_norms = take(kept_rows);
    queries = take(padded * width);
    query_norms = take(padded);
    lanes = take(cols > kSlab ? most * std::max(kCanonicalLanes * kMostTileRows, kWideRows) : 0);
    bytes = layout.bytes;
  }
};

struct BlockScratch {
  double* rows;
  double* row_inverses;
  double* row_norms;
  double* queries;
  double* query_norms;
  double* lanes;  // partial sums; whole sums where rows are many

  BlockScratch(std::byte* memory, const BlockLayout& layout)
      : rows(layout.rows.in(memory)),
        row_inverses(layout.row_inverses.in(memory)),
        row_norms(layout.row_norms.in(memory)),
        queries(layout.queries.in(memory)),
        query_norms(layout.query_norms.in(memory)),
        lanes(layout.lanes.in(memory)) {}
};

}  // namespace
}  // namespace kith
#endif

HWY_BEFORE_NAMESPACE();
namespace kith {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(kQueryWidth <= kMostQueryWidth);
static_assert(kTileRows <= kMostTileRows && kQueryUnit % kTileQueries == 0 && kTileQueries <= kMostTileQueries);

// Transposes kDoubles columns of kDoubles rows.
HWY_INLINE void transpose(Doubles (&block)[kDoubles]) {
  [[maybe_unused]] const F64 d;
#pragma GCC unroll 8
  for (int64_t i = 0; i < kDoubles; i += 2) {
    const Doubles a = block[i];
    const Doubles b = block[i + 1];
    block[i] = hn::InterleaveLower(d, a, b);
    block[i + 1] = hn::InterleaveUpper(d, a, b);
  }
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
  double scales[kMostTileRows];  // factors applied while packing
};

// Packs a panel of `width` vectors, a multiple of the registers.
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

// Pads the panel by repeating its last vector.
using PackRows = void (*)(const MatrixView& rows, int64_t first, int64_t cols, const LaneOrder& order,
                          const double* inverses, double* panel);
template <typename T>
void pack_rows(const MatrixView& rows, int64_t first, int64_t cols, const LaneOrder& order, const double* inverses,
               double* panel) {
  PackedVectors<T> vectors;
  for (int64_t i = 0; i < kTileRows; ++i) {
    const int64_t row = std::min(i, rows.rows() - 1);
    vectors.from[i] = typed_row<T>(rows, row) + first;
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
// added to. All vectors go together, so that no sum waits for itself.
template <int64_t kWidth>
HWY_INLINE void packed_norms(const double* panel, int64_t cols, bool first, double* norms) {
  constexpr int kVectors = static_cast<int>(kWidth / kDoubles);
  Doubles sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = first ? hn::Zero(F64()) : hn::Load(F64(), norms + v * kDoubles);
  for (int64_t c = 0; c < cols; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Doubles x = hn::Load(F64(), panel + c * kWidth + v * kDoubles);
      sums[v] = fused(x, x, sums[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::Store(sums[v], F64(), norms + v * kDoubles);
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
        whole_slab_(kSlab),
        last_slab_(width_of(slabs_ - 1)),
        walk_(cols_) {}

  void run(ProofUse& proofs) {
    const int64_t rows = block_.rows.rows();
    if constexpr (kProves) {
      for (int64_t row = 0; slabs_ > 1 && row < rows; row += kWideRows) run_wide(row, proofs);
      if (slabs_ > 1) return;
    }
    for (int64_t row = 0; row < rows; row += kTileRows) run_panel(row, proofs);
  }

 private:
  static constexpr int64_t kMostTiles = kMostQueriesAtATime / kTileQueries;
  static constexpr bool kProves = has_differences(kKind) || kKind == KeyKind::cosine;
  static_assert(kWideRows % kTileRows == 0);

  // Rows of a panel, and their inverse norms.
  struct Panel {
    MatrixView rows;
    int64_t first;
    double* inverses;
  };
  Panel panel_of(int64_t row, int64_t kept) const {
    return {block_.rows.slice(row, std::min(kTileRows, block_.rows.rows() - row)), row, scratch_.row_inverses + kept};
  }
  void find_inverses(const Panel& panel) const {
    if constexpr (kKind != KeyKind::cosine) return;
    canonical_inverse_norms_cpu(panel.rows, panel.inverses);
    std::fill(panel.inverses + panel.rows.rows(), panel.inverses + kTileRows, 1.0);
  }

  // Intervals where there is one slab, then lanes for the tiles that these leave.
  void run_panel(int64_t row, ProofUse& proofs) {
    const Panel panel = panel_of(row, 0);
    find_inverses(panel);
    bool packed = false;
    bool unproven[kMostTiles];
    std::fill_n(unproven, tiles_, true);
    if constexpr (kProves) {
      bool tries[kMostTiles];
      bool any = false;
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        tries[tile] = cols_ >= kProofCols && proofs.tries_next();
        any = any || tries[tile];
      }
      if (any) {
        pack_panel(panel, 0);
        if (row == 0) pack_all_queries(0);
        packed_norms<kTileRows>(scratch_.rows, cols_, true, scratch_.row_norms);
        packed = true;
      }
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        if (!tries[tile]) continue;
        unproven[tile] = !prove<kKind>(panel, tile, 0, nullptr, scratch_.row_norms);
        proofs.count(!unproven[tile]);
      }
    }
    sum_panel(panel, unproven, packed);
  }

  // Several slabs: the queries' are packed once for many rows, whose sums wait for the next.
  void run_wide(int64_t first, ProofUse& proofs) {
    const int64_t panels = divide_up(std::min(kWideRows, block_.rows.rows() - first), kTileRows);
    bool unproven[kWideRows / kTileRows][kMostTiles];
    for (int64_t p = 0; p < panels; ++p) {
      std::fill_n(unproven[p], tiles_, true);
      find_inverses(panel_of(first + p * kTileRows, p * kTileRows));
    }
    if (proofs.tries_next()) {
      for (int64_t slab = 0; slab < slabs_; ++slab) {
        pack_all_queries(slab);
        for (int64_t p = 0; p < panels; ++p) {
          const Panel panel = panel_of(first + p * kTileRows, p * kTileRows);
          double* const norms = scratch_.row_norms + p * kTileRows;
          pack_panel(panel, slab);
          packed_norms<kTileRows>(scratch_.rows, width_of(slab), slab == 0, norms);
          for (int64_t tile = 0; tile < tiles_; ++tile) {
            double* const sums = scratch_.lanes + (p * tiles_ + tile) * kTileQueries * kTileRows;
            unproven[p][tile] = !prove<kKind>(panel, tile, slab, sums, norms);
          }
        }
      }
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t tile = 0; tile < tiles_; ++tile) proofs.count(!unproven[p][tile]);
      }
    }
    for (int64_t p = 0; p < panels; ++p) sum_panel(panel_of(first + p * kTileRows, p * kTileRows), unproven[p], false);
  }

  // Accumulates a slab's products; after the last slab, returns the result of prove_tile.
  template <KeyKind kProven>
  bool prove(const Panel& panel, int64_t tile, int64_t slab, double* sums, const double* row_norms) const {
    const int64_t width = width_of(slab);
    return prove_tile<kProven>(place_of(tile, panel, width), width, cols_, {slab == 0, slab + 1 == slabs_}, sums,
                               scratch_.query_norms + tile * kQueryWidth, row_norms);
  }

  // The tiles of a panel that are not proven, by lanes. `packed`: so are the panel and the queries, in the only slab.
  void sum_panel(const Panel& panel, const bool* unproven, bool packed) const {
    if (std::find(unproven, unproven + tiles_, true) == unproven + tiles_) return;
    for (int64_t slab = 0; slab < slabs_; ++slab) {
      if (!packed) {
        pack_panel(panel, slab);
        if (slabs_ > 1 || panel.first == 0) pack_all_queries(slab);  // with one slab they stay packed
      }
      const LaneOrder& order = order_of(slab);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        if (!unproven[tile]) continue;
        const TilePlace place = place_of(tile, panel, width_of(slab));
        if constexpr (has_short_sums(kKind)) {
          if (cols_ <= kShortCols) {
            short_tile<kKind>(place, order);
            continue;
          }
        }
        sum_tile<kKind>(place, order, walk_, {slab == 0, slab + 1 == slabs_}, lanes_of(tile));
      }
    }
  }

  void pack_panel(const Panel& panel, int64_t slab) const {
    pack_(panel.rows, slab * kSlab, width_of(slab), order_of(slab), kKind == KeyKind::cosine ? panel.inverses : nullptr,
          scratch_.rows);
  }
  void pack_all_queries(int64_t slab) const {
    const int64_t width = width_of(slab);
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      pack_queries(kKind, canonical(tile), count_of(tile), slab * kSlab, width, order_of(slab),
                   queries_of(tile, width));
      if constexpr (kProves) {
        packed_norms<kQueryWidth>(queries_of(tile, width), width, slab == 0, scratch_.query_norms + tile * kQueryWidth);
      }
    }
  }

  const LaneOrder& order_of(int64_t slab) const { return slab + 1 == slabs_ ? last_slab_ : whole_slab_; }
  int64_t width_of(int64_t slab) const { return std::min(kSlab, cols_ - slab * kSlab); }
  const CanonicalQuery* canonical(int64_t tile) const { return block_.queries + first_query_ + tile * kTileQueries; }
  int64_t count_of(int64_t tile) const { return std::min<int64_t>(kTileQueries, query_count_ - tile * kTileQueries); }
  double* queries_of(int64_t tile, int64_t width) const { return scratch_.queries + tile * kQueryWidth * width; }
  // Memory carried between slabs.
  double* lanes_of(int64_t tile) const {
    return slabs_ == 1 ? nullptr : scratch_.lanes + tile * kTileQueries * kTileRows * kCanonicalLanes;
  }
  TilePlace place_of(int64_t tile, const Panel& panel, int64_t width) const {
    float* const keys = block_.keys + (first_query_ + tile * kTileQueries) * block_.stride + panel.first;
    return {queries_of(tile, width),          scratch_.rows,    canonical(tile), panel.inverses, keys, block_.stride,
            static_cast<int>(count_of(tile)), panel.rows.rows()};
  }

  const CanonicalBlock& block_;
  const PackRows pack_;
  const BlockScratch& scratch_;
  const int64_t first_query_;
  const int64_t query_count_;
  const int64_t cols_;
  const int64_t slabs_;
  const int64_t tiles_;
  const LaneOrder whole_slab_;
  const LaneOrder last_slab_;
  const LaneWalk walk_;
};

void RunBlock(const CanonicalBlock& block, std::byte* memory) {
  const BlockScratch scratch(memory, BlockLayout(block.rows.cols()));
  const int64_t step = queries_at_a_time(block.rows.cols());
  const PackRows pack =
      visit_dtype(block.rows.dtype(), []<typename T>(StoredAs<T>) -> PackRows { return pack_rows<T>; });
  ProofUse proofs;
  visit_kind(block.kind, [&](auto tag) {
    if constexpr (tag.kind != KeyKind::hamming && tag.kind != KeyKind::linf) {
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

int64_t canonical_block_bytes(int64_t cols) { return std::max(BlockLayout(cols).bytes, linf_block_bytes(cols)); }

bool block_packs(KeyKind kind, int64_t queries, int64_t cols) {
  if (kind == KeyKind::hamming || cols == 0 || suits_few_columns(kind, queries, cols)) return false;
  return kind == KeyKind::linf || queries >= kFewestInBlock;
}

void canonical_block_cpu(const CanonicalBlock& block, std::byte* scratch) {
  if (suits_few_columns(block.kind, block.query_count, block.rows.cols())) return few_columns_block_cpu(block);
  if (scratch != nullptr && block_packs(block.kind, block.query_count, block.rows.cols())) {
    if (block.kind == KeyKind::linf) return linf_block_cpu(block, scratch);
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
