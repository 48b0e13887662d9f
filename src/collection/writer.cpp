#include "collection/writer.hpp"

#include <kith/error.hpp>

#include "collection/host_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <set>
#include <utility>

namespace kith {
namespace {

// FULL syncs the log at each commit, NORMAL when it is moved into the database.
void set_sync(Database& db, SyncMode sync) {
  db.run(sync == SyncMode::now ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
}

// A batch of some megabytes stays in memory until its commit, and its log is moved into the database once for several
// of them. SQLite's own 2 MB of pages and 1,000 pages of log have it write such a batch twice.
void set_room(Database& db, const Resources& resources) {
  if (!is_limited(resources)) db.run("PRAGMA cache_size=-16384");
  db.run("PRAGMA wal_autocheckpoint=4000");
}

class SyncedMeanwhile {
 public:
  SyncedMeanwhile(Database& db, SyncMode otherwise) : db_(db), otherwise_(otherwise) {
    if (otherwise_ != SyncMode::now) set_sync(db_, SyncMode::now);
  }
  ~SyncedMeanwhile() {
    if (otherwise_ == SyncMode::now) return;
    sqlite3_exec(db_.get(), "PRAGMA synchronous=NORMAL", nullptr, nullptr, nullptr);
  }
  SyncedMeanwhile(const SyncedMeanwhile&) = delete;
  SyncedMeanwhile& operator=(const SyncedMeanwhile&) = delete;

 private:
  Database& db_;
  SyncMode otherwise_;
};

}  // namespace

CollectionWriter::CollectionWriter(std::shared_ptr<CollectionDirectory> directory, std::unique_ptr<DiskLock> lock,
                                   const OpenParams& params, bool mapped, const Resources& resources)
    : directory_(std::move(directory)),
      lock_(std::move(lock)),
      db_(std::make_unique<Database>(directory_->database(), Database::Open::write, directory_->environment().vfs, resources)),
      sync_(params.sync),
      mapped_(mapped),
      process_(this_process()) {
  check_schema(*db_);
  if (db_->text("PRAGMA journal_mode=WAL") != "wal") {
    throw IoError(fmt::format("'{}': SQLite cannot keep its log here (WAL); is this a file system that cannot share memory?",
                              db_->path()), db_->path(), EINVAL);
  }
  set_sync(*db_, sync_);
  set_room(*db_, resources);
  counters_ = read_counters(*db_);
  remove_leftovers();
  publish(load_state(*db_, directory_, nullptr, mapped_, resources));
  newest_bytes_ = db_->number("SELECT count(*) FROM newest") * state_->params->dimension * size_of(state_->params->dtype);
  dropped_ = db_->number("SELECT count(*) FROM dropped");
  forget_at_ = directory_->environment().least_dropped;
}

StatePointer CollectionWriter::state() const {
  const std::lock_guard lock(state_mutex_);
  return state_;
}

void CollectionWriter::publish(StatePointer state) {
  state->guard(true);
  const std::lock_guard lock(state_mutex_);
  std::erase_if(states_, [](const auto& old) { return old.expired(); });
  states_.emplace_back(state);
  state_ = std::move(state);
}

void CollectionWriter::check_writable() const {
  if (closed_) throw InvalidState(fmt::format("'{}' was closed; open it again", directory_->path()));
  if (process_ != this_process()) {
    throw InvalidState(fmt::format("'{}' was opened for writing before this process was forked: it may read; to write, "
                                   "open it here once the other process has closed it", directory_->path()));
  }
  if (failed_) {
    throw InvalidState(fmt::format("'{}': the disk failed to sync a write, so what it holds is not known; close the "
                                   "collection, see to the disk, and open it again", directory_->path()));
  }
  if (db_->was_moved()) {
    throw IoError(fmt::format("'{}' was moved or deleted while it was open: what is written now would be lost; close the "
                              "collection, and open it where it is", db_->path()), db_->path(), ENOENT);
  }
}

void CollectionWriter::check_no_batch(const char* what) const {
  if (batch_) throw InvalidState(fmt::format("{} cannot be a part of a batch; commit it first", what));
}

// Other names in segments/ are what a killed writer, or one that failed, has left.
void CollectionWriter::remove_leftovers() {
  Disk& disk = directory_->disk();
  if (!disk.exists(directory_->segments())) {
    disk.make_folder(directory_->segments());
    disk.sync_folder(directory_->root());
  }
  std::set<std::string> named;
  for (const SegmentRow& row : read_segments(*db_)) {
    named.insert(row.file);
    named.insert(row.index_file);
  }
  for (const std::string& name : disk.list(directory_->segments())) {
    const bool ours = name.starts_with("segment-") || name.starts_with("index-") || name.ends_with(".part");
    if (ours && !named.contains(name)) disk.remove(directory_->segments() + "/" + name);
  }
}

void CollectionWriter::remove_files(const std::vector<std::string>& names) noexcept {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    try {
      directory_->disk().remove(directory_->segments() + "/" + name);
    } catch (const Error&) {  // the next writer removes it
    }
  }
}

std::string CollectionWriter::next_file(Call& call, const char* kind) {
  return fmt::format("{}-{:06}.kith", kind, call.counters.next_file++);
}

Statement& CollectionWriter::kept(const std::string& sql) {
  const auto found = statements_.find(sql);
  return found != statements_.end() ? found->second : statements_.emplace(sql, db_->prepare(sql)).first->second;
}

void CollectionWriter::write(const std::function<void(Call&)>& work, const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  const DatabaseMemory counted(*db_, resources);
  Call call;
  call.counters = batch_ ? batch_->call.counters : counters_;
  if (!batch_) ++call.counters.version;
  try {
    Transaction transaction(*db_);
    work(call);
    write_counters(*db_, call.counters);
    if (batch_) {
      transaction.commit();
      Call& whole = batch_->call;
      whole.counters = call.counters;
      const auto append = [](auto& to, auto& from) {
        to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
      };
      append(whole.change.removed, call.change.removed);
      append(whole.change.blocks, call.change.blocks);
      append(whole.change.segments, call.change.segments);
      append(whole.files, call.files);
      whole.newest_bytes += call.newest_bytes;
      whole.dropped += call.dropped;
      return;
    }
    StatePointer next = changed_state(state_, call.change, call.counters.version, call.counters.layout,
                                      call.counters.next_row, mapped_, resources);
    transaction.commit();
    publish(std::move(next));
    counters_ = call.counters;
    newest_bytes_ += call.newest_bytes;
    dropped_ += call.dropped;
    fold_by_itself(directory_->environment().fold_bytes, resources);
  } catch (const SyncFailed&) {
    failed_ = true;
    throw;
  } catch (const Error&) {
    remove_files(call.files);
    throw;
  }
}

void CollectionWriter::begin_batch() {
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("a batch");
  Batch batch;
  batch.call.counters = counters_;
  ++batch.call.counters.version;
  batch.transaction = std::make_unique<Transaction>(*db_);
  batch_ = std::move(batch);
}

void CollectionWriter::commit_batch(const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  if (!batch_) throw InvalidState("the batch has ended already");
  const DatabaseMemory counted(*db_, resources);
  Call& call = batch_->call;
  try {
    const bool empty = call.change.removed.empty() && call.change.blocks.empty() && call.change.segments.empty();
    if (empty) call.counters.version = counters_.version;
    write_counters(*db_, call.counters);
    StatePointer next = changed_state(state_, call.change, call.counters.version, call.counters.layout,
                                      call.counters.next_row, mapped_, resources);
    batch_->transaction->commit();
    publish(std::move(next));
    counters_ = call.counters;
    newest_bytes_ += call.newest_bytes;
    dropped_ += call.dropped;
    batch_.reset();
    fold_by_itself(directory_->environment().fold_bytes, resources);
  } catch (const SyncFailed&) {
    failed_ = true;
    batch_.reset();
    throw;
  } catch (const Error&) {
    if (batch_) {
      const std::vector<std::string> files = std::move(call.files);
      batch_.reset();
      remove_files(files);
    }
    throw;
  }
}

void CollectionWriter::undo_batch() {
  const std::lock_guard lock(mutex_);
  if (!batch_) return;
  const std::vector<std::string> files = std::move(batch_->call.files);
  batch_.reset();
  if (process_ == this_process()) remove_files(files);
}

SegmentRow CollectionWriter::new_segment(Call& call) {
  SegmentRow entry;
  entry.number = call.counters.next_file;
  entry.file = next_file(call, "segment");
  call.files.insert(call.files.end(), {entry.file, entry.file + ".part"});
  return entry;
}

CollectionWriter::Steps CollectionWriter::segment_steps(const std::vector<SegmentSource>& sources, SegmentRow& entry,
                                                        const Resources& resources) {
  if (items_in(sources) == 0) return {};
  const std::string path = directory_->segments() + "/" + entry.file;
  const std::string aside = path + ".part";
  const auto file = std::make_shared<std::unique_ptr<DiskFile>>();
  return {
      [this, aside, file] { *file = directory_->disk().create(aside); },
      [this, file, &sources, &entry, &resources] {
        write_segment_file(**file, sources, *state_->params, entry, resources);
      },
      [this, file] {
        if (directory_->environment().does(DurableStep::sync_segment)) (*file)->sync();
      },
      [this, aside, path] { directory_->disk().rename(aside, path); },
      [this] { sync_segments(); },
  };
}

void CollectionWriter::sync_segments() {
  if (directory_->environment().does(DurableStep::sync_segments_folder)) {
    directory_->disk().sync_folder(directory_->segments());
  }
}

void CollectionWriter::rearrange(const std::function<void(Call&, const Commit&)>& work, const Resources& resources) {
  const DatabaseMemory counted(*db_, resources);
  Call call;
  call.counters = counters_;
  ++call.counters.layout;
  try {
    StatePointer next;
    const Commit commit = [&](const std::function<void()>& change) {
      // Files are deleted afterwards, so that it is on the disk first, whatever the mode.
      const SyncedMeanwhile synced(*db_, sync_);
      Transaction transaction(*db_);
      change();
      write_counters(*db_, call.counters);
      next = load_state(*db_, directory_, state_, mapped_, resources);
      transaction.commit();
      counters_ = call.counters;
      dropped_ += call.dropped;
      newest_bytes_ = db_->number("SELECT count(*) FROM newest") * next->params->dimension * size_of(next->params->dtype);
      publish(next);
    };
    work(call, commit);
  } catch (const SyncFailed&) {
    failed_ = true;
    throw;
  } catch (const Error&) {
    if (call.counters.layout != counters_.layout) remove_files(call.files);
    throw;
  }
}

void CollectionWriter::add_column(const Column& column, const Resources& resources) {
  check_column_name(column.name);
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("add_column()");
  for (const Column& known : state_->params->columns) {
    if (known.name != column.name) continue;
    if (known.type == column.type) return;
    throw InvalidArgument(fmt::format("the column '{}' is there, of {}", known.name, name_of(known.type)));
  }
  CollectionParams next = *state_->params;
  next.columns.push_back(column);
  next.validate();
  rearrange([&](Call&, const Commit& commit) {
    commit([&] { add_column_to_schema(*db_, column, static_cast<int64_t>(next.columns.size()) - 1); });
  }, resources);
}

void CollectionWriter::create_index(const std::string& column, const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("create_index()");
  const std::vector<Column>& columns = state_->params->columns;
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == column; });
  if (found == columns.end()) throw InvalidArgument(fmt::format("the collection has no column '{}'", column));
  if (found->indexed) return;
  rearrange([&](Call&, const Commit& commit) { commit([&] { add_index_to_schema(*db_, column); }); }, resources);
}

void CollectionWriter::close(const Resources& resources) {
  undo_batch();
  std::exception_ptr failure;
  if (process_ == this_process()) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      fold_by_itself(directory_->environment().close_fold_bytes, resources);
      if (!failed_) tidy([&] { give_pages_back(); }, resources);
      closed_ = true;
      // Views that live on are now readers like others.
      for (const auto& old : states_) {
        const StatePointer state = old.lock();
        if (!state || (state == state_ && state.use_count() == 2)) continue;
        try {
          state->hold(directory_->pin(state->version));
        } catch (const Error&) {  // then it may have to report that items were deleted
        }
        state->guard(false);
      }
    }
    if (!failed_) {
      try {
        db_->run("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch (const InvalidState&) {  // a reader is in the way: what is in the log stays there
      }
    }
  } else {
    closed_ = true;
    db_->abandon();
    for (auto& [sql, statement] : statements_) statement.abandon();
  }
  statements_.clear();
  db_.reset();
  lock_.reset();
}

}  // namespace kith
