// An index: vectors kept ready for many searches.
//
// An Index is a handle to an immutable version: train(), add() and remove() publish a new version, running searches
// keep the one they began with, and readers never wait. Copies of a handle see the same versions.
//
// A factory string in FAISS's grammar (docs/indexes.md) says what an index stores: parts separated by commas, in this
// order.
//
//   OPQ16_64 PCA64 RR64 L2norm Pad128   any number of transforms, applied to vectors and queries
//   IVF4096 or IVF                      optional: inverted lists, of which a search scans a few
//   Graph32 Graph32x4                   or a graph with up to 32 neighbours for each vector, walked by codes of 8 or 4
//                                       bits; followed by Flat (the default), SQ8 or SQfp16 (docs/graph-index.md)
//   Flat  SQ8 SQ6 SQ4 SQfp16  PQ16 PQ16x4   the vectors themselves, or their codes:
//   LSQ8x8 LSQ7x8_Ncqint8 RQ8x8 RaBitQ  scalar, product and additive codes (docs/lsq.md), and signs
//   RFlat or Refine(SQ8)                optional: candidates are compared a second time, with these vectors
//
// "Flat" alone is exact search. Lists are searched exactly as well: the result is the first k by (distance, row) among
// the vectors of the probed lists. A distance is what knn() computes for the decoded vector; for l2 and sqeuclidean of
// codes that hold norms it is |q|^2 - 2 q x + norm.
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
  // Keeps a second copy of the vectors, laid out for faster searches, if the memory limit has room for two of them. On
  // the CPU it takes dimension + 29 bytes a row or more (docs/performance.md). With lists it serves small batches of
  // queries on the CPU.
  bool prepare = true;
  int64_t expected_rows = 0;  // "IVF" makes as many lists as the root of this; 0: of the number of training rows
  uint64_t seed = 0;          // for training
};

struct SearchParams {
  int64_t k = 10;
  RowFilter filter = {};  // the vectors that may be found: a list of ids, or a mask or bits of the size() rows
  // Or one filter per query. Queries with equal filters are searched together; results are the same as in a loop.
  std::span<const RowFilter> filters = {};
  bool filter_strict = false;  // InvalidArgument for a listed id that the index does not have; off: it is ignored

  // The parameters below belong to some kinds of index; the others refuse them by name. 0 is the default.
  int64_t probes = 0;  // IVF: how many lists to scan; default: the root of their number, at most 64
  // RFlat, Refine or refine_from: the index finds refine * k candidates, compares them again with more precise vectors,
  // and returns the k nearest. Default: 4, or the value in a FAISS file.
  int64_t refine = 0;
  // The original vectors of an index that stores only codes, in a file of any dtype: row i is the vector with id i, as
  // in the file that the index was built from. Candidates are read from it during the call.
  const VectorFile* refine_from = nullptr;
  // Graph: a walk keeps the best `beam` vectors seen so far and opens the `width` nearest of them at a time, until all
  // are opened. The first refine * k of them are then compared by distance. Defaults: the smallest beam up to 48 that had
  // a recall of 0.98 on 1,000 of the index's own vectors when the graph was built, else the smallest with 0.95; width 2.
  int64_t beam = 0;   // up to 2^20; k if that is larger
  int64_t width = 0;  // up to 64
  // Instead of a beam or probes: the parameters that reached this recall with the fewest comparisons when tune() was
  // last called; for a graph without tune(), the smallest beam that reached it when the graph was built. If none did,
  // the search is exact. A width or refine given beside it is used as it is. InvalidArgument if nothing was measured.
  double recall = 0;
};

struct MergeParams {
  bool shift_ids = false;  // add to the other's ids the first id that this index has never used
};

// Where the lists of a loaded index are: in memory, or in the file, from which searches read the lists that they probe.
enum class ListsPlace : uint8_t { host, disk };

