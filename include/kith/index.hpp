// An index: vectors kept ready for many searches.
//
// An Index is a handle to an immutable version: train(), add() and remove() publish a new version, searches that are
// under way keep the one they began with, and readers never wait. Copies of a handle see the same versions.
//
// What it keeps is named by a factory string in FAISS's grammar (docs/indexes.md): parts, divided by commas.
//
//   OPQ16_64 PCA64 RR64 L2norm Pad128   first, any number of them: what is done to vectors and queries
//   IVF4096 or IVF                      then, if given: vectors lie in lists, of which a search looks at some
//   Graph32 Graph32x4                   or a graph with up to so many neighbours of each vector, which searches walk
//                                       over by codes of 8 or 4 bits; behind it Flat, which may be left out, SQ8 or
//                                       SQfp16 (docs/graph-index.md)
//   Flat  SQ8 SQ6 SQ4 SQfp16  PQ16 PQ16x4   the vectors as they are, or their codes:
//   LSQ8x8 LSQ7x8_Ncqint8 RQ8x8 RaBitQ  scalar, product and additive ones (docs/lsq.md), and signs
//   RFlat or Refine(SQ8)                last, if given: candidates are compared again with these
//
// "Flat" alone is exact search. All other searches are exact too, over what the lists hold: the first k by (distance,
// row) of the vectors in the lists nearest to the query, where a distance is that of knn() to the decoded vector, or
// for l2 and sqeuclidean |q|^2 - 2 q x + norm where codes hold norms.
#pragma once

#include <kith/device.hpp>
#include <kith/export.hpp>
#include <kith/host_buffer.hpp>
#include <kith/index_edges.hpp>
#include <kith/index_tune.hpp>
#include <kith/knn.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

struct IndexParams {
  Metric metric = Metric::l2;
  bool check_finite = true;  // for added vectors and queries
  bool prepare = true;  // keep a copy laid out for the device, on the CPU of dimension + 29 bytes a row, or more
                        // (docs/performance.md), where the memory limit has room for twice that: faster searches.
                        // Lists: what few queries are compared with on the CPU
  int64_t expected_rows = 0;  // how many the index will hold: "IVF" makes the root of it lists; 0: of the training rows
  uint64_t seed = 0;          // of the training
};

struct SearchParams {
  int64_t k = 10;
  RowFilter filter = {};  // which may be found: a list of ids, or a mask or bits of the size() rows; without one, all
  // Or a filter for each query: queries with equal filters are searched together, and results are those of a loop.
  std::span<const RowFilter> filters = {};
  bool filter_strict = false;  // a listed id that the index does not have is InvalidArgument, else it is passed over
  int64_t probes = 0;     // with IVF, others refuse it: lists to look at; 0: the root of their number, at most 64
  // With RFlat, Refine or refine_from (else refused): the index finds refine * k candidates, compared again by vectors that
  // say more; the first k of them by those are returned. 0: 4, or what a file of FAISS's says.
  int64_t refine = 0;
  // A file with the original vectors, of any dtype, for an index that keeps none: row i is the vector with id i, so that
  // the file that an index was built from goes with it. It is read as candidates ask for it. Read during the call.
  const VectorFile* refine_from = nullptr;
  // With Graph; others refuse them. A walk keeps the best `beam` vectors that it has seen and opens the `width` nearest
  // of them at a time, until all are opened; the first refine * k of them are compared by their distances. 0: the least
  // beam that had a recall of 0.95 on 1,000 of the index's own vectors when the graph was built, and a width of 2.
  int64_t beam = 0;   // up to 2^20; at least k is taken
  int64_t width = 0;  // up to 64
  // Instead of a beam or probes: parameters that had this recall when tune() was last called, those with the fewest
  // comparisons; with Graph and without tune() the least beam that had it when the graph was built. Exact search where
  // none had; a given width or refine is taken as it is. InvalidArgument where nothing was measured. 0: not given.
  double recall = 0;
};

