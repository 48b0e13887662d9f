// A collection: vectors with ids, columns and payloads in a directory that survives a crash.
//
// SQLite (collection.sqlite) holds ids, columns, payloads, the list of segments and the newest vectors; immutable .kith
// files (segments/) hold the other vectors. These are the truth; indexes are derived from them, and may be deleted.
// docs/collection-schema.md has the schema.
//
// A call that changes the collection is one transaction: when it returns it is on the disk, and after a crash it is
// there in full or not at all. One handle writes at a time, any number read, in this process and in others. Each handle
// has a version, which its reads see: a writer's moves with its writes, a reader's with refresh(). All calls are safe
// from many threads; writes of one handle take turns. A forked child may read, but not write.
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

// boolean values are true and false; json is any JSON text, checked when it is added.
enum class ColumnType : uint8_t { integer, real, text, boolean, json };

KITH_EXPORT std::string_view name_of(ColumnType type);
// "int", "real", "text", "bool", "json"; also "integer", "float", "str", "boolean". InvalidArgument listing the names.
KITH_EXPORT ColumnType parse_column_type(std::string_view name);

struct Column {
  std::string name;  // letters, digits and underscores, beginning with a letter; not "id"
  ColumnType type = ColumnType::text;
  bool indexed = false;  // as create_index() does

  bool operator==(const Column&) const = default;
};

// A value of a column, or a parameter of a `where`. Nothing is SQL's NULL; a json value is a std::string.
using ColumnValue = std::variant<std::monostate, int64_t, double, bool, std::string>;

enum class IdType : uint8_t { integer, text };

// The ids of some items: all integers, or all texts.
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
  // The ids, by the function that type() names.
  const std::vector<int64_t>& numbers() const { return std::get<0>(ids_); }
  const std::vector<std::string>& texts() const { return std::get<1>(ids_); }

  bool operator==(const ItemIds&) const = default;

 private:
  std::variant<std::vector<int64_t>, std::vector<std::string>> ids_;
};

// The values of one column, one for each item.
struct ColumnValues {
  std::string name;
  std::vector<ColumnValue> values;
};

// What is added: `vectors` in host memory, and what belongs to each of its rows.
struct Items {
  MatrixView vectors;  // of the collection's dtype, or of one that converts to it without loss or by rounding
  ItemIds ids;         // empty: the collection gives integers behind all that it ever had, if its ids are integers
  std::vector<ColumnValues> columns;  // columns that are not named have no value
  std::vector<std::string> payloads;  // bytes that Kith does not look into; empty: none
};

// What get() returns, in the order of the ids that were asked for.
struct ItemTable {
  ItemIds ids;
  MatrixBuffer vectors;               // of the collection's dtype
  std::vector<ColumnValues> columns;  // all of the collection, in their order
  std::vector<std::string> payloads;  // one for each item
};

// Which items a call is about: those that all given conditions keep; without any, all.
struct ItemFilter {
  // An expression of SQLite over the columns and id: "year > ? and genre = ?". It runs read-only and by itself: it sees
  // no other table, and cannot write, attach, or load anything. InvalidArgument has SQLite's words and the place.
  std::string where;
  std::vector<ColumnValue> params;
  // Instead of `params`, in searches: one list for each query.
  std::vector<std::vector<ColumnValue>> params_of_queries;
  std::optional<ItemIds> ids;  // ids that the collection does not have are passed over
  // One byte for each of the view's size() items, in the order in which they were added, which is that of ids().
  std::optional<std::span<const uint8_t>> mask;
  // An expression that takes longer is InvalidState.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
};

struct CollectionSearchParams {
  // k and the parameters of the collection's indexes (probes, beam, width, refine, recall), for segments that have
  // one; filter and refine_from must be left out.
  SearchParams search;
  ItemFilter filter;
};

struct CollectionRangeParams {
  float radius = 0;   // in the metric's unit, and included
  int64_t probes = 0;  // as in RangeSearchParams
  ItemFilter filter;
};

// For each query the nearest items. Where ids are texts, `neighbors` has the numbers in which items were added, -1 for
// none, and `texts` the ids: queries x k of them, empty for none.
struct CollectionNeighbors {
  Neighbors neighbors;
  std::vector<std::string> texts;
};

struct CollectionRange {
  RangeNeighbors neighbors;
  std::vector<std::string> texts;  // as in CollectionNeighbors: one for each row found
};

struct CollectionParams {
  int64_t dimension = 0;
  Metric metric = Metric::l2;
  DType dtype = DType::f32;  // in which vectors are stored; not f64
  IdType ids = IdType::integer;
  std::vector<Column> columns;
  // What compact() builds for segments of 65,536 rows or more: a factory string of Index, or "Flat" for none.
  std::string index = "Flat";

  KITH_EXPORT void validate() const;
};

enum class OpenMode : uint8_t { write, read };

// When a write that returned is on the disk. later: when SQLite next writes its log back; a crash may lose the newest
// writes, but neither their order nor their wholeness.
enum class SyncMode : uint8_t { now, later };

struct OpenParams {
  OpenMode mode = OpenMode::write;
  // How long to wait for another writer to close; then InvalidState that names it.
  std::chrono::milliseconds timeout = std::chrono::seconds(0);
  SyncMode sync = SyncMode::now;
};