struct LoadParams {
  // Maps the file and leaves in it whatever grows with the number of vectors: codes and rows of lists, vectors of Flat
  // and of refinement. Graphs, and ids other than row numbers, are read into memory all the same.
  bool mmap = false;
  ListsPlace lists = ListsPlace::host;  // `disk` only for indexes with lists
  // Opening a mapped file checks the hashes of its header, sizes, offsets and centres. The rest is read unchecked:
  // impossible row numbers are CorruptFile when a search meets them, damaged codes go unnoticed. Set this to hash the
  // whole file on opening, which reads all of it.
  bool verify = false;
};

struct RangeSearchParams {
  float radius = 0;                                // inclusive, in the metric's unit; see kith/range_search.hpp
  RowFilter filter = {};                           // as in SearchParams
  bool filter_strict = false;                      // as in SearchParams
  int64_t probes = 0;                              // as in SearchParams
  MemorySpace result_space = MemorySpace::host();  // as in RangeParams, like `allocate`
  RangeAllocator allocate = {};
};

// Memory that an index owns, in bytes; borrowed rows do not count.
struct IndexBytes {
  int64_t host = 0;
  int64_t device = 0;  // on all GPUs together
};

struct IndexInfo {
  std::string factory;
  Metric metric = Metric::l2;
  bool trained = false;
  int64_t size = 0;  // vectors that it holds
  double dead = 0;   // removed vectors, as a share of the stored ones, until compaction
  int64_t dimension = 0;
  DType dtype = DType::f32;  // of the first vectors added

  int64_t lists = 0;       // 0 without lists
  double imbalance = 0;    // how many times as many vectors a probe scans as with lists of equal length; 1 is ideal
  int64_t longest = 0;     // vectors in the longest list
  int64_t filled = 0;      // lists that are not empty
  int64_t code_bytes = 0;  // per vector

  int64_t degree = 0;     // of the graph; 0 without one. The next ones stay 0 while few vectors are searched exactly
  int64_t unlinked = 0;   // vectors added since the graph was built; every search compares all of them
  int64_t walk_bits = 0;  // bits per column of the codes that walks compare: 8 or 4; 0 if they compare the vectors
  int64_t clipped = 0;    // values of vectors outside the range of these codes
  int64_t lost = 0;       // vectors that a short walk towards them does not find
  int64_t beam = 0;       // the default of searches
  std::vector<std::pair<int64_t, double>> recalls;  // (beam, recall of the 10 nearest) when the graph was built

  TuneTable tuned;  // the measurements of tune(); empty before
  IndexBytes bytes;
  std::vector<std::pair<std::string, int64_t>> parts;  // the same bytes by purpose
};

// Whether add() copies the rows or refers to the caller's memory, which must then outlive every search. Each borrowed
// add stays a block of its own, so borrow few, large ones. Only "Flat" borrows; other kinds store codes or copies.
enum class Ownership : uint8_t { copy, borrow };

// Which devices search an index, and how many of their parts hold each vector. With as many copies as parts, each part
// holds all vectors and searches a share of the queries. With one copy each holds a share of the vectors (a shard), and
// their results are merged. In between there are parts / copies shards, each held `copies` times; the number of parts
// must be a multiple of the copies. Neither results nor files depend on it.
struct IndexPlacement {
  std::vector<DeviceParts> devices;
  int copies = 0;  // 0: as many as fit in the GPUs' memory, at least 1
};

class KnnGraph;

class KITH_EXPORT Index {
 public:
  // InvalidArgument for an unknown factory string; the message names the part and lists what there is.
  explicit Index(std::string_view factory, IndexParams params = {});

  // Learns centres, codes and transforms from rows like those to be added. May be repeated until rows are added, then
  // it is InvalidState. "Flat" has nothing to learn and accepts the call.
  void train(const MatrixView& rows, const Resources& resources = Resources());
  // The file may be larger than the memory limit.
  void train(const VectorFile& rows, const Resources& resources = Resources());
  bool trained() const;

