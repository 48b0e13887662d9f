#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/collection_access.hpp"
#include "collection/host_limit.hpp"
#include "collection/item_table.hpp"
#include "collection/maintenance.hpp"
#include "collection/search.hpp"
#include "collection/state.hpp"
#include "collection/where.hpp"
#include "collection/write_lock.hpp"
#include "collection/writer.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace kith {

struct CollectionView::Impl {
  StatePointer state;
};

struct Collection::Impl {
  std::shared_ptr<CollectionDirectory> directory;
  OpenMode mode = OpenMode::read;
  bool mapped = true;
  std::unique_ptr<CollectionWriter> writer;  // null: it reads
  mutable std::mutex mutex;
  StatePointer state;  // of a reader
  bool closed = false;

  ~Impl() {
    try {
      close(Resources());
    } catch (const Error&) {  // close() reports it
    }
  }
  StatePointer current() const {
    const std::lock_guard lock(mutex);
    return writer ? writer->state() : state;
  }
  CollectionWriter& writing() const {
    const std::lock_guard lock(mutex);
    if (closed) throw InvalidState(fmt::format("'{}' was closed; open it again", directory->path()));
    if (!writer) throw InvalidState(fmt::format("'{}' was opened to read; open it with mode write", directory->path()));
    return *writer;
  }
  void close(const Resources& resources) {
    {
      const std::lock_guard lock(mutex);
      if (closed) return;
      closed = true;
    }
    if (writer) writer->close(resources);  // it stays: other threads may be on their way into it
  }
};

struct CollectionBatch::Impl {
  std::shared_ptr<Collection::Impl> collection;
};

namespace {

void check_there(const CollectionDirectory& directory) {
  if (directory.disk().exists(directory.database())) return;
  throw IoError(fmt::format("there is no collection in '{}' (no file {}); make one with create()", directory.path(),
                            kDatabaseName), directory.database(), ENOENT);
}

// Whether the folder is read-only: then the database is opened as immutable, if its log is empty.
bool must_be_immutable(const CollectionDirectory& directory, const Resources& resources) {
  Disk& disk = directory.disk();
  try {
    const Database db(directory.database(), Database::Open::read, directory.environment().vfs, resources);
    (void)db.number("SELECT version FROM state");
    return false;
  } catch (const IoError& error) {
    // SQLite names the first file that it could not make or write: its log, or that log's index.
    constexpr int kReasons[] = {EROFS, EACCES, EPERM, ENOENT, EIO};
    if (std::find(std::begin(kReasons), std::end(kReasons), error.code()) == std::end(kReasons)) throw;
  }
  const std::string log = directory.database() + "-wal";
  if (disk.exists(log) && disk.open(log)->size() > 0) {
    throw IoError(fmt::format("'{}' cannot be written, and holds a log that is not finished ({}-wal): a writer did not "
                              "close the collection; open it once where it can be written", directory.path(),
                              kDatabaseName), log, EROFS);
  }
  return true;
}

StatePointer load_and_pin(const std::shared_ptr<CollectionDirectory>& directory, const StatePointer& before, bool mapped,
                          const Resources& resources) {
  for (StatePointer known = before;;) {
    StatePointer state = directory->reading([&](Database& db) {
      const DatabaseMemory counted(db, resources);
      if (known == nullptr) check_schema(db);
      return load_state(db, directory, known, mapped, resources);
    });
    if (state == known && state->held()) return state;
    state->hold(directory->pin(state->version));
    // A writer that has begun to forget before the pin was there is seen here.
    const int64_t oldest = directory->reading([](Database& db) { return read_counters(db).oldest; });
    if (oldest <= state->version) return state;
    known = state;
  }
}

}  // namespace

Collection CollectionAccess::create(const std::string& path, const CollectionParams& params, const OpenParams& open,
                                    const CollectionEnvironment& environment, const Resources& resources) {
  params.validate();
  if (open.mode == OpenMode::read) throw InvalidArgument("a new collection is opened to write");
  const CollectionDirectory directory(path, environment, false);
  create_directory(directory, params);
  if (environment.disk == &real_disk()) refuse_network(path);
  return CollectionAccess::open(path, open, environment, resources);
}