struct MergeParams {
  bool shift_ids = false;  // the other's vectors get ids behind all that this one ever had: their own plus that
};

// Where the lists of a loaded index are: in memory, or in their file, from which searches fetch what they look at.
enum class ListsPlace : uint8_t { host, disk };

struct LoadParams {
  // Everything with a value for each vector stays in the file, which is mapped: codes and rows of lists, vectors of
  // Flat, and those that candidates are compared with again. (Graph indexes, and ids that are not row numbers, come
  // into memory.)
  bool mmap = false;
  ListsPlace lists = ListsPlace::host;  // disk: of lists alone
  // Opening a mapped file hashes its header, sizes, offsets and centres. The rest is checked when
  // it is used: searches that meet rows which cannot be are CorruptFile; damaged codes are found as they are. With this
  // all of it is hashed at once, which reads it.
  bool verify = false;
};

struct RangeSearchParams {
  float radius = 0;                                // in the metric's unit, and included; see kith/range_search.hpp
  RowFilter filter = {};                           // as in SearchParams
  bool filter_strict = false;                      // as in SearchParams
  int64_t probes = 0;                              // as in SearchParams
  MemorySpace result_space = MemorySpace::host();  // and memory there, as in RangeParams
  RangeAllocator allocate = {};
};

// What an index holds, in bytes: copies of rows and what is kept beside them, not rows that it borrows.
struct IndexBytes {
  int64_t host = 0;
  int64_t device = 0;  // on all GPUs together
};

struct IndexInfo {
  std::string factory;
  Metric metric = Metric::l2;
  bool trained = false;
  int64_t rows = 0;
  double dead = 0;  // the share of removed rows in what is kept, until compaction
  int64_t dimension = 0;
  DType dtype = DType::f32;  // of the vectors that were given first
  int64_t lists = 0;         // 0 without lists
  double imbalance = 0;      // the mean, over rows, of their list's length, by that of equal lists: 1 at best
  int64_t longest = 0;       // the rows of the longest list
  int64_t filled = 0;        // lists that have any
  int64_t code_bytes = 0;    // of a vector
  int64_t degree = 0;     // of a graph; 0 without one. The others stay 0 while it has so few rows that search is exact
  int64_t unlinked = 0;   // rows added since the graph was built, which every search compares
  int64_t walk_bits = 0;  // of a column in the codes that walks go by: 8 or 4; 0 where they compare the vectors
  int64_t clipped = 0;    // values of vectors beyond the codes that walks go by
  int64_t lost = 0;       // vectors that a short walk towards them does not find
  int64_t beam = 0;       // that searches take by default
  std::vector<std::pair<int64_t, double>> recalls;  // by beam, of the 10 nearest, measured when the graph was built
  TuneTable tuned;                                  // what tune() has measured; none before
  IndexBytes bytes;
  std::vector<std::pair<std::string, int64_t>> parts;  // the bytes by what they are for
};

// Whether add() copies the rows or refers to the caller's memory, which must then outlive every search. Borrowed rows
// are never merged: each such add is a block of its own, so borrow few, large ones. Only "Flat" borrows; what other
// kinds keep are codes, and they take rows as copied.
enum class Ownership : uint8_t { copy, borrow };

// Which devices search an index, and how many of their parts hold each vector. As many copies as parts: each holds all
// and searches some of the queries. One copy: each holds some of the vectors (a shard), and what all find is joined.
// Between: parts / copies shards, each of them so often; the number of parts must be a multiple. What is found, and
// what files hold, does not depend on it.
struct IndexPlacement {
  std::vector<DeviceParts> devices;
  int copies = 0;  // 0: as many as the memory of the GPUs has room for, 1 at least
};

class IndexKind;
class KnnGraph;

class KITH_EXPORT Index {
 public:
  // Throws InvalidArgument for a factory string that it does not know, naming the part and what there is.
  explicit Index(std::string_view factory, IndexParams params = {});

