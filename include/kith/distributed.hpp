// Exact search, k-means, graphs and indexes by several ranks together, with the same bytes as one process.
//
// Every rank calls the same function with the same files or arrays and the same parameters, and does a part of the
// work. Parameters and Kith's version are compared first. Each rank reads the parts of files that it needs. An error of
// one rank is thrown on all, with its rank and host. docs/clusters.md says what is exchanged.
//
// Each rank has Resources of its own: device, threads and limits may differ.
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

// What a search distributes over the ranks.
enum class Dealt : uint8_t {
  automatic,  // what moves fewer bytes; queries if there is a filter, rows if there are fewer queries than ranks
  queries,    // each rank searches all rows for a share of the queries; nothing is exchanged
  rows,       // each rank searches a share of the rows for all queries; results are merged by (distance, row)
};

// "auto", "queries", "rows".
KITH_EXPORT std::string_view name_of(Dealt dealt);
KITH_EXPORT Dealt parse_dealt(std::string_view name);

// `sink` receives the results of this rank's queries, which are consecutive, in order.
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

// KMeans::fit(); every rank ends with the same model, including the labels of all rows. Rows are in host memory.
KITH_EXPORT void fit(KMeans& model, Communicator& ranks, const MatrixView& rows, const KMeansInput& input = {},
                     const Resources& resources = Resources());
// Each rank keeps its share of the rows in memory if its limit allows, otherwise it reads it once or twice per pass.
KITH_EXPORT void fit(KMeans& model, Communicator& ranks, const VectorFile& rows, const KMeansInput& input = {},
                     const Resources& resources = Resources());

// knn_graph() in memory: every rank has all rows, in host memory or files, and gets the whole graph. For `exact` and
// `cells` each compares a share of the rows, on its CPU; `nn_descent` and `ggm` run completely on each rank.
KITH_EXPORT KnnGraph knn_graph(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params,
                               const Resources& resources = Resources());
KITH_EXPORT GraphReport knn_graph(Communicator& ranks, const MatrixView& x, const NeighborsView& out,
                                  const KnnGraphParams& params, const Resources& resources = Resources());
KITH_EXPORT KnnGraph knn_graph(Communicator& ranks, const VectorFile& x, const KnnGraphParams& params,
                               const Resources& resources = Resources());

// knn_graph_folder(), in folders that all ranks see. The method `cells` always works from disk here, with the ranks as
// the parts of the work (kith/work_part.hpp). A killed job continues when it is run again, with any number of ranks.
KITH_EXPORT GraphReport knn_graph_folder(Communicator& ranks, const VectorFile& x, const std::string& folder,
                                         const KnnGraphParams& params, const GraphWork& work = {},
                                         const Resources& resources = Resources());

// The rows and ids of an index that is built as a file.
struct IndexRows {
  const VectorFile& rows;
  VectorView<const int64_t> ids = {};    // empty: 0, 1, 2, ...
  const VectorFile* training = nullptr;  // null: `rows`
};
// Writes the file that train(), add() and save() of one process would write, in a folder that all ranks see. `index`
// has no rows, and gets none. Rank 0 trains it unless it is trained; each rank encodes a share of the rows; rank 0
// writes one file of all. Unsupported for graph indexes.
KITH_EXPORT void build_index(Index& index, Communicator& ranks, const IndexRows& rows, const std::string& path,
                             const Resources& resources = Resources());

// Index::add(): every rank has the same index and the same rows, in host memory or files, encodes a share of them, and
// ends with all. Into Flat and graph indexes, which need no encoding, each rank adds all rows by itself. If one rank
// runs out of memory at the very end, others may have added the rows: then load the index again on all ranks.
KITH_EXPORT void add(Index& index, Communicator& ranks, const MatrixView& rows, VectorView<const int64_t> ids = {},
                     const Resources& resources = Resources());
KITH_EXPORT void add(Index& index, Communicator& ranks, const VectorFile& rows, VectorView<const int64_t> ids = {},
                     const Resources& resources = Resources());

// Index::search(): every rank has the same index (a mapped file, for instance) and searches a share of the queries.
// Each gets all results, in arrays of its own in host memory.
KITH_EXPORT void search(const Index& index, Communicator& ranks, const MatrixView& queries, const NeighborsView& out,
                        const SearchParams& params, const Resources& resources = Resources());
KITH_EXPORT Neighbors search(const Index& index, Communicator& ranks, const MatrixView& queries,
                             const SearchParams& params = {}, const Resources& resources = Resources());
// `sink` receives the results of this rank's queries, which are consecutive, in order.
KITH_EXPORT void search(const Index& index, Communicator& ranks, const VectorFile& queries, const NeighborsSink& sink,
                        const SearchParams& params = {}, const Resources& resources = Resources());

}  // namespace kith
