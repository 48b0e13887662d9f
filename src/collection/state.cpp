#include "collection/state.hpp"

#include <kith/error.hpp>

#include "collection/host_limit.hpp"
#include "collection/where.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kKeptBytes = int64_t{64} << 20;  // of bitmaps that a version keeps

constexpr int64_t kJoinedBytes = int64_t{4} << 20;

// Blocks of newest rows grow as the digits of a counter: each is joined with its neighbour once that is not larger, so
// that a row is copied log n times and a search has few blocks to look at. Those of 4 MiB stay as they are: until a fold
// there are few of them.
void join_blocks(CollectionState& state, const Resources& resources) {
  const CollectionParams& params = *state.params;
  while (state.parts.size() >= state.segments + 2) {
    StatePart& last = state.parts.back();
    StatePart& before = state.parts[state.parts.size() - 2];
    if (before.rows->size() > 2 * last.rows->size()) break;
    if (before.rows->size() * params.dimension * size_of(params.dtype) >= kJoinedBytes) break;
    StatePart joined;
    joined.rows = RowBlock::join({before.rows.get(), last.rows.get()}, params.dtype, params.dimension, params.ids, resources);
    if (before.dead || last.dead) {
      PlaceBits dead(joined.rows->size(), resources);
      const int64_t first = before.rows->size();
      for (int64_t i = 0; i < joined.rows->size(); ++i) {
        if (i < first ? !before.lives(i) : !last.lives(i - first)) dead.set(i);
      }
      joined.dead = std::make_shared<const PlaceBits>(std::move(dead));
    }
    state.parts.pop_back();
    state.parts.back() = std::move(joined);
  }
}

void count_living(CollectionState& state) {
  state.size = 0;
  for (const StatePart& part : state.parts) state.size += part.living();
}

// Marks rows, making each part's bits once. Those that are stored nowhere are gone.
void mark_removed(CollectionState& state, const std::vector<int64_t>& rows, const Resources& resources) {
  std::vector<std::unique_ptr<PlaceBits>> fresh(state.parts.size());
  std::vector<int64_t> gone;
  for (const int64_t row : rows) {
    const std::optional<RowAt> at = state.find(row);
    if (!at) {  // it was dropped from the segments
      gone.push_back(row);
      continue;
    }
    std::unique_ptr<PlaceBits>& bits = fresh[at->part];
    if (!bits) {
      const StatePart& part = state.parts[at->part];
      bits = std::make_unique<PlaceBits>(part.dead ? part.dead->copy(resources)
                                                   : PlaceBits(part.rows->size(), resources));
    }
    bits->set(at->place);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (fresh[i]) state.parts[i].dead = std::make_shared<const PlaceBits>(std::move(*fresh[i]));
  }
  if (gone.empty()) return;
  if (state.gone) gone.insert(gone.end(), state.gone->begin(), state.gone->end());
  std::sort(gone.begin(), gone.end());
  state.gone = std::make_shared<const std::vector<int64_t>>(std::move(gone));
}

StatePart open_segment(const std::shared_ptr<const CollectionDirectory>& directory, const SegmentRow& row,
                       const CollectionParams& params, bool mapped) {
  StatePart part;
  auto file = std::make_shared<const SegmentFile>(directory->disk(), directory->segments(), row, params, mapped);
  part.rows = file;
  part.segment = std::make_shared<const Segment>(directory, std::move(file), params.metric);
  return part;
}

bool same_segment(const SegmentRow& a, const SegmentRow& b) {
  return a.number == b.number && a.file == b.file && a.hash == b.hash && a.index_file == b.index_file &&
         a.index_hash == b.index_hash;
}