  // Learns centres, codes and transforms from rows like those to come; InvalidState once rows were added. Before, a
  // second training replaces the first. "Flat" needs none, and takes it as done.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  // The file may be larger than the memory limit.
  void train(const VectorFile& rows, const Resources& resources = Resources());
  bool trained() const;

  // Rows get the ids after the largest that there was: 0, 1, 2, ... at first. The first add fixes dimension, dtype and
  // place: on the host, or in the memory of one CUDA device, where rows are read in the order of resources.stream. Later
  // rows are copied there. What holds codes takes rows of any dtype and keeps codes where their rows lay. The first
  // training or add also fixes what is subtracted from all vectors and queries, if its rows are f64 (kith/view.hpp):
  // such an index takes vectors of any dtype, but none from files, and copies what it should borrow, as it does f64.
  // Returns when they are in. Calls at the same time take turns. A sink that is called on the way may search the index;
  // adding to it is InvalidState.
  void add(const MatrixView& rows, Ownership ownership = Ownership::copy, const Resources& resources = Resources());
  // The same with ids of the caller's own, one for each row, at least 0. One that is there already, or twice among
  // these, is InvalidArgument, and nothing is added.
  void add(const MatrixView& rows, VectorView<const int64_t> ids, Ownership ownership = Ownership::copy,
           const Resources& resources = Resources());
  // The first vectors of an index with a graph ("Graph32"), whose neighbours are known: `start` is knn_graph() of these
  // rows by the index's metric (l2 and sqeuclidean are alike), and the build chooses from its neighbours. 96 of each
  // row, or twice the degree where that is more, are what it would look for; with fewer there is a warning. `ids` may
  // be empty. InvalidArgument for a graph of other rows, told by their number and by distances of a sample; Unsupported
  // by inner_product, and without a graph.
  void add(const MatrixView& rows, VectorView<const int64_t> ids, const KnnGraph& start,
           const Resources& resources = Resources());
  // All rows of a file, which may be larger than the memory limit; `ids` may be empty. All are added or none.
  void add(const VectorFile& rows, VectorView<const int64_t> ids = {}, const Resources& resources = Resources());

  // add(rows, ids) where ids may be there already: the vectors that have them are removed, and whoever searches sees
  // either those or the new ones. The new ones come behind all others, in the order of add. Returns how many were
  // removed. Compaction may follow, as after remove().
  int64_t replace(const MatrixView& rows, VectorView<const int64_t> ids, const Resources& resources = Resources());
  int64_t replace(const VectorFile& rows, VectorView<const int64_t> ids, const Resources& resources = Resources());

  // Returns how many there were; ids that the index does not have are no error. The others close up: size() shrinks,
  // and masks are of the rows that are there. A removed id may be added again, but is never given by the index itself.
  // Removal marks, at one bit for each row; once a fifth of all rows are marked, compaction follows by itself, where the
  // memory limit has room for it.
  int64_t remove(VectorView<const int64_t> ids, const Resources& resources = Resources());

  // Gives back the memory of removed rows: what is left is copied, and searches no longer pass over the others. Changes
  // no result.
  void compact(const Resources& resources = Resources());

  // Adds all vectors of another index with the same training, of any kind: copies of one trained index, say, that were
  // filled from parts of the data. They come behind those that are there, in their order, and keep their ids; one that
  // both have is InvalidArgument that names it, unless params.shift_ids. InvalidArgument too where metric, centres, codes
  // or transforms differ. All are added or none; the other stays as it is.
  void merge(const Index& other, const MergeParams& params = {}, const Resources& resources = Resources());

  // A new index that shares all vectors with this one, and whose calls run on `device` where their resources leave it to
  // be chosen. What is added to one, or removed, is not seen by the other. Vectors in a GPU's memory that are to be
  // searched elsewhere are copied to the host; others take memory on `device` when they are first searched there.
  Index to(Device device, const Resources& resources = Resources()) const;
  // The same on several devices or parts of one, among which searches are divided (docs/scaling.md).
  Index to(const IndexPlacement& placement, const Resources& resources = Resources()) const;
  Device runs_on() const;            // as to() was told, the first of several; automatic at first
  IndexPlacement placement() const;  // as to() was told, with its number of copies; one device, one copy at first
  // The same where this one runs: to add to it or to remove from it, say, while this one stays as it is.
  Index clone(const Resources& resources = Resources()) const { return to(placement(), resources); }

