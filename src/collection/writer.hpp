// What may change a collection: one of these at a time, over all processes, from open() to close(). Its parts:
// writer.cpp has transactions and the handle's life, item_writes.cpp items, fold.cpp and compaction.cpp segments.
#pragma once

#include <kith/collection.hpp>

#include "collection/directory.hpp"
#include "collection/item_rows.hpp"
#include "collection/schema.hpp"
#include "collection/segment_writing.hpp"
#include "collection/sqlite.hpp"
#include "collection/state.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kith {

class CollectionWriter {
 public:
  CollectionWriter(std::shared_ptr<CollectionDirectory> directory, std::unique_ptr<DiskLock> lock, const OpenParams& params,
                   bool mapped, const Resources& resources);

  StatePointer state() const;

  ItemIds add(const Items& items, bool replaces, const Resources& resources);
  int64_t remove(const ItemIds& ids, const Resources& resources);
  int64_t remove(const ItemFilter& filter, const Resources& resources);
  void begin_batch();
  void commit_batch(const Resources& resources);
  void undo_batch();
  void add_column(const Column& column, const Resources& resources);
  void create_index(const std::string& column, const Resources& resources);
  void fold(const Resources& resources);
  void compact(const Resources& resources);
  void reindex(const std::string& factory, const Resources& resources);
  void close(const Resources& resources);

 private:
  // One call: what it changes, until its transaction is committed.
  struct Call {
    CollectionCounters counters;
    StateChange change;
    std::vector<std::string> files;  // made for it: removed where it fails
    int64_t newest_bytes = 0;        // more than before
    int64_t dropped = 0;
  };
  struct Batch {
    std::unique_ptr<Transaction> transaction;
    Call call;
  };

  void check_writable() const;
  void check_no_batch(const char* what) const;
  // The work of a call, in a transaction of its own or as a part of the batch.
  void write(const std::function<void(Call&)>& work, const Resources& resources);
  // The same for calls that change segments or the schema: the work calls commit(change) once, with the changes of the
  // database, and the state is read again.
  using Commit = std::function<void(const std::function<void()>& change)>;
  void rearrange(const std::function<void(Call&, const Commit&)>& work, const Resources& resources);
  void publish(StatePointer state);
  void remove_files(const std::vector<std::string>& names) noexcept;
  void remove_leftovers();

  void insert_items(CheckedItems& items, Call& call, const Resources& resources);
  // Prepared statements that insert that many items, and their vectors.
  struct Inserts {
    int64_t rows;
    Statement& items;
    Statement& newest;
  };
  Inserts inserts_of(int64_t rows);
  void insert_rows(const CheckedItems& items, int64_t first, const Inserts& inserts, bool newest, const Call& call);
  void remove_row(int64_t row, int64_t added, Call& call);
  std::string next_file(Call& call, const char* kind);
  SegmentRow new_segment(Call& call);
  // What puts a segment under its name, whole and on the disk, in this order. None where there is no item.
  using Steps = std::vector<std::function<void()>>;
  Steps segment_steps(const std::vector<SegmentSource>& sources, SegmentRow& entry, const Resources& resources);
  void sync_segments();
  SegmentRow indexed(const SegmentRow& segment, const std::string& factory, Call& call, const Resources& resources);
  void fold_now(const Resources& resources);
  // A statement that is prepared once.
  Statement& kept(const std::string& sql);
  void fold_by_itself(int64_t at_bytes, const Resources& resources);
  void give_pages_back();
  bool has_gaps() const;
  void pack_database(const Resources& resources);
  // What was asked for is done: what fails here is logged, and tried again at the next write.
  void tidy(const std::function<void()>& work, const Resources& resources);
  void forget(const Resources& resources);
  void drop_rows(const std::vector<SegmentSource>& sources, Call& call);

  std::shared_ptr<CollectionDirectory> directory_;
  std::unique_ptr<DiskLock> lock_;
  std::unique_ptr<Database> db_;
  std::map<std::string, Statement> statements_;
  SyncMode sync_;
  bool mapped_;
  int64_t process_;
  mutable std::mutex mutex_;  // of writes
  mutable std::mutex state_mutex_;
  StatePointer state_;
  std::vector<std::weak_ptr<const CollectionState>> states_;  // that somebody may look at
  CollectionCounters counters_;
  int64_t newest_bytes_ = 0;
  int64_t dropped_ = 0;
  int64_t forget_at_ = 0;
  std::optional<Batch> batch_;
  bool closed_ = false;
  bool failed_ = false;  // a sync failed: what is on the disk is not known
};

}  // namespace kith
