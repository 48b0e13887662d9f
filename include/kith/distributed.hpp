// Exact search and k-means by several ranks together, with the bytes of one process.
//
// Every rank calls the same function with the same files or arrays and the same parameters, and does a part of the
// work. Parameters and Kith's version are compared first. Files are read where they are needed, a part by each rank.
// What a rank throws, all throw, with its rank and host. docs/clusters.md says what is exchanged.
//
// A rank's Resources are its own: its device, its threads, its limits.
#pragma once

#include <kith/communicator.hpp>
#include <kith/export.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// What of a search is dealt out.
enum class Dealt : uint8_t {
  automatic,  // what moves fewer bytes; queries where there is a filter, rows where queries are fewer than ranks
  queries,    // each rank searches all rows for its queries: nothing is exchanged
  rows,       // each rank searches its rows for all queries: results are joined by (distance, row)
};

// "auto", "queries", "rows".
KITH_EXPORT std::string_view name_of(Dealt dealt);
KITH_EXPORT Dealt parse_dealt(std::string_view name);

// `sink` gets the results of this rank's queries, which are consecutive, in their order.
KITH_EXPORT void knn(Communicator& ranks, const VectorFile& queries, const VectorFile& base, const NeighborsSink& sink,
                     const KnnParams& params = {}, const Resources& resources = Resources(),
                     Dealt dealt = Dealt::automatic);
// Every rank gets all results, into arrays of its own in host memory.
KITH_EXPORT void knn(Communicator& ranks, const VectorFile& queries, const VectorFile& base, const NeighborsView& out,
                     const KnnParams& params, const Resources& resources = Resources(), Dealt dealt = Dealt::automatic);
KITH_EXPORT void knn(Communicator& ranks, const MatrixView& queries, const MatrixView& base, const NeighborsView& out,
                     const KnnParams& params, const Resources& resources = Resources(), Dealt dealt = Dealt::automatic);
KITH_EXPORT Neighbors knn(Communicator& ranks, const MatrixView& queries, const MatrixView& base,
                          const KnnParams& params = {}, const Resources& resources = Resources(),
                          Dealt dealt = Dealt::automatic);

// As KMeans::fit: every rank's model is then the same, labels of all rows included. Rows lie in host memory.
KITH_EXPORT void fit(KMeans& model, Communicator& ranks, const MatrixView& rows, const KMeansInput& input = {},
                     const Resources& resources = Resources());
// Each rank keeps its part of the rows in memory where its limit lets it, else reads it once or twice in each pass.
KITH_EXPORT void fit(KMeans& model, Communicator& ranks, const VectorFile& rows, const KMeansInput& input = {},
                     const Resources& resources = Resources());

}  // namespace kith