// Newest rows from this row on, as one block; null: there are none.
std::shared_ptr<const RowBlock> read_newest(const Database& db, const CollectionParams& params, int64_t from,
                                            const Resources& resources) {
  Statement count = db.prepare("SELECT count(*) FROM newest WHERE row >= ?");
  count.bind(1, from).step();
  const int64_t rows = count.number(0);
  count.reset();
  if (rows == 0) return nullptr;
  RowBlock::Arrays arrays;
  arrays.vectors = MatrixBuffer(params.dtype, rows, params.dimension, "the newest rows", resources);
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  const int64_t row_bytes = params.dimension * size_of(params.dtype);
  Statement read = db.prepare("SELECT row, vector, id FROM newest JOIN items ON _row = row WHERE row >= ? ORDER BY row");
  read.bind(1, from);
  for (int64_t i = 0; i < rows; ++i) {
    if (!read.step()) throw_corrupt(db.path(), 0, "a newest row has no item");
    const std::span<const std::byte> vector = read.blob(1);
    if (static_cast<int64_t>(vector.size()) != row_bytes) {
      throw_corrupt(db.path(), 0, fmt::format("the vector of row {} has {} bytes, and must have {}", read.number(0),
                                              vector.size(), row_bytes));
    }
    arrays.rows.push_back(read.number(0));
    std::memcpy(arrays.vectors.mutable_view().row(i), vector.data(), vector.size());
    if (params.ids == IdType::integer) {
      numbers.push_back(read.number(2));
    } else {
      texts.emplace_back(read.text(2));
    }
  }
  arrays.ids = params.ids == IdType::integer ? ItemIds(std::move(numbers)) : ItemIds(std::move(texts));
  return std::make_shared<const RowBlock>(std::move(arrays));
}

std::vector<int64_t> read_removed(const Database& db, int64_t after) {
  std::vector<int64_t> rows;
  Statement read = db.prepare("SELECT _row FROM items WHERE _removed > 0 AND _removed > ?");
  read.bind(1, after);
  while (read.step()) rows.push_back(read.number(0));
  return rows;
}

void put(std::string& key, const ColumnValue& value) {
  key += static_cast<char>('0' + value.index());
  const auto bytes = [&](const auto& number) { key.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  if (const auto* const number = std::get_if<int64_t>(&value)) bytes(*number);
  if (const auto* const real = std::get_if<double>(&value)) bytes(*real);
  if (const auto* const truth = std::get_if<bool>(&value)) bytes(*truth);
  if (const auto* const text = std::get_if<std::string>(&value)) {
    bytes(text->size());
    key += *text;
  }
}

}  // namespace

PlaceBits::PlaceBits(int64_t places, const Resources& resources)
    : buffer_((places + 7) / 8, "a bit for each row", resources), places_(places) {
  std::memset(buffer_.data(), 0, static_cast<size_t>(buffer_.bytes()));
}

PlaceBits PlaceBits::copy(const Resources& resources) const {
  PlaceBits other(places_, resources);
  std::memcpy(other.bits(), bits(), static_cast<size_t>(buffer_.bytes()));
  other.count_ = count_;
  return other;
}

std::optional<RowAt> CollectionState::find(int64_t row) const {
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t place = parts[i].rows->place_of(row);
    if (place >= 0) return RowAt{i, place};
  }
  return std::nullopt;
}

std::vector<RowAt> CollectionState::in_order() const {
  std::vector<RowAt> items;
  std::vector<int64_t> rows;
  items.reserve(static_cast<size_t>(size));
  for (size_t p = 0; p < parts.size(); ++p) {
    for (int64_t place = 0; place < parts[p].rows->size(); ++place) {
      if (parts[p].lives(place)) items.push_back({p, place});
    }
  }
  const auto before = [&](const RowAt& a, const RowAt& b) {
    return parts[a.part].rows->row(a.place) < parts[b.part].rows->row(b.place);
  };
  if (!std::is_sorted(items.begin(), items.end(), before)) std::sort(items.begin(), items.end(), before);
  return items;
}

void CollectionState::check_remembered(const Database& db) const {
  const int64_t oldest = db.number("SELECT oldest FROM state");
  if (version >= oldest || guarded() || held()) return;
  throw InvalidState(fmt::format("'{}': items that were removed before version {} are forgotten, and this view is at "
                                 "version {}; refresh, or in a forked child open it again with mode read",
                                 directory->path(), oldest, version));
}

void CollectionState::check_removed(const Database& db, const std::vector<int64_t>& rows) const {
  if (rows.empty()) return;
  Statement seen = db.prepare("SELECT 1 FROM items WHERE _row = ?1 AND (_removed = 0 OR _removed > ?2)");
  for (const int64_t row : rows) {
    const bool missing = seen.bind(1, row).bind(2, version).step();
    seen.reset();
    if (missing) throw_corrupt(db.path(), 0, fmt::format("the vector of row {} is stored nowhere", row));
  }
}

KeptItems CollectionState::no_items(const Resources& resources) const {
  KeptItems kept;
  for (const StatePart& part : parts) kept.parts.emplace_back(part.rows->size(), resources);
  return kept;
}

std::string CollectionState::key_of(const ItemFilter& filter, const std::vector<ColumnValue>& params_of) {
  std::string key = filter.where;
  key += '\0';
  for (const ColumnValue& value : params_of) put(key, value);
  return key;
}

