// The plan of an exact search on a GPU. Plain data: knn_plan_cuda
// makes it, and workspaces are laid out from it.
#pragma once

#include "exact/search_task.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>
#include <optional>
#include <variant>

namespace kith {

// How a GPU finds a query's neighbours.
enum class CudaEngine : uint8_t {
  automatic,
  product,  // products on the matrix units choose candidates; queries of which they cannot be sure go the other way
  direct,   // every canonical key
};

// Room for the candidates that a product finds for each query.
struct CandidateRoom {
  int64_t capacity = 0;
  int64_t room = 0;
};

// Groups of rows that are selected for each query by their minima.
struct SelectedGroups {
  int64_t count = 0;
  int64_t bytes = 0;  // of the selection's workspace
};

// How products find the candidates of a query. All but RangeProduct use the minima of groups of rows.

// Small k: the rows of the selected groups are the candidates.
struct GroupedProduct {
  int rows_per_minimum = 64;
  SelectedGroups selected;
  bool narrow = false;  // minima are of differences in f32 (kernels/matrix/narrow_minima_cuda.hpp)
};
// Larger k: a second product finds the rows below the k-th minimum.
struct SecondProduct {
  int rows_per_minimum = 64;               // 8 where k is large beside the rows
  std::optional<SelectedGroups> selected;  // none: only the k-th minimum is found
  CandidateRoom candidates;
};
// Few rows and many queries (kernels/rerank/coarse_plan.hpp).
struct CoarseProduct {
  int rows_per_minimum = 64;
  int64_t room = 0;                       // candidates of a query
  std::optional<int64_t> row_tile_bytes;  // shared memory for re-ranking by tiles of rows; none: query by query
};
// Small k, few queries, and rows without operands, which are multiplied as they are stored: every row is a group of its
// own.
struct StreamedProduct {
  SelectedGroups selected;
};
// All rows within a radius, which one product finds.
struct RangeProduct {
  CandidateRoom candidates;
};

// What the product engine does.
struct ProductPlan {
  ProductEngine engine = ProductEngine::automatic;
  OperandType operands = OperandType::half;
  bool operands_ready = false;  // a prepared base has them
  int64_t queries = 0;          // searched at a time
  int64_t rows = 0;             // of the base, at a time
  int multiprocessors = 0;
  std::variant<GroupedProduct, SecondProduct, CoarseProduct, StreamedProduct, RangeProduct> way;
  bool streams() const { return std::holds_alternative<StreamedProduct>(way); }
  CandidateRoom retry;  // of a query that has failed, when it is tried again; ranges are cut instead
};

// When failed queries are searched among fewer rows (exact/vicinities_cuda.hpp), as multiplications of a direct search
// of them: 2^34 take a millisecond.
struct ApartSteps {
  double look = 0x1p31;   // from which it is worth a look,
  double pays = 0x1p32;   // for the queries of one vicinity,
  double quick = 0x1p34;  // up to which these are searched directly among its rows
};

struct KnnCudaPlan : KnnPlan {
  int64_t pinned_bytes = 0;  // host memory that rows pass through on their way
  int64_t gather_bytes = 0;  // the same for rows by number, where none is pinned
  int64_t query_tile = 0;    // of the direct engine, which takes what the product engine leaves
  int64_t row_tile = 0;
  int multiprocessors = 0;
  bool few = true;                     // there is memory for a way of few queries' own (search_workspace_cuda.hpp)
  bool selects_tiles = true;           // of the direct engine, where k is small enough; else lists take less memory
  int64_t hits = 0;                    // range search: rows found that the device holds at a time
  std::optional<ProductPlan> product;  // none: the direct engine does it all
  ApartSteps apart;

  CudaEngine engine() const { return product ? CudaEngine::product : CudaEngine::direct; }
  int64_t product_queries() const { return product ? product->queries : 0; }
};

}  // namespace kith