  // The vectors of these ids as the index keeps them, decoded and, where transforms can be undone, in the caller's
  // space: ids x dimension(), f32 or f64 in host memory. An unknown id is InvalidArgument.
  void reconstruct(VectorView<const int64_t> ids, const MutableMatrixView& out,
                   const Resources& resources = Resources()) const;

  // search(queries, {.k = 10, .filter = filter}).
  Neighbors search(const MatrixView& queries, const SearchParams& params = {},
                   const Resources& resources = Resources()) const;
  // The same into the caller's arrays, which must be of the params' k.
  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources = Resources()) const;

  // All rows within a radius: range_search(queries, {.radius = 0.5f}).
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources = Resources()) const;

  // Measures searches with several parameters (Graph: beam, width, refine; lists: probes; refine where vectors are kept
  // for it) against exact search of what the index keeps, keeps the table for searches that name a recall, and returns
  // it. The choice goes by recall, then by the number of comparisons: the same on every device. At least one query and
  // one vector; queries as search() takes them, like those to come. A table stays until the next tune() or train().
  TuneReport tune(const MatrixView& queries, const TuneParams& params = {}, const Resources& resources = Resources());

  int64_t size() const;
  // The ids of all vectors, in the order of add: int64 numbers, as many as there are vectors.
  HostBuffer ids(const Resources& resources = Resources()) const;
  bool contains(int64_t id) const;
  int64_t dimension() const;  // 0 before the first add or train
  // In whose memory the rows or codes lie: cpu, also where they lie in several, or a GPU; automatic before the first add.
  Device device() const;
  IndexBytes bytes() const;
  IndexInfo info() const;
  // What is subtracted from every vector and query before it becomes f32, a value for each column; empty: nothing.
  std::vector<double> offset() const;
  const std::string& factory() const;
  const IndexParams& params() const;

  // Between the rows of a graph index ("Graph32"), in their order, as save() would have them: rows that came after the
  // graph was built have none, nor has an index of fewer than 4,096 rows. Unsupported for other kinds.
  IndexEdges edges(const Resources& resources = Resources()) const;

  // Saves one version to a .kith file (docs/file-formats.md), written under another name and renamed.
  void save(const std::string& path, const Resources& resources = Resources()) const;
  // The file that save() would write after add(rows, ids), also where the index would not fit into the memory limit:
  // rows that are coded go to files beside it, which have no names, and these become one. The index stays as it is, and
  // may lie on disk. What a graph index holds must fit.
  void save_added(const VectorFile& rows, VectorView<const int64_t> ids, const std::string& path,
                  const Resources& resources = Resources()) const;
  // InvalidArgument for a file that is no such index, CorruptFile for a damaged one.
  static Index load(const std::string& path, const Resources& resources = Resources());
  // The path may be a pattern, as a VectorFile's: files of one training, InvalidArgument for others, are one index,
  // with the rows of each behind those of the one before. Where no file has ids of its own vectors are numbered
  // through; else all keep theirs, and one that is there twice is InvalidArgument. An index that lies on disk finds
  // what it would in memory; it is not changed: train(), add(), remove() and merge() are InvalidState. save() writes it
  // as one file.
  static Index load(const std::string& path, const LoadParams& params, const Resources& resources = Resources());
  static Index load(const std::vector<std::string>& files, const LoadParams& params,
                    const Resources& resources = Resources());
  // Writes the file that merging them one by one would give, without loading all vectors at
  // once. Unsupported for graph indexes.
  static void merge_files(const std::vector<std::string>& files, const std::string& path,
                          const MergeParams& params = {}, const Resources& resources = Resources());

 private:
  friend class IndexAccess;
  struct Impl;
  explicit Index(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

}  // namespace kith