bool CollectionState::has_room(int64_t bytes) const {
  if (kept_bytes_ + bytes > kKeptBytes) {
    kept_.clear();
    kept_tenants_.clear();
    kept_bytes_ = 0;
  }
  return bytes <= kKeptBytes;
}

std::shared_ptr<const TenantPlaces> CollectionState::kept_tenant(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_tenants_.find(key);
  return found == kept_tenants_.end() ? nullptr : found->second;
}

void CollectionState::keep_tenant(std::string key, std::shared_ptr<const TenantPlaces> kept, int64_t kept_bytes) const {
  const int64_t bytes = static_cast<int64_t>(key.size()) + kept_bytes;
  const std::lock_guard lock(mutex_);
  if (has_room(bytes) && kept_tenants_.emplace(std::move(key), std::move(kept)).second) kept_bytes_ += bytes;
}

std::shared_ptr<const KeptItems> CollectionState::keep_where(const ItemFilter& filter,
                                                             const std::vector<ColumnValue>& params_of,
                                                             const Resources& resources) const {
  std::string key = key_of(filter, params_of);
  const bool keeps = !is_limited(resources);
  if (keeps) {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
  }
  KeptItems kept = no_items(resources);
  reading([&](Database& db) {
    const DatabaseMemory counted(db, resources);
    std::vector<int64_t> unknown;
    for_living([&](const auto& row) {
      for_each_where(db, {filter.where, params_of, WhereRows::of_version_and_others, version, filter.time_limit}, row, resources);
    }, [&](size_t part, int64_t place) { kept.total += kept.parts[part].set(place) ? 1 : 0; }, unknown);
    check_removed(db, unknown);
  });
  auto shared = std::make_shared<const KeptItems>(std::move(kept));
  if (keeps) {
    int64_t bytes = static_cast<int64_t>(key.size());
    for (const PlaceBits& bits : shared->parts) bytes += bits.places() / 8;
    const std::lock_guard lock(mutex_);
    if (has_room(bytes) && kept_.emplace(std::move(key), shared).second) kept_bytes_ += bytes;
  }
  return shared;
}

std::shared_ptr<const KeptItems> CollectionState::keep(const ItemFilter& filter,
                                                       const std::vector<ColumnValue>& params_of,
                                                       const Resources& resources) const {
  if (filter.where.empty() && !params_of.empty()) {
    throw InvalidArgument("params belong to an expression, and where is empty");
  }
  std::shared_ptr<const KeptItems> kept;
  const auto intersect = [&](KeptItems fresh) {
    if (kept != nullptr) {
      KeptItems both = no_items(resources);
      for (size_t p = 0; p < parts.size(); ++p) {
        for (int64_t i = 0; i < fresh.parts[p].places(); ++i) {
          if (fresh.parts[p].has(i) && kept->parts[p].has(i)) both.parts[p].set(i);
        }
        both.total += both.parts[p].count();
      }
      fresh = std::move(both);
    }
    kept = std::make_shared<const KeptItems>(std::move(fresh));
  };
  if (!filter.where.empty()) kept = keep_where(filter, params_of, resources);
  if (filter.ids) {
    KeptItems listed = no_items(resources);
    const std::vector<int64_t> rows = reading([&](Database& db) {
      const DatabaseMemory counted(db, resources);
      return rows_of_ids(db, *filter.ids, version);
    });
    for (const int64_t row : rows) {
      if (row < 0) continue;
      const std::optional<RowAt> at = find(row);
      if (at && parts[at->part].lives(at->place)) listed.total += listed.parts[at->part].set(at->place) ? 1 : 0;
    }
    intersect(std::move(listed));
  }
  if (filter.mask) {
    if (static_cast<int64_t>(filter.mask->size()) != size) {
      throw InvalidArgument(fmt::format("a mask has a byte for each of the {} items; {} were given", size,
                                        filter.mask->size()));
    }
    KeptItems masked = no_items(resources);
    const std::vector<RowAt> items = in_order();
    for (size_t i = 0; i < items.size(); ++i) {
      if ((*filter.mask)[i] != 0) masked.total += masked.parts[items[i].part].set(items[i].place) ? 1 : 0;
    }
    intersect(std::move(masked));
  }
  return kept;
}

