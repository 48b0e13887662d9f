// A collection: vectors with ids, columns and payloads in a directory that survives a crash.
//
// SQLite (collection.sqlite) stores ids, columns, payloads, the list of segments and the newest vectors; immutable
// .kith files (segments/) store all other vectors. Indexes are derived from these and may be deleted. The schema is in
// docs/collection-schema.md.
//
// A call that changes the collection is one transaction: it is on disk when the call returns, and after a crash it has
// happened completely or not at all. One handle at a time may write, any number may read, in this and other processes.
// The reads of a handle see one version: a writer's advances with its writes, a reader's with refresh(). All calls are
// safe from many threads; writes of one handle take turns. A forked child may read, but not write.
//
// This header belongs to a library of its own: kith::collection in CMake, kith-collection in pkg-config.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/host_buffer.hpp>
#include <kith/index.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kith {

// boolean values are true and false. json is any JSON text; it is checked when it is added.
enum class ColumnType : uint8_t { integer, real, text, boolean, json };

KITH_EXPORT std::string_view name_of(ColumnType type);
// "int", "real", "text", "bool", "json"; also "integer", "float", "str", "boolean". InvalidArgument listing the names.
KITH_EXPORT ColumnType parse_column_type(std::string_view name);

struct Column {
  std::string name;  // letters, digits and underscores, beginning with a letter; not "id"
  ColumnType type = ColumnType::text;
  bool indexed = false;  // with an index as create_index() makes

  bool operator==(const Column&) const = default;
};

// The value of a column, or of a parameter in a `where`. std::monostate is SQL's NULL; json values are std::string.
using ColumnValue = std::variant<std::monostate, int64_t, double, bool, std::string>;

enum class IdType : uint8_t { integer, text };

// Ids of items: all integers, or all texts.
class ItemIds {
 public:
  ItemIds() = default;
  ItemIds(std::initializer_list<int64_t> numbers) : ids_(std::vector<int64_t>(numbers)) {}
  ItemIds(std::vector<int64_t> numbers) : ids_(std::move(numbers)) {}   // NOLINT(google-explicit-constructor)
  ItemIds(std::vector<std::string> texts) : ids_(std::move(texts)) {}  // NOLINT(google-explicit-constructor)

  IdType type() const { return ids_.index() == 0 ? IdType::integer : IdType::text; }
  int64_t size() const {
    return static_cast<int64_t>(type() == IdType::integer ? numbers().size() : texts().size());
  }
  bool empty() const { return size() == 0; }
  // Call the one that matches type().
  const std::vector<int64_t>& numbers() const { return std::get<0>(ids_); }
  const std::vector<std::string>& texts() const { return std::get<1>(ids_); }

  bool operator==(const ItemIds&) const = default;

 private:
  std::variant<std::vector<int64_t>, std::vector<std::string>> ids_;
};

// The values of one column, one per item.
struct ColumnValues {
  std::string name;
  std::vector<ColumnValue> values;
};

// Items to add: `vectors` in host memory, and the values that belong to each of its rows.
struct Items {
  MatrixView vectors;  // of the collection's dtype, or one that can be converted or rounded to it
  ItemIds ids;         // empty: consecutive integers above all earlier ids; only if the collection's ids are integers
  std::vector<ColumnValues> columns;  // columns left out have no value
  std::vector<std::string> payloads;  // bytes that Kith does not interpret; empty: none
};

// The result of get(), in the order of the requested ids.
struct ItemTable {
  ItemIds ids;
  MatrixBuffer vectors;               // of the collection's dtype
  std::vector<ColumnValues> columns;  // all columns of the collection, in their order
  std::vector<std::string> payloads;  // one per item
};

// The items that meet all given conditions; without conditions, all items.
struct ItemFilter {
  // An SQLite expression over the columns and id: "year > ? and genre = ?". It is evaluated read-only and in isolation:
  // it sees no other table and cannot write, attach or load anything. InvalidArgument quotes SQLite's message and
  // position.
  std::string where;
  std::vector<ColumnValue> params;
  // In searches, instead of `params`: one list per query.
  std::vector<std::vector<ColumnValue>> params_of_queries;
  std::optional<ItemIds> ids;  // ids that the collection does not have are ignored
  // One byte for each of the view's size() items, in the order of add, which is that of ids().
  std::optional<std::span<const uint8_t>> mask;
  // InvalidState if the expression takes longer.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
};