// A segment, as info() lists it.
struct CollectionSegment {
  std::string file;   // in the collection's directory
  int64_t rows = 0;   // stored ones
  int64_t removed = 0;
  int64_t bytes = 0;
  std::string index;       // its factory string; empty: none, searched exactly
  std::string index_file;  // empty: none
};

struct CollectionInfo {
  std::string path;
  CollectionParams params;
  int64_t version = 0;
  int64_t size = 0;
  int64_t newest = 0;       // rows that lie in SQLite
  int64_t removed = 0;      // rows that are stored, but not found any more
  int64_t not_indexed = 0;  // living rows that no index covers
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
  std::vector<VerifyProblem> problems;  // none: all is as it was written

  bool sound() const { return problems.empty(); }
};

// Reads of one version of a collection, which they go on seeing whatever is written. Copies share it. It may outlive the
// Collection; what `where` and get() ask for comes from the directory.
class KITH_EXPORT CollectionView {
 public:
  int64_t version() const;
  int64_t size() const;
  const CollectionParams& params() const;

  bool contains(const ItemIds& ids) const;  // all of them
  // For each id whether it is there.
  std::vector<bool> contains_each(const ItemIds& ids) const;
  // In the order in which they were added.
  ItemIds ids(const ItemFilter& filter = {}, const Resources& resources = Resources()) const;
  // InvalidArgument that names an id which is not there.
  ItemTable get(const ItemIds& ids, const Resources& resources = Resources()) const;
  int64_t count(const ItemFilter& filter = {}, const Resources& resources = Resources()) const;

  // The first k by (distance, order of add) of what exact search of the newest rows and of each segment without an
  // index, and each index, find. Never fewer than min(k, kept) items.
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

// A handle; copies share it. Errors are those of kith/error.hpp, and name the file: IoError where the system refuses (a
// full disk, a failed sync, a read-only folder), CorruptFile for damage, Unsupported for another version of the schema
// and for network file systems, InvalidState for a second writer. After one, what was there before is there still;
// after a failed sync the handle reads, but writes no more: open it again.
class KITH_EXPORT Collection {
 public:
  // Makes the directory, which must be new, empty, or what a create() that was killed has left, and opens it to write.
  static Collection create(const std::string& path, const CollectionParams& params, const OpenParams& open = {},
                           const Resources& resources = Resources());
  static Collection open(const std::string& path, const OpenParams& params = {},
                         const Resources& resources = Resources());
  // Whether a collection is there; it may be damaged.
  static bool exists(const std::string& path);

  const std::string& path() const;
  OpenMode mode() const;
  bool closed() const;
  CollectionParams params() const;  // with columns that were added later
  int64_t version() const;
  int64_t size() const;
  CollectionInfo info(const Resources& resources = Resources()) const;

  // The version that this handle is at, to compute with.
  CollectionView view() const;
  // To the newest version; returns whether there was one.
  bool refresh(const Resources& resources = Resources());

  // All of them or none. Returns their ids. InvalidArgument for an id that is there, or twice among these.
  ItemIds add(const Items& items, const Resources& resources = Resources());
  // The same, in the place of items with these ids, of which nothing stays. Of an id that is twice among these the last
  // counts.
  ItemIds upsert(const Items& items, const Resources& resources = Resources());
  // Returns how many there were; ids that are not there are no error. An empty filter removes nothing.
  int64_t remove(const ItemIds& ids, const Resources& resources = Resources());
  int64_t remove(const ItemFilter& filter, const Resources& resources = Resources());

  // Makes the calls of this handle that follow one transaction, until the batch is committed or goes. Calls of other
  // threads are part of it; reads see what was there before. fold(), compact(), reindex(), add_column() and
  // create_index() are InvalidState meanwhile, as is another batch.
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

  // Columns that are there already with this type are left as they are. Items that are there have no value.
  void add_column(const Column& column, const Resources& resources = Resources());
  // An index of SQLite, so that a `where` by this column need not look at every item.
  void create_index(const std::string& column, const Resources& resources = Resources());

  // The newest rows become a segment, and segments with more removed rows than others are written anew without them, up
  // to 256 MiB a call. add() and upsert() do so by themselves at 64 MiB of newest rows, close() at 4 MiB.
  void fold(const Resources& resources = Resources());
  // One segment of all rows, without the removed ones, with the collection's index if it has 65,536 rows or more.
  void compact(const Resources& resources = Resources());
  // Another index from now on, built for the segments that are there: "Flat" for none.
  void reindex(const std::string& factory, const Resources& resources = Resources());

  // Hashes all files and items, and runs SQLite's own check.
  VerifyReport verify(const Resources& resources = Resources()) const;
  // A consistent copy in a new directory, while others write: SQLite's backup, and segments as hard links, or as copies
  // on another file system.
  void snapshot(const std::string& path, const Resources& resources = Resources()) const;

  // Folds where much waits, and gives the write lock back. Calls afterwards are InvalidState; views go on. The last copy
  // of a handle closes it too, but cannot report an error.
  void close(const Resources& resources = Resources());

 private:
  friend class CollectionBatch;
  friend class CollectionAccess;
  struct Impl;
  explicit Collection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// A transaction over several calls. What goes without commit() is undone.
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
