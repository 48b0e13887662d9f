// One segment of all rows, and indexes over segments.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "collection/host_limit.hpp"
#include "collection/writer.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace kith {

// The same segment with an index, whose file has its name.
SegmentRow CollectionWriter::indexed(const SegmentRow& segment, const std::string& factory, Call& call,
                                     const Resources& resources) {
  SegmentRow entry = segment;
  entry.index_file.clear();
  entry.index_factory.clear();
  if (factory == "Flat" || segment.rows < directory_->environment().index_rows) return entry;
  const CollectionParams& params = *state_->params;
  const bool limited = is_limited(resources);
  auto file =
      std::make_shared<const SegmentFile>(directory_->disk(), directory_->segments(), segment, params, !limited);
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
  const WrittenIndexFile written = write_index_file(*directory_, index, entry.index_file, resources);
  entry.index_factory = factory;
  entry.index_bytes = written.bytes;
  entry.index_hash = written.hash;
  return entry;
}

void CollectionWriter::compact(const Resources& resources) {
  const std::lock_guard lock(mutex_);
  check_writable();
  check_no_batch("compact()");
  const DatabaseMemory counted(*db_, resources);
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
    rearrange([&](Call& call, const Commit& commit) {
      SegmentRow entry;
      if (whole) {
        entry = state_->parts[0].segment->entry();
      } else if (items > 0) {
        entry = new_segment(call);
        for (const auto& step : segment_steps(sources, entry, resources)) step();
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
  try {
    if (has_gaps()) pack_database(resources);
    db_->run("PRAGMA incremental_vacuum");
    db_->run("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (const SyncFailed&) {
    failed_ = true;
    throw;
  }
}

// Whether removed items have left more than an eighth of the database's pages empty.
bool CollectionWriter::has_gaps() const {
  constexpr int64_t kShare = 8;
  if (state_->size == counters_.next_row) return false;  // none was ever removed
  try {
    Statement pages = db_->prepare("SELECT sum(unused), sum(pgsize) FROM dbstat WHERE aggregate = TRUE");
    return pages.step() && pages.number(0) > pages.number(1) / kShare;
  } catch (const InvalidState&) {  // an SQLite without this table
    return false;
  }
}

// SQLite writes a copy without gaps, and then that over the database, as one transaction.
void CollectionWriter::pack_database(const Resources& resources) {
  constexpr int64_t kInMemory = int64_t{64} << 20;
  const int64_t bytes = db_->number("PRAGMA page_count") * db_->number("PRAGMA page_size");
  const int64_t before = db_->number("PRAGMA temp_store");
  if (bytes > kInMemory) db_->run("PRAGMA temp_store=FILE");
  tidy([&] {
    try {
      db_->run("VACUUM");
    } catch (const SyncFailed&) {
      failed_ = true;
      throw;
    }
  }, resources);
  db_->run(fmt::format("PRAGMA temp_store={}", before));
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
  rearrange([&](Call& call, const Commit& commit) {
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

}  // namespace kith