struct CollectionSearchParams {
  // k, and the parameters of the collection's index (probes, beam, width, refine, recall) for segments that have one.
  // filter and refine_from are not allowed.
  SearchParams search;
  ItemFilter filter;
};

struct CollectionRangeParams {
  float radius = 0;    // inclusive, in the metric's unit
  int64_t probes = 0;  // as in RangeSearchParams
  ItemFilter filter;
};

// The nearest items of each query. If ids are texts, `neighbors` has numbers in the order of add instead, -1 for none,
// and `texts` has queries x k ids, empty for none.
struct CollectionNeighbors {
  Neighbors neighbors;
  std::vector<std::string> texts;
};

struct CollectionRange {
  RangeNeighbors neighbors;
  std::vector<std::string> texts;  // as in CollectionNeighbors, one per result
};

struct CollectionParams {
  int64_t dimension = 0;
  Metric metric = Metric::l2;
  DType dtype = DType::f32;  // of the stored vectors; not f64
  IdType ids = IdType::integer;
  std::vector<Column> columns;
  // The index that compact() builds for segments of 65,536 rows or more, as a factory string; "Flat" for none.
  std::string index = "Flat";

  KITH_EXPORT void validate() const;
};

enum class OpenMode : uint8_t { write, read };

// When a write is on disk. now: before the call returns. later: when SQLite next checkpoints its log; a crash may lose
// the newest writes, but keeps their order and never half of one.
enum class SyncMode : uint8_t { now, later };

struct OpenParams {
  OpenMode mode = OpenMode::write;
  // How long to wait for another writer to close, before InvalidState that names it.
  std::chrono::milliseconds timeout = std::chrono::seconds(0);
  SyncMode sync = SyncMode::now;
};

// A segment, as info() lists it.
struct CollectionSegment {
  std::string file;   // in the collection's directory
  int64_t rows = 0;   // stored rows, removed ones included
  int64_t removed = 0;
  int64_t bytes = 0;
  std::string index;       // factory string; empty: none, so that the segment is searched exactly
  std::string index_file;  // empty: none
};

struct CollectionInfo {
  std::string path;
  CollectionParams params;
  int64_t version = 0;
  int64_t size = 0;
  int64_t newest = 0;       // rows in SQLite
  int64_t removed = 0;      // rows that are stored but removed
  int64_t not_indexed = 0;  // rows without an index, removed ones not counted
  int64_t bytes_on_disk = 0;
  std::vector<CollectionSegment> segments;
};

struct VerifyProblem {
  std::string file;
  std::string reason;
};

struct VerifyReport {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t items = 0;
  std::vector<VerifyProblem> problems;  // empty: everything is as it was written

  bool sound() const { return problems.empty(); }
};

// A read-only view of one version of a collection, which later writes do not change. Copies share it. It may outlive
// the Collection; `where` and get() read from the directory.
class KITH_EXPORT CollectionView {
 public:
  int64_t version() const;
  int64_t size() const;
  const CollectionParams& params() const;

  bool contains(const ItemIds& ids) const;  // whether it contains all of them
  std::vector<bool> contains_each(const ItemIds& ids) const;
  // In the order of add.
  ItemIds ids(const ItemFilter& filter = {}, const Resources& resources = Resources()) const;
  // InvalidArgument that names an id which does not exist.
  ItemTable get(const ItemIds& ids, const Resources& resources = Resources()) const;
  int64_t count(const ItemFilter& filter = {}, const Resources& resources = Resources()) const;

  // The first k by (distance, order of add) of the merged results of all indexes, and of exact search in the newest
  // rows and in segments without an index. Never fewer than min(k, items that the filter keeps).
  CollectionNeighbors search(const MatrixView& queries, const CollectionSearchParams& params = {},
                             const Resources& resources = Resources()) const;
  CollectionRange range_search(const MatrixView& queries, const CollectionRangeParams& params,
                               const Resources& resources = Resources()) const;

