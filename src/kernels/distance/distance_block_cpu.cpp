#include "kernels/distance/distance_block_cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance/distance_block_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "kernels/distance/canonical_step_cpu-inl.hpp"
#include "kernels/distance/distance_tile_cpu-inl.hpp"
#include "kernels/distance/lane_order.hpp"
#include "kernels/distance/linf_block_cpu.hpp"
#include "kernels/distance/short_tile_cpu-inl.hpp"
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
constexpr int64_t kShortCols = 64;  // up to so many, lanes are joined in registers

int64_t packed_columns(int64_t cols) { return std::min(cols, kSlab); }
int64_t queries_at_a_time(int64_t cols) {
  const int64_t units = kQueryDoubles / packed_columns(std::max<int64_t>(cols, 1)) / kQueryUnit;
  return std::clamp<int64_t>(units, 4, kMostQueriesAtATime / kQueryUnit) * kQueryUnit;
}

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

static_assert(kQueryWidth <= kMostQueryWidth);
static_assert(kTileRows <= kMostTileRows && kQueryUnit % kTileQueries == 0 && kTileQueries <= kMostTileQueries);

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
        whole_slab_(kSlab),
        last_slab_(width_of(slabs_ - 1)),
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
      const LaneOrder& order = order_of(slab);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        if (!unproven[tile]) continue;
        if constexpr (has_short_sums(kKind)) {
          if (cols_ <= kShortCols) {
            short_tile<kKind>(place_of(tile, row, width, rows.rows()), cols_, order);
            continue;
          }
        }
        sum_tile<kKind>(place_of(tile, row, width, rows.rows()), order, walk_, {slab == 0, slab + 1 == slabs_},
                        lanes_of(tile));
      }
    }
  }

  // Queries stay packed where there is one slab.
  void pack_slab(const MatrixView& rows, int64_t row, int64_t slab) {
    const int64_t width = width_of(slab);
    const LaneOrder& order = order_of(slab);
    pack_(rows, slab * kSlab, width, order, kKind == KeyKind::cosine ? scratch_.row_inverses : nullptr, scratch_.rows);
    if (slabs_ == 1 && row > 0) return;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      pack_queries(kKind, canonical(tile), count_of(tile), slab * kSlab, width, order, queries_of(tile, width));
      if constexpr (kProves) {
        packed_norms(queries_of(tile, width), kQueryWidth, width, slab == 0, scratch_.query_norms + tile * kQueryWidth);
      }
    }
  }

  const LaneOrder& order_of(int64_t slab) const { return slab + 1 == slabs_ ? last_slab_ : whole_slab_; }
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
  const LaneOrder whole_slab_;
  const LaneOrder last_slab_;
  const LaneWalk walk_;
};

void RunBlock(const CanonicalBlock& block, std::byte* memory) {
  const BlockScratch scratch(memory, BlockLayout(block.rows.cols()));
  const int64_t step = queries_at_a_time(block.rows.cols());
  const PackRows pack = visit_dtype(block.rows.dtype(),
                                    [](auto stored) -> PackRows { return pack_rows<typename decltype(stored)::type>; });
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

int64_t canonical_block_bytes(int64_t cols) {
  return std::max(BlockLayout(cols).end * static_cast<int64_t>(sizeof(double)), linf_block_bytes(cols));
}

void canonical_block_cpu(const CanonicalBlock& block, std::byte* scratch) {
  if (scratch != nullptr && block.kind != KeyKind::hamming && block.query_count >= kFewestInBlock &&
      block.rows.cols() > 0) {
    if (block.kind == KeyKind::linf) return linf_block_cpu(block, reinterpret_cast<float*>(scratch));
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