Collection CollectionAccess::open(const std::string& path, const OpenParams& params,
                                  const CollectionEnvironment& environment, const Resources& resources) {
  auto impl = std::make_shared<Collection::Impl>();
  impl->mode = params.mode;
  impl->mapped = !is_limited(resources);
  impl->directory = std::make_shared<CollectionDirectory>(path, environment, false);
  check_there(*impl->directory);
  if (params.mode == OpenMode::write) {
    if (environment.disk == &real_disk()) refuse_network(path);
    std::unique_ptr<DiskLock> lock = take_write_lock(*impl->directory, params.timeout, resources);
    impl->writer =
        std::make_unique<CollectionWriter>(impl->directory, std::move(lock), params, impl->mapped, resources);
  } else {
    if (must_be_immutable(*impl->directory, resources)) {
      impl->directory = std::make_shared<CollectionDirectory>(path, environment, true);
    }
    impl->state = load_and_pin(impl->directory, nullptr, impl->mapped, resources);
  }
  return Collection(std::move(impl));
}

Collection Collection::create(const std::string& path, const CollectionParams& params, const OpenParams& open,
                              const Resources& resources) {
  return CollectionAccess::create(path, params, open, {}, resources);
}

Collection Collection::open(const std::string& path, const OpenParams& params, const Resources& resources) {
  return CollectionAccess::open(path, params, {}, resources);
}

bool Collection::exists(const std::string& path) { return real_disk().exists(path + "/" + kDatabaseName); }

const std::string& Collection::path() const { return impl_->directory->path(); }
OpenMode Collection::mode() const { return impl_->mode; }

bool Collection::closed() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->closed;
}

CollectionParams Collection::params() const { return *impl_->current()->params; }
int64_t Collection::version() const { return impl_->current()->version; }
int64_t Collection::size() const { return impl_->current()->size; }

CollectionView Collection::view() const {
  auto view = std::make_shared<CollectionView::Impl>();
  view->state = impl_->current();
  if (closed()) throw InvalidState(fmt::format("'{}' was closed; open it again", path()));
  return CollectionView(std::move(view));
}

bool Collection::refresh(const Resources& resources) {
  if (closed()) throw InvalidState(fmt::format("'{}' was closed; open it again", path()));
  if (impl_->mode == OpenMode::write) return false;  // there is no other writer
  const StatePointer before = impl_->current();
  StatePointer next = load_and_pin(impl_->directory, before, impl_->mapped, resources);
  const bool changed = next != before;
  const std::lock_guard lock(impl_->mutex);
  impl_->state = std::move(next);
  return changed;
}

CollectionInfo Collection::info(const Resources&) const {
  const StatePointer state = impl_->current();
  const CollectionDirectory& directory = *impl_->directory;
  CollectionInfo info;
  info.path = directory.path();
  info.params = *state->params;
  info.version = state->version;
  info.size = state->size;
  for (size_t p = 0; p < state->parts.size(); ++p) {
    const StatePart& part = state->parts[p];
    const int64_t dead = part.rows->size() - part.living();
    info.removed += dead;
    if (!part.segment) {
      info.newest += part.living();
      info.not_indexed += part.living();
      continue;
    }
    const SegmentRow& entry = part.segment->entry();
    if (entry.index_file.empty()) info.not_indexed += part.living();
    info.segments.push_back({std::string(kSegmentsName) + "/" + entry.file, entry.rows, dead, entry.bytes + entry.index_bytes,
                             entry.index_factory,
                             entry.index_file.empty() ? "" : std::string(kSegmentsName) + "/" + entry.index_file});
    info.bytes_on_disk += entry.bytes + entry.index_bytes;
  }
  for (const char* ending : {"", "-wal"}) {
    const std::string file = directory.database() + ending;
    if (directory.disk().exists(file)) info.bytes_on_disk += directory.disk().open(file)->size();
  }
  return info;
}

ItemIds Collection::add(const Items& items, const Resources& resources) {
  return impl_->writing().add(items, false, resources);
}

ItemIds Collection::upsert(const Items& items, const Resources& resources) {
  return impl_->writing().add(items, true, resources);
}

int64_t Collection::remove(const ItemIds& ids, const Resources& resources) {
  return impl_->writing().remove(ids, resources);
}

int64_t Collection::remove(const ItemFilter& filter, const Resources& resources) {
  return impl_->writing().remove(filter, resources);
}

CollectionBatch Collection::batch() {
  impl_->writing().begin_batch();
  auto batch = std::make_unique<CollectionBatch::Impl>();
  batch->collection = impl_;
  return CollectionBatch(std::move(batch));
}

void Collection::add_column(const Column& column, const Resources& resources) {
  impl_->writing().add_column(column, resources);
}

void Collection::create_index(const std::string& column, const Resources& resources) {
  impl_->writing().create_index(column, resources);
}