 private:
  friend class Collection;
  friend class CollectionAccess;
  struct Impl;
  explicit CollectionView(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

class CollectionBatch;

// A handle; copies share it. Errors are those of kith/error.hpp and name the file: IoError if the system refuses (a
// full disk, a failed sync, a read-only folder), CorruptFile for damage, Unsupported for another version of the schema
// and for network file systems, InvalidState for a second writer. After an error the collection is unchanged. After a
// failed sync the handle can still read, but not write; open the collection again.
class KITH_EXPORT Collection {
 public:
  // Creates the directory and opens it for writing. It must be new, empty, or the remains of a create() that was
  // killed.
  static Collection create(const std::string& path, const CollectionParams& params, const OpenParams& open = {},
                           const Resources& resources = Resources());
  static Collection open(const std::string& path, const OpenParams& params = {},
                         const Resources& resources = Resources());
  // Whether there is a collection at this path, damaged or not.
  static bool exists(const std::string& path);

  const std::string& path() const;
  OpenMode mode() const;
  bool closed() const;
  CollectionParams params() const;  // including columns that were added later
  int64_t version() const;
  int64_t size() const;
  CollectionInfo info(const Resources& resources = Resources()) const;

  // A view of this handle's current version.
  CollectionView view() const;
  // Advances to the newest version; returns whether there was a newer one.
  bool refresh(const Resources& resources = Resources());

  // Adds all items or none, and returns their ids. InvalidArgument for an id that exists already or occurs twice.
  ItemIds add(const Items& items, const Resources& resources = Resources());
  // The same, replacing existing items with these ids completely. If an id occurs twice, its last item
  // counts.
  ItemIds upsert(const Items& items, const Resources& resources = Resources());
  // Returns how many were removed; unknown ids are ignored. An empty filter removes nothing.
  int64_t remove(const ItemIds& ids, const Resources& resources = Resources());
  int64_t remove(const ItemFilter& filter, const Resources& resources = Resources());

  // Makes the following calls of this handle, also from other threads, one transaction, until the batch is committed or
  // destroyed. Reads see the version before. Until then fold(), compact(), reindex(), add_column(), create_index() and
  // another batch() are InvalidState.
  CollectionBatch batch();

  // As in CollectionView, at this handle's version.
  bool contains(const ItemIds& ids) const { return view().contains(ids); }
  ItemIds ids(const ItemFilter& filter = {}, const Resources& resources = Resources()) const {
    return view().ids(filter, resources);
  }
  ItemTable get(const ItemIds& ids, const Resources& resources = Resources()) const {
    return view().get(ids, resources);
  }
  int64_t count(const ItemFilter& filter = {}, const Resources& resources = Resources()) const {
    return view().count(filter, resources);
  }
  CollectionNeighbors search(const MatrixView& queries, const CollectionSearchParams& params = {},
                             const Resources& resources = Resources()) const {
    return view().search(queries, params, resources);
  }
  CollectionRange range_search(const MatrixView& queries, const CollectionRangeParams& params,
                               const Resources& resources = Resources()) const {
    return view().range_search(queries, params, resources);
  }

  // Existing items have no value in it. Does nothing if there is such a column of this type already.
  void add_column(const Column& column, const Resources& resources = Resources());
  // An SQLite index, so that a `where` on this column need not visit every item.
  void create_index(const std::string& column, const Resources& resources = Resources());

  // Moves the newest rows to a segment, and rewrites segments of which most rows are removed, up to 256 MiB per call.
  // add() and upsert() fold by themselves at 64 MiB of newest rows, close() at 4 MiB.
  void fold(const Resources& resources = Resources());
  // Rewrites everything as one segment without removed rows, with the collection's index if it has 65,536 rows or more.
  void compact(const Resources& resources = Resources());
  // Changes the collection's index and builds it for the existing segments; "Flat" for none.
  void reindex(const std::string& factory, const Resources& resources = Resources());

  // Checks the hashes of all files and items, and runs SQLite's integrity check.
  VerifyReport verify(const Resources& resources = Resources()) const;
  // Makes a consistent copy in a new directory, also while others write: SQLite's backup, and hard links to the
  // segments, or copies on another file system.
  void snapshot(const std::string& path, const Resources& resources = Resources()) const;

  // Folds if there is much to fold, and releases the write lock. Later calls are InvalidState; views stay valid. The
  // last copy of a handle closes it too, but cannot report an error.
  void close(const Resources& resources = Resources());

 private:
  friend class CollectionBatch;
  friend class CollectionAccess;
  struct Impl;
  explicit Collection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// A transaction over several calls; without commit() its destructor undoes them.
class KITH_EXPORT CollectionBatch {
 public:
  ~CollectionBatch();
  CollectionBatch(CollectionBatch&&) noexcept;
  CollectionBatch& operator=(CollectionBatch&&) noexcept;

  void commit(const Resources& resources = Resources());
  void undo();

 private:
  friend class Collection;
  struct Impl;
  explicit CollectionBatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith
