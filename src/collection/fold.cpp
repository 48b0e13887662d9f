// Makes a segment of the newest rows, together with segments that are small or mostly removed; and deletes removed
// items once no reader can see them.
#include <kith/error.hpp>

#include "collection/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace kith {
namespace {

// Steps in their order, or with one of them after its neighbour, for the proof that tests see it.
void run_steps(const std::vector<std::function<void()>>& steps, int swapped) {
  const auto count = static_cast<int>(steps.size());
  if (swapped + 1 >= count) swapped = -1;
  for (int i = 0; i < count; ++i) {
    int at = i;
    if (i == swapped) at = i + 1;
    if (i == swapped + 1 && swapped >= 0) at = i - 1;
    steps[static_cast<size_t>(at)]();
  }
}

}  // namespace

// Drops the rows of a source that are not kept; their items are deleted once no reader sees them.
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
  const DatabaseMemory counted(*db_, resources);
  fold_now(resources);
  give_pages_back();
}

// SQLite keeps the pages that a fold empties for the next newest rows; where a writer has done its work they are given
// back to the file system, if they are more than a quarter of the file.
void CollectionWriter::give_pages_back() {
  constexpr int64_t kShare = 4;
  if (db_->number("PRAGMA freelist_count") <= db_->number("PRAGMA page_count") / kShare) return;
  db_->run("PRAGMA incremental_vacuum");
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
  // Segments that are mostly dead, and then those that are at most twice what is written anyway, so that there are
  // never many of them.
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

  rearrange([&](Call& call, const Commit& commit) {
    SegmentRow entry = new_segment(call);
    Steps steps = segment_steps(sources, entry, resources);
    const bool any = !steps.empty();
    std::vector<std::string> old;
    for (const SegmentRow& row : replaced) old.insert(old.end(), {row.file, row.index_file});
    steps.emplace_back([&] {
      commit([&] {
        for (const SegmentRow& row : replaced) {
          db_->prepare("DELETE FROM segments WHERE number = ?").bind(1, row.number).run();
        }
        if (any) insert_segment(*db_, entry);
        db_->run("DELETE FROM newest");
        drop_rows(sources, call);
      });
    });
    steps.emplace_back([&] { remove_files(old); });
    run_steps(steps, environment.swapped);
  }, resources);
}

void CollectionWriter::tidy(const std::function<void()>& work, const Resources& resources) {
  try {
    work();
  } catch (const Error& error) {
    resources.log(LogLevel::warning, fmt::format("'{}' could not be tidied up, which loses nothing: {}",
                                                 directory_->path(), error.what()));
  }
}

void CollectionWriter::fold_by_itself(int64_t at_bytes, const Resources& resources) {
  if (batch_ || closed_ || failed_) return;
  tidy([&] {
    if (newest_bytes_ >= at_bytes) fold_now(resources);
    if (dropped_ >= forget_at_ && dropped_ >= state_->size / 4) forget(resources);
  }, resources);
}

// Removed items without vectors are kept as long as a reader uses a version that contains them. First publishes that no
// reader may open such a version any more, then checks which are in use, then deletes.
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

}  // namespace kith
