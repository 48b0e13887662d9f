// Items that are added, replaced and removed: rows of SQLite, and a segment at once for a large batch.
#include <kith/error.hpp>

#include "collection/item_rows.hpp"
#include "collection/where.hpp"
#include "collection/writer.hpp"
#include "core/start_beside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kRowsTogether = 8;  // of one statement, which takes less time for each than a statement for each

void bind_id(Statement& statement, int at, const ItemIds& ids, int64_t i) {
  if (ids.type() == IdType::integer) {
    statement.bind(at, ids.numbers()[static_cast<size_t>(i)]);
  } else {
    statement.bind(at, std::string_view(ids.texts()[static_cast<size_t>(i)]));
  }
}

}  // namespace

ItemIds CollectionWriter::add(const Items& given, bool replaces, const Resources& resources) {
  // Columns may be added by another thread until the lock is held: then the values are checked again.
  std::shared_ptr<const CollectionParams> params = state()->params;
  auto items = std::make_unique<CheckedItems>(given, *params, replaces, resources);
  if (items->size() == 0) {
    const std::lock_guard lock(mutex_);
    check_writable();
    return params->ids == IdType::integer ? ItemIds(std::vector<int64_t>()) : ItemIds(std::vector<std::string>());
  }
  write([&](Call& call) {
    if (state_->params != params) {
      params = state_->params;
      items = std::make_unique<CheckedItems>(given, *params, replaces, resources);
    }
    if (!items->has_ids()) {
      if (items->size() > INT64_MAX - call.counters.next_id) {
        throw InvalidArgument(fmt::format("no ids are left behind {}, the largest that there was: give ids",
                                          call.counters.next_id - 1));
      }
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
  }, resources);
  return items->ids();
}

CollectionWriter::Inserts CollectionWriter::inserts_of(int64_t rows) {
  std::string names;
  std::string marks = "(?, ?, ?, 0, ?, ?";
  for (const Column& column : state_->params->columns) {
    names += ", " + quoted(column.name);
    marks += ", ?";
  }
  const auto times = [&](const std::string& row) {
    std::string values = row;
    for (int64_t i = 1; i < rows; ++i) values += ", " + row;
    return values;
  };
  return {rows,
          kept(fmt::format("INSERT INTO items(_row, id, _added, _removed, _hash, _payload{}) VALUES{}", names,
                           times(marks + ")"))),
          kept("INSERT INTO newest VALUES" + times("(?, ?)"))};
}

// Inserts the items from `first` on that fit the statements; `newest`: their vectors too.
void CollectionWriter::insert_rows(const CheckedItems& items, int64_t first, const Inserts& inserts, bool newest,
                                   const Call& call) {
  const size_t columns = state_->params->columns.size();
  const int64_t end = first + inserts.rows;
  Statement& insert = inserts.items;
  int at = 0;
  for (int64_t i = first; i < end; ++i) {
    insert.bind(++at, call.counters.next_row + i);
    bind_id(insert, ++at, items.ids(), i);
    insert.bind(++at, call.counters.version);
    insert.bind(++at, static_cast<int64_t>(items.hash(i)));
    const std::string_view payload = items.payload(i);
    if (payload.empty()) {
      insert.bind_null(++at);
    } else {
      insert.bind_blob(++at, std::as_bytes(std::span(payload)));
    }
    for (size_t c = 0; c < columns; ++c) insert.bind(++at, items.value(i, c));
  }
  if (!insert.run_unless_taken()) {
    if (inserts.rows > 1) {  // none was inserted: find the one whose id is taken
      const Inserts one = inserts_of(1);
      for (int64_t i = first; i < end; ++i) insert_rows(items, i, one, newest, call);
    }
    throw InvalidArgument(fmt::format("the id {} is there already, or twice among these; upsert() replaces items",
                                      id_text(items.ids(), first)));
  }
  if (!newest) return;
  Statement& vectors = inserts.newest;
  at = 0;
  for (int64_t i = first; i < end; ++i) {
    vectors.bind(++at, call.counters.next_row + i);
    vectors.bind_blob(++at, {items.vector(i), static_cast<size_t>(items.vector_bytes())});
  }
  vectors.run();
}

void CollectionWriter::insert_items(CheckedItems& items, Call& call, const Resources& resources) {
  const CollectionEnvironment& environment = directory_->environment();
  const bool at_once = items.size() * items.vector_bytes() >= environment.segment_bytes;
  const int64_t first_row = call.counters.next_row;
  // A segment is written while SQLite takes the items.
  std::vector<SegmentSource> sources;
  SegmentRow entry;
  Steps steps;
  const Resources beside = resources.with_cancel(resources.options().cancel);  // asks on the calling thread alone
  std::future<void> written;  // behind what it refers to
  const auto write_segment = [&] {
    for (const auto& step : steps) step();
  };
  if (at_once) {
    sources.push_back({items.stored(first_row), {}, true});
    entry = new_segment(call);
    steps = segment_steps(sources, entry, beside);
    if (environment.writes_beside) {
      written = start_beside(write_segment);
    } else {
      write_segment();
    }
  }
  constexpr int64_t kLook = 1024;  // items between two looks at whether the caller cancelled
  const Inserts one = inserts_of(1);
  const Inserts several = items.size() < kRowsTogether ? one : inserts_of(kRowsTogether);
  for (int64_t i = 0; i < items.size();) {
    if (i % kLook == 0) resources.check_cancelled();
    const Inserts& inserts = items.size() - i < several.rows ? one : several;
    insert_rows(items, i, inserts, !at_once, call);
    i += inserts.rows;
  }
  call.counters.next_row += items.size();
  if (!at_once) {
    call.change.blocks.push_back(items.block(first_row, resources));
    call.newest_bytes += items.size() * items.vector_bytes();
    return;
  }
  if (written.valid()) written.get();
  insert_segment(*db_, entry);
  ++call.counters.layout;
  call.change.segments.push_back(std::move(entry));
}

void CollectionWriter::remove_row(int64_t row, int64_t added, Call& call) {
  kept("DELETE FROM newest WHERE row = ?").bind(1, row).run();
  const bool was_newest = db_->changes() > 0;
  call.change.removed.push_back(row);
  if (was_newest) call.newest_bytes -= state_->params->dimension * size_of(state_->params->dtype);
  if (was_newest && added == call.counters.version) {  // no reader has seen it
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
  int64_t removed = 0;
  write([&](Call& call) {
    Statement& find = kept("SELECT _row, _added FROM items WHERE id = ? AND _removed = 0");
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
  }, resources);
  return removed;
}

int64_t CollectionWriter::remove(const ItemFilter& filter, const Resources& resources) {
  if (!filter.params_of_queries.empty()) throw InvalidArgument("params_of_queries is for searches; give params");
  if (filter.where.empty() && !filter.ids && !filter.mask) return 0;
  if (filter.ids) check_ids(*filter.ids, state()->params->ids);
  std::vector<int64_t> rows;
  write([&](Call& call) {
    if (filter.mask && batch_) throw InvalidArgument("a mask is of a version's items; within a batch give ids");
    for_each_where(*db_, {filter.where, filter.params, WhereRows::living, 0, filter.time_limit},
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
  }, resources);
  return static_cast<int64_t>(rows.size());
}

}  // namespace kith
