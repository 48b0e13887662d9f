#include "collection/schema.hpp"

#include <kith/error.hpp>
#include <kith/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr std::array<std::pair<std::string_view, ColumnType>, 9> kTypes{{{"int", ColumnType::integer},
                                                                         {"real", ColumnType::real},
                                                                         {"text", ColumnType::text},
                                                                         {"bool", ColumnType::boolean},
                                                                         {"json", ColumnType::json},
                                                                         {"integer", ColumnType::integer},
                                                                         {"float", ColumnType::real},
                                                                         {"str", ColumnType::text},
                                                                         {"boolean", ColumnType::boolean}}};

std::string_view sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::integer:
    case ColumnType::boolean: return "INTEGER";
    case ColumnType::real: return "REAL";
    default: return "TEXT";
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

[[noreturn]] void throw_no_collection(const Database& db, std::string_view reason) {
  throw CorruptFile(fmt::format("'{}' is no collection's database: {}", db.path(), reason), db.path(), 0);
}

std::string read_value(const Database& db, std::string_view key) {
  Statement statement = db.prepare("SELECT value FROM collection WHERE key=?");
  if (!statement.bind(1, key).step()) throw_no_collection(db, fmt::format("there is no '{}'", key));
  return std::string(statement.text(0));
}

}  // namespace

std::string_view name_of(ColumnType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return name;
  }
  return "?";
}

ColumnType parse_column_type(std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  throw InvalidArgument(fmt::format("'{}' is no type of a column; there are int, real, text, bool and json", name));
}

void check_column_name(const std::string& name) {
  const bool begins = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
  const bool proper = begins && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                        return std::isalnum(c) != 0 || c == '_';
                      });
  constexpr size_t kLongest = 128;
  if (!proper || name.size() > kLongest) {
    throw InvalidArgument(fmt::format("'{}' cannot be the name of a column: give up to {} letters, digits and "
                                      "underscores, the first of them a letter", name.substr(0, kLongest), kLongest));
  }
  for (const std::string_view taken : {"id", "rowid", "oid"}) {
    if (lower(name) == taken) throw InvalidArgument(fmt::format("no column can be called '{}': items have one", name));
  }
}

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

void CollectionParams::validate() const {
  constexpr int64_t kWidest = int64_t{1} << 20;
  if (dimension < 1 || dimension > kWidest) {
    throw InvalidArgument(fmt::format("a collection's vectors have 1 to {} columns; dimension is {}", kWidest, dimension));
  }
  if (dtype == DType::f64) throw InvalidArgument("a collection stores f32, f16, bf16, u8 or i8; f64 becomes f32");
  if (metric == Metric::hamming && dtype != DType::u8) {
    throw InvalidArgument(fmt::format("hamming compares u8 vectors; the collection's dtype is {}", name_of(dtype)));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    check_column_name(columns[i].name);
    for (size_t k = 0; k < i; ++k) {
      if (lower(columns[i].name) == lower(columns[k].name)) {
        throw InvalidArgument(fmt::format("there are two columns called '{}'", columns[i].name));
      }
    }
  }
  IndexParams index_params;
  index_params.metric = metric;
  (void)Index(index, index_params);  // which says what is wrong with a factory string
}

void create_schema(Database& db, const CollectionParams& params) {
  db.run("PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL");
  Transaction whole(db);
  db.run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kCollectionApplication, kCollectionSchema));
  db.run("CREATE TABLE collection(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID");
  db.run("CREATE TABLE columns(place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, "
         "indexed INTEGER NOT NULL)");
  db.run("CREATE TABLE state(one INTEGER PRIMARY KEY CHECK(one = 1), version INTEGER NOT NULL, layout INTEGER NOT NULL, "
         "next_row INTEGER NOT NULL, next_id INTEGER NOT NULL, next_file INTEGER NOT NULL, oldest INTEGER NOT NULL)");
  db.run("CREATE TABLE segments(number INTEGER PRIMARY KEY, file TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL, "
         "first_row INTEGER NOT NULL, last_row INTEGER NOT NULL, bytes INTEGER NOT NULL, hash INTEGER NOT NULL, "
         "index_file TEXT, index_factory TEXT, index_bytes INTEGER, index_hash INTEGER)");
  db.run("CREATE TABLE newest(row INTEGER PRIMARY KEY, vector BLOB NOT NULL)");
  db.run("CREATE TABLE dropped(row INTEGER PRIMARY KEY)");
  db.run(fmt::format("CREATE TABLE items(_row INTEGER PRIMARY KEY, id {} NOT NULL, _added INTEGER NOT NULL, "
                     "_removed INTEGER NOT NULL, _hash INTEGER NOT NULL, _payload BLOB)",
                     params.ids == IdType::integer ? "INTEGER" : "TEXT"));
  // Each item is in one of the first two.
  db.run("CREATE UNIQUE INDEX items_id ON items(id) WHERE _removed = 0");
  db.run("CREATE INDEX items_removed_id ON items(id) WHERE _removed > 0");
  db.run("CREATE INDEX items_removed ON items(_removed) WHERE _removed > 0");
  const std::array<std::pair<std::string_view, std::string>, 5> values{
      {{"dimension", std::to_string(params.dimension)},
       {"metric", std::string(name_of(params.metric))},
       {"dtype", std::string(name_of(params.dtype))},
       {"ids", params.ids == IdType::integer ? "int" : "text"},
       {"index", params.index}}};
  Statement insert = db.prepare("INSERT INTO collection VALUES(?, ?)");
  for (const auto& [key, value] : values) insert.bind(1, key).bind(2, std::string_view(value)).run();
  db.run("INSERT INTO state VALUES(1, 0, 0, 0, 0, 1, 0)");
  for (size_t i = 0; i < params.columns.size(); ++i) {
    add_column_to_schema(db, params.columns[i], static_cast<int64_t>(i));
  }
  whole.commit();
}

