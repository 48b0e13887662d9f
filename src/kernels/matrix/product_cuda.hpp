// Products of all queries with all rows on the matrix units, reduced in registers so that little is written.
//
//   minima      for every query and group of rows (operand_layout.hpp) the smallest term + product
//   parts       the same for parts of a tile, where there are few rows
//   candidates  for every query the rows whose term + product does not exceed the query's threshold
//   marks       the same as bits, for many candidates among few rows
//   nearest     for every query the few rows whose term + product is within a slack of the least
//   pairs       pairs that pass the query's limit or, with a second term, the row's: all of them in one list
//
// Two implementations, chosen by the device: product_wgmma_cuda.cu for Hopper and product_mma_cuda.cu for every GPU
// from compute capability 8.0 on. Time is that of the matrix product; the minima are one f32 for each 32 or 64
// products. A schedule may be a list of items (tiles of queries with runs of tiles of rows): then what belongs to no
// item stays as it was.
#pragma once

#include "kernels/matrix/nearest_rows.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct ProductOperands {
  OperandType type = OperandType::half;
  const std::byte* queries = nullptr;
  const std::byte* base = nullptr;
  const void* terms = nullptr;
  int64_t query_count = 0;
  int64_t row_count = 0;
  int64_t chunks = 0;
  int last_steps = kChunkSteps;  // steps of the last chunk that hold columns; later ones may be skipped
};

struct ProductMinima {
  float* values = nullptr;  // queries x stride
  int64_t stride = 0;
  int tiles_per_group = 2;
};

struct ProductCandidates {
  const float* thresholds = nullptr;  // one for each query
  uint32_t* counts = nullptr;         // zeroed by the caller; above capacity if rows were dropped
  uint32_t* rows = nullptr;           // queries x capacity
  int64_t capacity = 0;
};

// Adjacent values are one thread's: the order of groups has no meaning.
struct ProductParts {
  float* values = nullptr;  // queries x part_count(rows, rows_per_part)
  int rows_per_part = 8;    // or 2
  int64_t stride = 0;       // of a query's values, if parts are numbered from the item's first row; else 0
};

struct ProductMarks {
  const float* thresholds = nullptr;  // one for each query
  uint32_t* words = nullptr;          // queries x mark_words(rows); all are written
};

// The nearest rows by products of halves. An item of the schedule lies in one part of the base, and no other item has
// that part and its queries; the last may end with an odd tile. What lies above some row's value by more than that
// row's slack and the query's is left out, so that the fourth value is right only up to there. Values are lower bounds;
// the first row has the first value itself.
struct ProductNearest {
  const float* slacks = nullptr;      // one for each query
  const float* limits = nullptr;      // likewise: an upper bound of the nearest row's value
  const float* row_slacks = nullptr;  // one for each row of the tiles
  // The largest of those that one thread has of a tile, kGroupsPerTile for each; negative where they differ much.
  const float* part_slacks = nullptr;
  NearestRows* found = nullptr;  // parts x stride
  int64_t stride = 0;
  int64_t rows_per_part = 0;
  int64_t queries = 0;  // ProductOperands' count may be that of the tiles
};

// Counters of pairs saturate about here, so that they never wrap around.
inline constexpr uint32_t kManyPairs = 0x80000000u;

// A row has two terms: the operands' terms are, for each tile of rows, the first ones and then the second ones. A pair
// passes where the first term + product is not above the query's first limit or the second not above its second.
// Queries without a limit, and rows without a term, pass nothing.
struct ProductPairs {
  const void* limits = nullptr;  // two floats (halves) or int32_t (bytes) for each query of the tiles
  uint64_t* pairs = nullptr;     // query << 32 | row, in any order
  uint32_t* count = nullptr;     // zeroed by the caller; above capacity if pairs were dropped; saturates
  uint32_t capacity = 0;
};

// One of the two implementations; `Target` is one of the six above.
template <typename Target>
void launch_mma(const ProductOperands& operands, const ProductSchedule& schedule, const Target& target,
                cudaStream_t stream);
template <typename Target>
void launch_wgmma(const ProductOperands& operands, const ProductSchedule& schedule, const Target& target,
                  cudaStream_t stream);

// Either implementation, for all targets; defined in the file with its code.
#define KITH_INSTANTIATE_PRODUCT(launch, Target) \
  template void launch(const ProductOperands&, const ProductSchedule&, const Target&, cudaStream_t)
#define KITH_INSTANTIATE_PRODUCTS(launch)              \
  KITH_INSTANTIATE_PRODUCT(launch, ProductMinima);     \
  KITH_INSTANTIATE_PRODUCT(launch, ProductCandidates); \
  KITH_INSTANTIATE_PRODUCT(launch, ProductParts);      \
  KITH_INSTANTIATE_PRODUCT(launch, ProductMarks);      \
  KITH_INSTANTIATE_PRODUCT(launch, ProductNearest);    \
  KITH_INSTANTIATE_PRODUCT(launch, ProductPairs)

template <typename Target>
void launch_product(ProductEngine engine, const ProductOperands& operands, const ProductSchedule& schedule,
                    const Target& target, cudaStream_t stream) {
  if (engine == ProductEngine::wgmma) return launch_wgmma(operands, schedule, target, stream);
  launch_mma(operands, schedule, target, stream);
}

}  // namespace kith