StatePointer load_state(const Database& db, const std::shared_ptr<const CollectionDirectory>& directory,
                        const StatePointer& before, bool mapped, const Resources& resources) {
  // A compaction may delete a segment between our look at the list and at the file: then the list is another.
  constexpr int kTries = 100;
  for (int tried = 0;; ++tried) {
    auto state = std::make_shared<CollectionState>();
    state->directory = directory;
    auto& writable = const_cast<Database&>(db);
    const bool nested = db.in_transaction();
    if (!nested) writable.run("BEGIN");
    try {
      const CollectionCounters counters = read_counters(db);
      state->version = counters.version;
      state->layout = counters.layout;
      state->next_row = counters.next_row;
      const bool known = before != nullptr && before->layout == counters.layout && before->version >= counters.oldest;
      if (known && before->version == counters.version) {
        if (!nested) writable.run("COMMIT");
        return before;
      }
      state->params = std::make_shared<const CollectionParams>(read_params(db));
      if (before != nullptr && before->params->columns == state->params->columns &&
          before->params->index == state->params->index) {
        state->params = before->params;
      }
      if (known) {
        state->parts = before->parts;
        state->segments = before->segments;
        state->gone = before->gone;
      } else {
        for (const SegmentRow& row : read_segments(db)) {
          const auto open = before == nullptr
                                ? std::vector<StatePart>::const_iterator()
                                : std::find_if(before->parts.begin(), before->parts.end(), [&](const StatePart& part) {
                                    return part.segment && same_segment(part.segment->entry(), row);
                                  });
          if (before != nullptr && open != before->parts.end()) {
            state->parts.push_back(*open);
            state->parts.back().dead = nullptr;
          } else {
            state->parts.push_back(open_segment(directory, row, *state->params, mapped));
          }
        }
        state->segments = state->parts.size();
      }
      if (auto block = read_newest(db, *state->params, known ? before->next_row : 0, resources)) {
        StatePart part;
        part.rows = std::move(block);
        state->parts.push_back(std::move(part));
      }
      mark_removed(*state, read_removed(db, known ? before->version : 0), resources);
      join_blocks(*state, resources);
      count_living(*state);
      if (!nested) writable.run("COMMIT");
      return state;
    } catch (const IoError& error) {
      if (!nested && db.in_transaction()) writable.run("ROLLBACK");
      const bool gone = error.code() == ENOENT && error.path() != db.path();
      const bool moved = gone && !nested && read_counters(db).layout != state->layout;
      if (!moved || tried == kTries) {
        if (gone) {
          throw IoError(fmt::format("{}; the collection's database names it: put it back, or restore a snapshot",
                                    error.what()), error.path(), error.code());
        }
        throw;
      }
    } catch (...) {
      if (!nested && db.in_transaction()) sqlite3_exec(db.get(), "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  }
}

StatePointer changed_state(const StatePointer& before, const StateChange& change, int64_t version, int64_t layout,
                           int64_t next_row, bool mapped, const Resources& resources) {
  auto state = std::make_shared<CollectionState>();
  state->directory = before->directory;
  state->params = before->params;
  state->version = version;
  state->layout = layout;
  state->next_row = next_row;
  state->gone = before->gone;
  state->parts.assign(before->parts.begin(), before->parts.begin() + static_cast<std::ptrdiff_t>(before->segments));
  for (const SegmentRow& row : change.segments) {
    state->parts.push_back(open_segment(state->directory, row, *state->params, mapped));
  }
  state->segments = state->parts.size();
  state->parts.insert(state->parts.end(), before->parts.begin() + static_cast<std::ptrdiff_t>(before->segments),
                      before->parts.end());
  for (const auto& block : change.blocks) {
    StatePart part;
    part.rows = block;
    state->parts.push_back(std::move(part));
  }
  mark_removed(*state, change.removed, resources);
  join_blocks(*state, resources);
  count_living(*state);
  return state;
}

std::vector<int64_t> rows_of_ids(Database& db, const ItemIds& ids, int64_t version) {
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(ids.size()));
  Statement find = db.prepare(fmt::format("SELECT _row FROM items WHERE id = ?1 AND _removed = 0 AND +_added <= {0} "
                                          "UNION ALL SELECT _row FROM items WHERE id = ?1 AND _removed > 0 "
                                          "AND +_removed > {0} AND +_added <= {0}", version));
  for (int64_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (ids.type() == IdType::integer) {
      find.bind(1, ids.numbers()[at]);
    } else {
      find.bind(1, std::string_view(ids.texts()[at]));
    }
    rows.push_back(find.step() ? find.number(0) : -1);
    find.reset();
  }
  return rows;
}

}  // namespace kith
