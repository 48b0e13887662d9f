#include "collection/writer.hpp"

#include <kith/error.hpp>

#include "collection/where.hpp"
#include "io/file_error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <set>
#include <thread>
#include <utility>

namespace kith {
namespace {

std::string who_writes() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}, since {:%Y-%m-%d %H:%M:%S} UTC\n", this_process(), host.data(),
                     fmt::gmtime(std::time(nullptr)));
}

std::string words_in(Disk& disk, const std::string& path) {
  try {
    const std::unique_ptr<DiskFile> file = disk.open(path);
    constexpr int64_t kLongest = 400;
    std::string text(static_cast<size_t>(std::min(file->size(), kLongest)), '\0');
    file->read(0, text.data(), static_cast<int64_t>(text.size()));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? "another process" : printable(text);
  } catch (const Error&) {
    return "another process";
  }
}

void bind_id(Statement& statement, int at, const ItemIds& ids, int64_t i) {
  if (ids.type() == IdType::integer) {
    statement.bind(at, ids.numbers()[static_cast<size_t>(i)]);
  } else {
    statement.bind(at, std::string_view(ids.texts()[static_cast<size_t>(i)]));
  }
}

std::vector<int64_t> living_places(const StatePart& part) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < part.rows->size(); ++i) {
    if (part.lives(i)) places.push_back(i);
  }
  return places;
}

SegmentSource source_of(const StatePart& part) {
  SegmentSource source;
  source.rows = part.rows;
  source.all = !part.dead || part.dead->count() == 0;
  if (!source.all) source.places = living_places(part);
  return source;
}

int64_t items_in(const std::vector<SegmentSource>& sources) {
  int64_t items = 0;
  for (const SegmentSource& source : sources) items += source.size();
  return items;
}

// FULL syncs the log at each commit, NORMAL when it is moved into the database.
void set_sync(Database& db, SyncMode sync) {
  db.run(sync == SyncMode::now ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
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

// Steps in their order, or with one of them after its neighbour, for the proof that tests see it.
void run_steps(const std::vector<std::function<void()>>& steps, int swapped) {
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    int at = i;
    if (i == swapped) at = i + 1;
    if (i == swapped + 1 && swapped >= 0) at = i - 1;
    steps[static_cast<size_t>(at)]();
  }
}

}  // namespace