void Collection::fold(const Resources& resources) { impl_->writing().fold(resources); }
void Collection::compact(const Resources& resources) { impl_->writing().compact(resources); }

void Collection::reindex(const std::string& factory, const Resources& resources) {
  impl_->writing().reindex(factory, resources);
}

VerifyReport Collection::verify(const Resources& resources) const { return verify_state(*view().impl_->state, resources); }

void Collection::snapshot(const std::string& path, const Resources& resources) const {
  if (closed()) throw InvalidState(fmt::format("'{}' was closed; open it again", impl_->directory->path()));
  snapshot_directory(*impl_->directory, path, resources);
}

void Collection::close(const Resources& resources) { impl_->close(resources); }

CollectionBatch::CollectionBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CollectionBatch::CollectionBatch(CollectionBatch&&) noexcept = default;

CollectionBatch& CollectionBatch::operator=(CollectionBatch&& other) noexcept {
  if (this != &other) {
    undo();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

CollectionBatch::~CollectionBatch() { undo(); }

void CollectionBatch::commit(const Resources& resources) {
  if (!impl_) throw InvalidState("the batch has ended already");
  const std::unique_ptr<Impl> ending = std::move(impl_);
  ending->collection->writing().commit_batch(resources);
}

void CollectionBatch::undo() {
  if (!impl_) return;
  const std::unique_ptr<Impl> ending = std::move(impl_);
  const std::lock_guard lock(ending->collection->mutex);
  if (ending->collection->writer) ending->collection->writer->undo_batch();
}

int64_t CollectionView::version() const { return impl_->state->version; }
int64_t CollectionView::size() const { return impl_->state->size; }
const CollectionParams& CollectionView::params() const { return *impl_->state->params; }

std::vector<bool> CollectionView::contains_each(const ItemIds& ids) const {
  const CollectionState& state = *impl_->state;
  check_ids(ids, state.params->ids);
  const std::vector<int64_t> rows = state.reading([&](Database& db) { return rows_of_ids(db, ids, state.version); });
  std::vector<bool> there;
  for (const int64_t row : rows) there.push_back(row >= 0);
  return there;
}

bool CollectionView::contains(const ItemIds& ids) const {
  const std::vector<bool> there = contains_each(ids);
  return std::all_of(there.begin(), there.end(), [](bool one) { return one; });
}

ItemIds CollectionView::ids(const ItemFilter& filter, const Resources& resources) const {
  const CollectionState& state = *impl_->state;
  if (filter.ids) check_ids(*filter.ids, state.params->ids);
  if (!filter.params_of_queries.empty()) throw InvalidArgument("params_of_queries is for searches; give params");
  const std::shared_ptr<const KeptItems> kept = state.keep(filter, filter.params, resources);
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  for (const RowAt& at : state.in_order()) {
    if (kept && !kept->parts[at.part].has(at.place)) continue;
    const StoredRows& rows = *state.parts[at.part].rows;
    if (state.params->ids == IdType::integer) {
      numbers.push_back(rows.number_id(at.place));
    } else {
      texts.push_back(rows.text_id(at.place));
    }
  }
  return state.params->ids == IdType::integer ? ItemIds(std::move(numbers)) : ItemIds(std::move(texts));
}

int64_t CollectionView::count(const ItemFilter& filter, const Resources& resources) const {
  const CollectionState& state = *impl_->state;
  if (filter.ids) check_ids(*filter.ids, state.params->ids);
  if (!filter.params_of_queries.empty()) throw InvalidArgument("params_of_queries is for searches; give params");
  const std::shared_ptr<const KeptItems> kept = state.keep(filter, filter.params, resources);
  return kept ? kept->total : state.size;
}

ItemTable CollectionView::get(const ItemIds& ids, const Resources& resources) const {
  return read_items(*impl_->state, ids, resources);
}

CollectionNeighbors CollectionView::search(const MatrixView& queries, const CollectionSearchParams& params,
                                           const Resources& resources) const {
  if (params.filter.ids) check_ids(*params.filter.ids, impl_->state->params->ids);
  return search_state(*impl_->state, queries, params, resources);
}

CollectionRange CollectionView::range_search(const MatrixView& queries, const CollectionRangeParams& params,
                                             const Resources& resources) const {
  if (params.filter.ids) check_ids(*params.filter.ids, impl_->state->params->ids);
  return range_search_state(*impl_->state, queries, params, resources);
}

}  // namespace kith
