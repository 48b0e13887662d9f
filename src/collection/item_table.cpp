#include "collection/item_table.hpp"

#include <kith/error.hpp>

#include "collection/host_limit.hpp"
#include "collection/item_rows.hpp"
#include "collection/schema.hpp"
#include "collection/search_memory.hpp"
#include "collection/sqlite.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kith {
namespace {

// Bytes of the values and payloads of these rows, and of what holds them.
int64_t bytes_of_values(const Database& db, const CollectionParams& params, const std::vector<int64_t>& rows) {
  std::string lengths = "coalesce(length(_payload), 0)";
  for (const Column& column : params.columns) {
    if (column.type != ColumnType::text && column.type != ColumnType::json) continue;
    lengths += fmt::format(" + coalesce(length(CAST({} AS BLOB)), 0)", quoted(column.name));
  }
  Statement length = db.prepare(fmt::format("SELECT {} FROM items WHERE _row = ?", lengths));
  const auto each = static_cast<int64_t>(sizeof(std::string) + params.columns.size() * sizeof(ColumnValue));
  int64_t bytes = 0;
  for (const int64_t row : rows) {
    if (row >= 0 && length.bind(1, row).step()) bytes += length.number(0);
    length.reset();
    bytes += each;
  }
  return bytes;
}

int64_t bytes_of_ids(const ItemIds& ids) {
  if (ids.type() == IdType::integer) return ids.size() * static_cast<int64_t>(sizeof(int64_t));
  int64_t bytes = ids.size() * static_cast<int64_t>(sizeof(std::string));
  for (const std::string& id : ids.texts()) bytes += static_cast<int64_t>(id.size());
  return bytes;
}

}  // namespace

ItemTable read_items(const CollectionState& state, const ItemIds& ids, const Resources& resources) {
  const CollectionParams& params = *state.params;
  check_ids(ids, params.ids);
  const bool limited = is_limited(resources);
  const int64_t of_vectors = ids.size() * params.dimension * size_of(params.dtype);
  // A copy of the ids, and the row of each.
  int64_t others = limited ? bytes_of_ids(ids) + ids.size() * static_cast<int64_t>(sizeof(int64_t)) : 0;
  ItemTable table;
  state.reading([&](Database& db) {
    const std::vector<int64_t> rows = rows_of_ids(db, ids, state.version);
    if (limited) others += bytes_of_values(db, params, rows);
    require_host_memory("the items", (limited ? kDatabaseMemory : 0) + of_vectors + others, resources);
    const DatabaseMemory database(db, resources);
    const HostBuffer counted(others, "the items' values", resources);
    table.ids = ids.empty() && params.ids == IdType::text ? ItemIds(std::vector<std::string>()) : ids;
    table.vectors = MatrixBuffer(params.dtype, ids.size(), params.dimension, "the items' vectors", resources);
    std::string columns;
    for (const Column& column : params.columns) {
      columns += ", " + quoted(column.name);
      table.columns.push_back({column.name, {}});
      table.columns.back().values.reserve(rows.size());
    }
    table.payloads.reserve(rows.size());
    Statement item = db.prepare(fmt::format("SELECT _payload{} FROM items WHERE _row = ?", columns));
    for (int64_t i = 0; i < ids.size(); ++i) {
      constexpr int64_t kLook = 1024;  // items between checks for cancellation
      if (i % kLook == 0) resources.check_cancelled();
      const int64_t row = rows[static_cast<size_t>(i)];
      if (row < 0) throw InvalidArgument(fmt::format("the collection has no item with the id {}", id_text(ids, i)));
      const std::optional<RowAt> at = state.find(row);
      if (!at || !item.bind(1, row).step()) {
        throw_corrupt(db.path(), 0, fmt::format("the vector of the item with the id {} is stored nowhere", id_text(ids, i)));
      }
      state.parts[at->part].rows->read_vector(at->place, table.vectors.mutable_view().row(i));
      const std::span<const std::byte> payload = item.blob(0);
      table.payloads.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
      for (size_t c = 0; c < params.columns.size(); ++c) {
        table.columns[c].values.push_back(item.value(static_cast<int>(1 + c), params.columns[c].type));
      }
      item.reset();
    }
  });
  return table;
}

}  // namespace kith