std::unique_ptr<DiskLock> take_write_lock(const CollectionDirectory& directory, std::chrono::milliseconds timeout,
                                          const Resources& resources) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  Disk& disk = directory.disk();
  for (;;) {
    if (std::unique_ptr<DiskLock> lock = disk.try_lock(directory.lock_file(), LockKind::alone)) {
      const std::unique_ptr<DiskFile> file = disk.create(directory.lock_file());
      const std::string words = who_writes();
      file->write(0, words.data(), static_cast<int64_t>(words.size()));
      return lock;
    }
    if (std::chrono::steady_clock::now() >= end) {
      throw InvalidState(fmt::format("'{}' is open for writing by {}; close it there, wait with a timeout, or open it "
                                     "with mode read", directory.path(), words_in(disk, directory.lock_file())));
    }
    resources.check_cancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

CollectionWriter::CollectionWriter(std::shared_ptr<CollectionDirectory> directory, std::unique_ptr<DiskLock> lock,
                                   const OpenParams& params, bool mapped, const Resources& resources)
    : directory_(std::move(directory)),
      lock_(std::move(lock)),
      db_(std::make_unique<Database>(directory_->database(), Database::Open::write, directory_->environment().vfs)),
      sync_(params.sync),
      mapped_(mapped),
      process_(this_process()) {
  check_schema(*db_);
  if (db_->text("PRAGMA journal_mode=WAL") != "wal") {
    throw IoError(fmt::format("'{}': SQLite cannot keep its log here (WAL); is this a file system that cannot share memory?",
                              db_->path()), db_->path(), EINVAL);
  }
  set_sync(*db_, sync_);
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
}

void CollectionWriter::check_no_batch(const char* what) const {
  if (batch_) throw InvalidState(fmt::format("{} cannot be a part of a batch; commit it first", what));
}

// Other names in segments/ are what a killed writer, or one that failed, has left.
void CollectionWriter::remove_leftovers() {
  Disk& disk = directory_->disk();
  if (!disk.exists(directory_->segments())) {
    disk.make_folder(directory_->segments());
    disk.sync_folder(directory_->path());
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

// The work of a call, in a transaction of its own or as a part of the batch.
template <typename Work>
auto CollectionWriter::write(const Work& work, const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  Call call;
  call.counters = batch_ ? batch_->call.counters : counters_;
  if (!batch_) ++call.counters.version;
  try {
    Transaction transaction(*db_);
    auto result = work(call);
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
      return result;
    }
    StatePointer next = changed_state(state_, call.change, call.counters.version, call.counters.layout,
                                      call.counters.next_row, mapped_, resources);
    transaction.commit();
    publish(std::move(next));
    counters_ = call.counters;
    newest_bytes_ += call.newest_bytes;
    dropped_ += call.dropped;
    fold_by_itself(directory_->environment().fold_bytes, resources);
    return result;
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

ItemIds CollectionWriter::add(const Items& given, bool replaces, const Resources& resources) {
  // Columns may be added by another thread until the lock is held: then the values are checked again.
  std::shared_ptr<const CollectionParams> params = state()->params;
  auto items = std::make_unique<CheckedItems>(given, *params, replaces, resources);
  if (items->size() == 0) {
    const std::lock_guard lock(mutex_);
    check_writable();
    return params->ids == IdType::integer ? ItemIds(std::vector<int64_t>()) : ItemIds(std::vector<std::string>());
  }
  return write([&](Call& call) {
    if (state_->params != params) {
      params = state_->params;
      items = std::make_unique<CheckedItems>(given, *params, replaces, resources);
    }
    if (!items->has_ids()) {
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < items->size(); ++i) numbers.push_back(call.counters.next_id + i);
      items->give_ids(std::move(numbers));
    }
    if (params->ids == IdType::integer) {
      for (const int64_t id : items->ids().numbers()) {
        if (id < 0 || id == INT64_MAX) {
          throw InvalidArgument(fmt::format("an id is at least 0 and below 2^63 - 1; {} was given", id));
        }
        call.counters.next_id = std::max(call.counters.next_id, id + 1);
      }
    }
    if (replaces) {
      Statement& find = kept("SELECT _row, _added FROM items WHERE id = ? AND _removed = 0");
      for (int64_t i = 0; i < items->size(); ++i) {
        bind_id(find, 1, items->ids(), i);
        if (find.step()) {
          const int64_t row = find.number(0);
          const int64_t added = find.number(1);
          find.reset();
          remove_row(row, added, call);
        }
        find.reset();
      }
    }
    insert_items(*items, call, resources);
    return items->ids();
  }, resources);
}

void CollectionWriter::insert_items(CheckedItems& items, Call& call, const Resources& resources) {
  const CollectionParams& params = *state_->params;
  std::string names;
  std::string marks;
  for (const Column& column : params.columns) {
    names += ", " + quoted(column.name);
    marks += ", ?";
  }
  Statement& insert = kept(fmt::format(
      "INSERT INTO items(_row, id, _added, _removed, _hash, _payload{}) VALUES(?, ?, ?, 0, ?, ?{})", names, marks));
  const bool at_once = items.size() * items.vector_bytes() >= directory_->environment().segment_bytes;
  Statement& newest = kept("INSERT INTO newest VALUES(?, ?)");
  const int64_t first_row = call.counters.next_row;
  constexpr int64_t kLook = 1024;  // items between two looks at whether the caller cancelled
  for (int64_t i = 0; i < items.size(); ++i) {
    if (i % kLook == 0) resources.check_cancelled();
    insert.bind(1, first_row + i);
    bind_id(insert, 2, items.ids(), i);
    insert.bind(3, call.counters.version);
    insert.bind(4, static_cast<int64_t>(items.hash(i)));
    const std::string_view payload = items.payload(i);
    if (payload.empty()) {
      insert.bind_null(5);
    } else {
      insert.bind_blob(5, std::as_bytes(std::span(payload)));
    }
    for (size_t c = 0; c < params.columns.size(); ++c) insert.bind(static_cast<int>(6 + c), items.value(i, c));
    if (!insert.run_unless_taken()) {
      throw InvalidArgument(fmt::format("the id {} is there already, or twice among these; upsert() replaces items",
                                        id_text(items.ids(), i)));
    }
    if (at_once) continue;
    newest.bind(1, first_row + i);
    newest.bind_blob(2, {items.vector(i), static_cast<size_t>(items.vector_bytes())});
    newest.run();
  }
  call.counters.next_row += items.size();
  if (!at_once) {
    call.change.blocks.push_back(items.block(first_row, resources));
    call.newest_bytes += items.size() * items.vector_bytes();
    return;
  }
  SegmentSource source;
  source.rows = items.stored(first_row);
  source.all = true;
  SegmentRow entry;
  entry.number = call.counters.next_file;
  entry.file = next_file(call, "segment");
  call.files.push_back(entry.file);
  write_segment({source}, entry, resources);
  sync_segments();
  insert_segment(*db_, entry);
  ++call.counters.layout;
  call.change.segments.push_back(std::move(entry));
}

// A file under its name, whose bytes are on the disk; the name is after sync_segments().
void CollectionWriter::write_segment(const std::vector<SegmentSource>& sources, SegmentRow& entry,
                                     const Resources& resources) {
  Disk& disk = directory_->disk();
  const std::string path = directory_->segments() + "/" + entry.file;
  const std::string aside = path + ".part";
  try {
    const std::unique_ptr<DiskFile> file = disk.create(aside);
    write_segment_file(*file, sources, *state_->params, entry, resources);
    if (directory_->environment().does(DurableStep::sync_segment)) file->sync();
    disk.rename(aside, path);
  } catch (const Error&) {
    remove_files({entry.file + ".part"});
    throw;
  }
}

void CollectionWriter::sync_segments() {
  if (directory_->environment().does(DurableStep::sync_segments_folder)) {
    directory_->disk().sync_folder(directory_->segments());
  }
}

void CollectionWriter::remove_row(int64_t row, int64_t added, Call& call) {
  kept("DELETE FROM newest WHERE row = ?").bind(1, row).run();
  const bool was_newest = db_->changes() > 0;
  call.change.removed.push_back(row);
  if (was_newest) call.newest_bytes -= state_->params->dimension * size_of(state_->params->dtype);
  if (was_newest && added == call.counters.version) {  // nobody has seen it
    kept("DELETE FROM items WHERE _row = ?").bind(1, row).run();
    return;
  }
  kept("UPDATE items SET _removed = ? WHERE _row = ?").bind(1, call.counters.version).bind(2, row).run();
  if (was_newest) {
    kept("INSERT INTO dropped VALUES(?)").bind(1, row).run();
    ++call.dropped;
  }
}

int64_t CollectionWriter::remove(const ItemIds& ids, const Resources& resources) {
  check_ids(ids, state()->params->ids);
  return write([&](Call& call) {
    Statement& find = kept("SELECT _row, _added FROM items WHERE id = ? AND _removed = 0");
    int64_t removed = 0;
    for (int64_t i = 0; i < ids.size(); ++i) {
      bind_id(find, 1, ids, i);
      const bool there = find.step();
      const int64_t row = there ? find.number(0) : 0;
      const int64_t added = there ? find.number(1) : 0;
      find.reset();
      if (!there) continue;
      remove_row(row, added, call);
      ++removed;
    }
    if (removed == 0 && !batch_) --call.counters.version;
    return removed;
  }, resources);
}

int64_t CollectionWriter::remove(const ItemFilter& filter, const Resources& resources) {
  if (!filter.params_of_queries.empty()) throw InvalidArgument("params_of_queries is for searches; give params");
  if (filter.where.empty() && !filter.ids && !filter.mask) return 0;
  if (filter.ids) check_ids(*filter.ids, state()->params->ids);
  return write([&](Call& call) {
    if (filter.mask && batch_) throw InvalidArgument("a mask is of a version's items; within a batch give ids");
    std::vector<int64_t> rows;
    for_each_where(*db_, {filter.where, filter.params, call.counters.version, filter.time_limit},
                   [&](int64_t row) { rows.push_back(row); }, resources);
    std::sort(rows.begin(), rows.end());
    const auto keep_only = [&](std::vector<int64_t> others) {
      std::sort(others.begin(), others.end());
      std::vector<int64_t> both;
      std::set_intersection(rows.begin(), rows.end(), others.begin(), others.end(), std::back_inserter(both));
      rows = std::move(both);
    };
    if (filter.ids) keep_only(rows_of_ids(*db_, *filter.ids, call.counters.version));
    if (filter.mask) {
      ItemFilter by_mask;
      by_mask.mask = filter.mask;
      const std::shared_ptr<const KeptItems> kept = state_->keep(by_mask, {}, resources);
      std::vector<int64_t> masked;
      for (size_t p = 0; p < state_->parts.size(); ++p) {
        for (int64_t i = 0; i < kept->parts[p].places(); ++i) {
          if (kept->parts[p].has(i)) masked.push_back(state_->parts[p].rows->row(i));
        }
      }
      keep_only(std::move(masked));
    }
    Statement& added = kept("SELECT _added FROM items WHERE _row = ?");
    for (const int64_t row : rows) {
      const int64_t version = added.bind(1, row).step() ? added.number(0) : 0;
      added.reset();
      remove_row(row, version, call);
    }
    if (rows.empty() && !batch_) --call.counters.version;
    return static_cast<int64_t>(rows.size());
  }, resources);
}

template <typename Work>
void CollectionWriter::rearrange(const Work& work, const Resources& resources) {
  Call call;
  call.counters = counters_;
  ++call.counters.layout;
  try {
    StatePointer next;
    const auto commit = [&](const std::function<void()>& change) {
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
  rearrange([&](Call&, const auto& commit) {
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
  rearrange([&](Call&, const auto& commit) { commit([&] { add_index_to_schema(*db_, column); }); }, resources);
}

// The rows of a source that are not kept: their items are forgotten once nobody sees them.
void CollectionWriter::drop_rows(const std::vector<SegmentSource>& sources, Call& call) {
  Statement insert = db_->prepare("INSERT OR IGNORE INTO dropped VALUES(?)");
  for (const SegmentSource& source : sources) {
    if (source.all) continue;
    size_t next = 0;
    for (int64_t place = 0; place < source.rows->size(); ++place) {
      if (next < source.places.size() && source.places[next] == place) {
        ++next;
        continue;
      }
      insert.bind(1, source.rows->row(place)).run();
      ++call.dropped;
    }
  }
}

void CollectionWriter::fold(const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("fold()");
  fold_now(resources);
}

void CollectionWriter::fold_now(const Resources& resources) {
  const CollectionEnvironment& environment = directory_->environment();
  const CollectionParams& params = *state_->params;
  const int64_t row_bytes = params.dimension * size_of(params.dtype);
  std::vector<SegmentSource> sources;
  std::vector<SegmentRow> replaced;
  int64_t written = 0;
  for (size_t p = state_->segments; p < state_->parts.size(); ++p) {
    const StatePart& part = state_->parts[p];
    written += part.living() * row_bytes;
    sources.push_back(source_of(part));
  }
  const bool has_newest = state_->parts.size() > state_->segments;
  // Segments that are mostly dead, and then those that are at most twice what is written anyway, so that there are never
  // many of them.
  std::vector<const StatePart*> others;
  int64_t budget = environment.rewrite_bytes;
  const auto take = [&](const StatePart& part) {
    budget -= part.living() * row_bytes;
    written += part.living() * row_bytes;
    sources.push_back(source_of(part));
    replaced.push_back(part.segment->entry());
  };
  for (size_t p = 0; p < state_->segments; ++p) {
    const StatePart& part = state_->parts[p];
    const bool mostly_dead = part.rows->size() - part.living() > part.living();
    if (mostly_dead && part.living() * row_bytes <= budget) {
      take(part);
    } else if (part.segment->entry().index_file.empty()) {
      others.push_back(&part);
    }
  }
  std::sort(others.begin(), others.end(), [](const StatePart* a, const StatePart* b) {
    return a->rows->size() != b->rows->size() ? a->rows->size() < b->rows->size() : a->rows->first_row() < b->rows->first_row();
  });
  for (const StatePart* part : others) {
    const int64_t bytes = part->living() * row_bytes;
    if (!has_newest || bytes > 2 * written || bytes > budget) break;
    take(*part);
  }
  if (sources.empty()) return;

  rearrange([&](Call& call, const auto& commit) {
    Disk& disk = directory_->disk();
    SegmentRow entry;
    entry.number = call.counters.next_file;
    entry.file = next_file(call, "segment");
    call.files = {entry.file, entry.file + ".part"};
    const std::string path = directory_->segments() + "/" + entry.file;
    const std::string aside = path + ".part";
    const bool any = items_in(sources) > 0;
    std::unique_ptr<DiskFile> file;
    std::vector<std::string> old;
    for (const SegmentRow& row : replaced) old.insert(old.end(), {row.file, row.index_file});
    const std::vector<std::function<void()>> steps{
        [&] {
          if (any) file = disk.create(aside);
        },
        [&] {
          if (any) write_segment_file(*file, sources, params, entry, resources);
        },
        [&] {
          if (any && environment.does(DurableStep::sync_segment)) file->sync();
        },
        [&] {
          if (any) disk.rename(aside, path);
        },
        [&] {
          if (any) sync_segments();
        },
        [&] {
          commit([&] {
            for (const SegmentRow& row : replaced) {
              db_->prepare("DELETE FROM segments WHERE number = ?").bind(1, row.number).run();
            }
            if (any) insert_segment(*db_, entry);
            db_->run("DELETE FROM newest");
            drop_rows(sources, call);
          });
        },
        [&] { remove_files(old); },
    };
    run_steps(steps, environment.swapped);
  }, resources);
}

void CollectionWriter::fold_by_itself(int64_t at_bytes, const Resources& resources) {
  if (batch_ || closed_ || failed_) return;
  // What was asked for is done: what fails here is tried again at the next write.
  try {
    if (newest_bytes_ >= at_bytes) fold_now(resources);
    if (dropped_ >= forget_at_ && dropped_ >= state_->size / 4) forget(resources);
  } catch (const Error& error) {
    resources.log(LogLevel::warning, fmt::format("'{}' could not be tidied up, which loses nothing: {}",
                                                 directory_->path(), error.what()));
  }
}

// Items that were removed and whose vectors are gone stay as long as somebody looks at a version that sees them. First
// says that from now on nobody may begin to look at such a version, then asks who does, then deletes.
void CollectionWriter::forget(const Resources& resources) {
  resources.check_cancelled();
  CollectionCounters counters = counters_;
  try {
    if (counters.oldest != counters.version) {
      counters.oldest = counters.version;
      Transaction transaction(*db_);
      write_counters(*db_, counters);
      transaction.commit();
      counters_ = counters;
    }
    int64_t oldest = VersionPin::oldest(directory_->disk(), directory_->readers(), counters.version);
    {
      const std::lock_guard lock(state_mutex_);
      for (const auto& old : states_) {
        if (const StatePointer state = old.lock()) oldest = std::min(oldest, state->version);
      }
    }
    Transaction transaction(*db_);
    db_->prepare("DELETE FROM items WHERE _removed > 0 AND _removed <= ? AND _row IN (SELECT row FROM dropped)")
        .bind(1, oldest)
        .run();
    db_->run("DELETE FROM dropped WHERE NOT EXISTS (SELECT 1 FROM items WHERE _row = dropped.row)");
    transaction.commit();
  } catch (const SyncFailed&) {
    failed_ = true;
    throw;
  }
  dropped_ = db_->number("SELECT count(*) FROM dropped");
  forget_at_ = std::max(directory_->environment().least_dropped, 2 * dropped_);
}

// The same segment with an index, whose file has its name.
SegmentRow CollectionWriter::indexed(const SegmentRow& segment, const std::string& factory, Call& call,
                                     const Resources& resources) {
  SegmentRow entry = segment;
  entry.index_file.clear();
  entry.index_factory.clear();
  if (factory == "Flat" || segment.rows < directory_->environment().index_rows) return entry;
  const CollectionParams& params = *state_->params;
  const bool limited = resources.options().host_memory_limit != kNoLimit;
  auto file = std::make_shared<const SegmentFile>(directory_->disk(), directory_->segments(), segment, params, !limited);
  IndexParams index_params;
  index_params.metric = params.metric;
  index_params.expected_rows = segment.rows;
  Index index(factory, index_params);
  if (limited) {
    const VectorFile rows = rows_as_file(file, params.dtype, params.dimension, file->path());
    index.train(rows, resources);
    index.add(rows, {}, resources);
  } else {
    index.train(file->view(), resources);
    index.add(file->view(), Ownership::copy, resources);
  }
  entry.index_file = next_file(call, "index");
  call.files.insert(call.files.end(), {entry.index_file, entry.index_file + ".part"});
  const IndexFileFacts facts = write_index_file(*directory_, index, entry.index_file, resources);
  entry.index_factory = factory;
  entry.index_bytes = facts.bytes;
  entry.index_hash = facts.hash;
  return entry;
}

void CollectionWriter::compact(const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("compact()");
  const std::string& factory = state_->params->index;
  std::vector<SegmentSource> sources;
  for (const StatePart& part : state_->parts) sources.push_back(source_of(part));
  const bool whole = sources.empty() || (state_->parts.size() == 1 && state_->segments == 1 && sources[0].all);
  const int64_t items = items_in(sources);
  const bool wants_index = factory != "Flat" && items >= directory_->environment().index_rows;
  const bool indexed_so = sources.empty() || !whole ||
                          state_->parts[0].segment->entry().index_factory == (wants_index ? factory : "");
  if (!whole || !indexed_so) {
    std::vector<std::string> old;
    for (size_t p = 0; p < state_->segments; ++p) {
      const SegmentRow& row = state_->parts[p].segment->entry();
      if (!whole) old.push_back(row.file);
      old.push_back(row.index_file);
    }
    rearrange([&](Call& call, const auto& commit) {
      SegmentRow entry;
      if (whole) {
        entry = state_->parts[0].segment->entry();
      } else if (items > 0) {
        entry.number = call.counters.next_file;
        entry.file = next_file(call, "segment");
        call.files.push_back(entry.file);
        write_segment(sources, entry, resources);
      }
      if (items > 0) entry = indexed(entry, factory, call, resources);
      sync_segments();
      commit([&] {
        db_->run("DELETE FROM segments");
        if (items > 0) insert_segment(*db_, entry);
        db_->run("DELETE FROM newest");
        drop_rows(sources, call);
      });
      remove_files(old);
    }, resources);
  }
  if (dropped_ > 0) forget(resources);
  db_->run("PRAGMA incremental_vacuum");
  db_->run("PRAGMA wal_checkpoint(TRUNCATE)");
}

void CollectionWriter::reindex(const std::string& factory, const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("reindex()");
  CollectionParams next = *state_->params;
  next.index = factory;
  next.validate();
  std::vector<std::string> old;
  for (size_t p = 0; p < state_->segments; ++p) old.push_back(state_->parts[p].segment->entry().index_file);
  rearrange([&](Call& call, const auto& commit) {
    std::vector<SegmentRow> entries;
    for (size_t p = 0; p < state_->segments; ++p) {
      resources.check_cancelled();
      entries.push_back(indexed(state_->parts[p].segment->entry(), factory, call, resources));
    }
    sync_segments();
    commit([&] {
      db_->prepare("UPDATE collection SET value = ? WHERE key = 'index'").bind(1, std::string_view(factory)).run();
      db_->run("DELETE FROM segments");
      for (const SegmentRow& entry : entries) insert_segment(*db_, entry);
    });
    remove_files(old);
  }, resources);
}

void CollectionWriter::close(const Resources& resources) {
  undo_batch();
  std::exception_ptr failure;
  if (process_ == this_process()) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      fold_by_itself(directory_->environment().close_fold_bytes, resources);
      closed_ = true;
      // Views that live on are now readers like others.
      for (const auto& old : states_) {
        const StatePointer state = old.lock();
        if (!state || (state == state_ && state.use_count() == 2)) continue;
        try {
          state->hold(directory_->pin(state->version));
        } catch (const Error&) {  // then it may have to say that items were forgotten
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