void check_schema(const Database& db) {
  const int64_t application = db.number("PRAGMA application_id");
  if (application != kCollectionApplication) throw_no_collection(db, "its application id is another");
  const int64_t version = db.number("PRAGMA user_version");
  if (version != kCollectionSchema) {
    throw Unsupported(fmt::format("'{}' has schema version {}; this Kith knows version {}{}", db.path(), version,
                                  kCollectionSchema, version > kCollectionSchema ? ": a newer one may open it" : ""));
  }
}

CollectionParams read_params(const Database& db) {
  CollectionParams params;
  try {
    const std::string dimension = read_value(db, "dimension");
    const auto [end, error] = std::from_chars(dimension.data(), dimension.data() + dimension.size(), params.dimension);
    if (error != std::errc() || *end != '\0') throw InvalidArgument("its dimension is no number");
    params.metric = parse_metric(read_value(db, "metric"));
    params.dtype = parse_dtype(read_value(db, "dtype"));
    params.ids = read_value(db, "ids") == "text" ? IdType::text : IdType::integer;
    params.index = read_value(db, "index");
    Statement columns = db.prepare("SELECT name, type, indexed FROM columns ORDER BY place");
    while (columns.step()) {
      params.columns.push_back({std::string(columns.text(0)), parse_column_type(columns.text(1)), columns.number(2) != 0});
    }
    params.validate();
  } catch (const InvalidArgument& error) {
    throw_no_collection(db, error.what());
  }
  return params;
}

void add_column_to_schema(Database& db, const Column& column, int64_t place) {
  db.run(fmt::format("ALTER TABLE items ADD COLUMN {} {}", quoted(column.name), sql_type(column.type)));
  db.prepare("INSERT INTO columns VALUES(?, ?, ?, 0)")
      .bind(1, place)
      .bind(2, std::string_view(column.name))
      .bind(3, name_of(column.type))
      .run();
  if (column.indexed) add_index_to_schema(db, column.name);
}

// With the versions in the index a filter by the column alone does not look at the items.
void add_index_to_schema(Database& db, const std::string& column) {
  db.run(fmt::format("CREATE INDEX {} ON items({}, _added, _removed)", quoted("items_by_" + column), quoted(column)));
  db.prepare("UPDATE columns SET indexed=1 WHERE name=?").bind(1, std::string_view(column)).run();
}

CollectionCounters read_counters(const Database& db) {
  Statement state = db.prepare("SELECT version, layout, next_row, next_id, next_file, oldest FROM state");
  if (!state.step()) throw_no_collection(db, "its table 'state' is empty");
  return {state.number(0), state.number(1), state.number(2), state.number(3), state.number(4), state.number(5)};
}

void write_counters(Database& db, const CollectionCounters& counters) {
  db.prepare("UPDATE state SET version=?, layout=?, next_row=?, next_id=?, next_file=?, oldest=?")
      .bind(1, counters.version)
      .bind(2, counters.layout)
      .bind(3, counters.next_row)
      .bind(4, counters.next_id)
      .bind(5, counters.next_file)
      .bind(6, counters.oldest)
      .run();
}

std::vector<SegmentRow> read_segments(const Database& db) {
  std::vector<SegmentRow> rows;
  Statement from = db.prepare(
      "SELECT number, file, rows, first_row, last_row, bytes, hash, index_file, index_factory, index_bytes, index_hash "
      "FROM segments ORDER BY first_row, number");
  while (from.step()) {
    SegmentRow row;
    row.number = from.number(0);
    row.file = from.text(1);
    row.rows = from.number(2);
    row.first_row = from.number(3);
    row.last_row = from.number(4);
    row.bytes = from.number(5);
    row.hash = from.number(6);
    row.index_file = from.text(7);
    row.index_factory = from.text(8);
    row.index_bytes = from.number(9);
    row.index_hash = from.number(10);
    // A name from the database must not lead elsewhere.
    for (const std::string& name : {row.file, row.index_file}) {
      if (name.find('/') != std::string::npos) throw_no_collection(db, "a segment's name is a path");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void insert_segment(Database& db, const SegmentRow& row) {
  Statement insert = db.prepare("INSERT INTO segments VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, row.number).bind(2, std::string_view(row.file)).bind(3, row.rows).bind(4, row.first_row);
  insert.bind(5, row.last_row).bind(6, row.bytes).bind(7, row.hash);
  if (row.index_file.empty()) {
    for (int at = 8; at <= 11; ++at) insert.bind_null(at);
  } else {
    insert.bind(8, std::string_view(row.index_file)).bind(9, std::string_view(row.index_factory));
    insert.bind(10, row.index_bytes).bind(11, row.index_hash);
  }
  insert.run();
}

}  // namespace kith