  // Rows get consecutive ids after the largest so far, from 0. The first add fixes dimension, dtype and place: the
  // host, or the memory of one CUDA device, read in the order of resources.stream. Later rows are copied there. Kinds
  // that store codes take rows of any dtype, and keep the codes where the rows were.
  //
  // If the rows of the first training or add are f64, it also fixes an offset, which is subtracted from all vectors and
  // queries (kith/view.hpp). Such an index takes vectors of any dtype but none from files, and copies rows that it was
  // told to borrow; so it does with any f64 rows.
  //
  // Returns when the rows are searchable. Concurrent calls take turns. A progress or log sink may search the index
  // during the call; adding to it from there is InvalidState.
  void add(const MatrixView& rows, Ownership ownership = Ownership::copy, const Resources& resources = Resources());
  // The same with the caller's ids, one per row, 0 or more. If one of them exists already or occurs twice, the call is
  // InvalidArgument and nothing is added.
  void add(const MatrixView& rows, VectorView<const int64_t> ids, Ownership ownership = Ownership::copy,
           const Resources& resources = Resources());
  // The first vectors of a graph index ("Graph32") when their neighbours are known: `start` is knn_graph() of these
  // rows by the index's metric (l2 and sqeuclidean are interchangeable), and the build picks from its neighbours
  // instead of searching for them. It wants 96 neighbours per row, or twice the degree if that is more, and warns about
  // fewer. `ids` may be empty. InvalidArgument if `start` is a graph of other rows, which is detected by their number
  // and by the distances of a sample; Unsupported for inner_product and for other kinds of index.
  void add(const MatrixView& rows, VectorView<const int64_t> ids, const KnnGraph& start,
           const Resources& resources = Resources());
  // All rows of a file, which may be larger than the memory limit, or none of them. `ids` may be empty.
  void add(const VectorFile& rows, VectorView<const int64_t> ids = {}, const Resources& resources = Resources());

  // add(rows, ids) that first removes the vectors which have these ids, in one step: a search sees either the old or
  // the new ones. The new vectors come last in the order of add. Returns how many were removed. May compact, as
  // remove().
  int64_t replace(const MatrixView& rows, VectorView<const int64_t> ids, const Resources& resources = Resources());
  int64_t replace(const VectorFile& rows, VectorView<const int64_t> ids, const Resources& resources = Resources());

  // Returns how many vectors were removed; unknown ids are ignored. The remaining rows close up: size() shrinks, and
  // masks refer to the remaining rows. A removed id may be added again, but the index does not assign it. Removal only
  // marks, with one bit per row; once a fifth of all rows are marked, the index compacts itself if the memory limit has
  // room for it.
  int64_t remove(VectorView<const int64_t> ids, const Resources& resources = Resources());

  // Frees the memory of removed rows by copying the remaining ones, so that searches need not skip them any more. Does
  // not change results.
  void compact(const Resources& resources = Resources());

  // Appends all vectors of another index of the same training: copies of one trained index, for instance, each filled
  // with a part of the data. Their order and ids stay; an id that both have is InvalidArgument, unless
  // params.shift_ids. InvalidArgument too if metric, centres, codes or transforms differ. Adds all or none; `other`
  // does not change.
  void merge(const Index& other, const MergeParams& params = {}, const Resources& resources = Resources());

  // A new index that shares all vectors with this one and runs on `device`, unless a call's resources name another.
  // Later adds and removals in one are not seen by the other. Vectors in the memory of a GPU that will not search them
  // are copied to the host; otherwise memory on `device` is taken at the first search there.
  Index to(Device device, const Resources& resources = Resources()) const;
  // The same for several devices, or parts of one, which share the searches (docs/scaling.md).
  Index to(const IndexPlacement& placement, const Resources& resources = Resources()) const;
  Device runs_on() const;            // the device given to to(), the first of several; automatic before
  IndexPlacement placement() const;  // the placement given to to(), copies filled in; one device and one copy before
  // A new index that shares all vectors with this one and runs in the same place; adds and removals in one are not seen
  // by the other.
  Index clone(const Resources& resources = Resources()) const { return to(placement(), resources); }

