// Exact search, k-means, graphs and indexes by several ranks together, with the bytes of one process.
//
// Every rank calls the same function with the same files or arrays and the same parameters, and does a part of the
// work. Parameters and Kith's version are compared first. Files are read where they are needed, a part by each rank.
// What a rank throws, all throw, with its rank and host. docs/clusters.md says what is exchanged.
//
// A rank's Resources are its own: its device, its threads, its limits.
#pragma once

#include <kith/communicator.hpp>
#include <kith/export.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/index.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string>
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

// As knn_graph(), in memory: every rank has all rows, in host memory or files, and gets the whole graph. By `exact` and
// `cells` each compares its share of the rows, on its CPU; what `nn_descent` and `ggm` do, each does by itself.
KITH_EXPORT KnnGraph knn_graph(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params,
                               const Resources& resources = Resources());
KITH_EXPORT GraphReport knn_graph(Communicator& ranks, const MatrixView& x, const NeighborsView& out,
                                  const KnnGraphParams& params, const Resources& resources = Resources());
KITH_EXPORT KnnGraph knn_graph(Communicator& ranks, const VectorFile& x, const KnnGraphParams& params,
                               const Resources& resources = Resources());

// As knn_graph_folder(). With the method cells from disk whatever the limit, in folders that all ranks see: ranks are the
// parts of the work (kith/work_part.hpp). A job that was killed goes on when it is run again, by any number of ranks.
KITH_EXPORT GraphReport knn_graph_folder(Communicator& ranks, const VectorFile& x, const std::string& folder,
                                         const KnnGraphParams& params, const GraphWork& work = {},
                                         const Resources& resources = Resources());

// Rows and ids for an index that goes to a file.
struct IndexRows {
  const VectorFile& rows;
  VectorView<const int64_t> ids = {};   // empty: 0, 1, 2, ...
  const VectorFile* training = nullptr;  // null: `rows`
};
// The file that train(), add() and save() of one process write, of an index without rows, in a folder that all ranks
// see. Rank 0 trains it, unless that was done; each rank codes its share of the rows; rank 0 writes one file of all.
// Unsupported for graph indexes. The index itself stays without rows.
KITH_EXPORT void build_index(Index& index, Communicator& ranks, const IndexRows& rows, const std::string& path,
                             const Resources& resources = Resources());

// As Index::add(): every rank has the same index and the same rows, in host memory or files, codes its share of them, and
// ends with all. Flat and graph indexes have nothing to share: there each rank adds all rows. An error that only one rank
// meets at the very end, for lack of memory, may leave the others with the rows: then load all indexes again.
KITH_EXPORT void add(Index& index, Communicator& ranks, const MatrixView& rows, VectorView<const int64_t> ids = {},
                     const Resources& resources = Resources());
KITH_EXPORT void add(Index& index, Communicator& ranks, const VectorFile& rows, VectorView<const int64_t> ids = {},
                     const Resources& resources = Resources());

// As Index::search(): every rank has the same index (a file, mapped, say), and searches its share of the queries. Each
// gets all results, into arrays of its own in host memory.
KITH_EXPORT void search(const Index& index, Communicator& ranks, const MatrixView& queries, const NeighborsView& out,
                        const SearchParams& params, const Resources& resources = Resources());
KITH_EXPORT Neighbors search(const Index& index, Communicator& ranks, const MatrixView& queries,
                             const SearchParams& params = {}, const Resources& resources = Resources());
// `sink` gets the results of this rank's queries, which are consecutive, in their order.
KITH_EXPORT void search(const Index& index, Communicator& ranks, const VectorFile& queries, const NeighborsSink& sink,
                        const SearchParams& params = {}, const Resources& resources = Resources());

}  // namespace kith