  // The stored vectors of these ids, decoded, with reversible transforms undone: ids x dimension(), f32 or f64 in host
  // memory. An unknown id is InvalidArgument.
  void reconstruct(VectorView<const int64_t> ids, const MutableMatrixView& out,
                   const Resources& resources = Resources()) const;

  // search(queries, {.k = 10, .filter = filter}).
  Neighbors search(const MatrixView& queries, const SearchParams& params = {},
                   const Resources& resources = Resources()) const;
  // The same into the caller's arrays, whose k must be that of the params.
  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources = Resources()) const;

  // All rows within a radius: range_search(queries, {.radius = 0.5f}).
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources = Resources()) const;

  // Measures searches with various parameters (Graph: beam, width and refine; lists: probes; refine if the index can)
  // against exact search of the stored vectors. The index keeps the table for searches that ask for a recall, until the
  // next tune() or train(). The choice depends on recalls and numbers of comparisons, so it is the same on every
  // device. Give queries like those to come; at least one query and one vector.
  TuneReport tune(const MatrixView& queries, const TuneParams& params = {}, const Resources& resources = Resources());

  int64_t size() const;
  // The ids of all vectors, in the order of add: size() values of int64.
  HostBuffer ids(const Resources& resources = Resources()) const;
  bool contains(int64_t id) const;
  int64_t dimension() const;  // 0 before the first add or train
  // Where the rows or codes are stored: a GPU, or cpu, also if they are in several places; automatic before the first
  // add.
  Device device() const;
  IndexBytes bytes() const;
  IndexInfo info() const;
  // The value of each column that is subtracted from vectors and queries before they become f32; empty: none.
  std::vector<double> offset() const;
  const std::string& factory() const;
  const IndexParams& params() const;

  // The edges of a graph index ("Graph32") between its rows, in the order of add, as save() writes them. Rows added
  // since the graph was built have none, nor has any row of an index below 4,096. Unsupported for other kinds.
  IndexEdges edges(const Resources& resources = Resources()) const;

  // Saves the current version to a .kith file (docs/file-formats.md), written under a temporary name and renamed.
  void save(const std::string& path, const Resources& resources = Resources()) const;
  // Writes the file that save() would write after add(rows, ids), even if the index would exceed the memory limit:
  // codes go to unnamed temporary files beside it, which are then merged. The index itself does not change, and may be
  // one that lies on disk. The contents of a graph index must fit in memory.
  void save_added(const VectorFile& rows, VectorView<const int64_t> ids, const std::string& path,
                  const Resources& resources = Resources()) const;
  // InvalidArgument for a file that is no such index, CorruptFile for a damaged one.
  static Index load(const std::string& path, const Resources& resources = Resources());
  // The path may be a pattern, as in VectorFile: several files of one training become one index, their rows one after
  // the other; InvalidArgument if they were trained differently. If no file has ids other than row numbers, vectors are
  // numbered consecutively; otherwise all keep their ids, and a duplicate is InvalidArgument. An index on disk returns
  // the same results as in memory, but is read-only: train(), add(), remove() and merge() are InvalidState. save()
  // writes it as one file.
  static Index load(const std::string& path, const LoadParams& params, const Resources& resources = Resources());
  static Index load(const std::vector<std::string>& files, const LoadParams& params,
                    const Resources& resources = Resources());
  // Writes the file that merging them one by one would give, without loading all vectors at once. Unsupported for graph
  // indexes.
  static void merge_files(const std::vector<std::string>& files, const std::string& path,
                          const MergeParams& params = {}, const Resources& resources = Resources());

 private:
  friend class IndexAccess;
  struct Impl;
  explicit Index(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

}  // namespace kith
