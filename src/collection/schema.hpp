// The tables of collection.sqlite (see docs/collection-schema.md), and the collection's parameters and counters.
#pragma once

#include <kith/collection.hpp>

#include "collection/sqlite.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kith {

inline constexpr int64_t kCollectionApplication = 0x4b697468;  // "Kith"
inline constexpr int64_t kCollectionSchema = 1;
inline constexpr const char* kDatabaseName = "collection.sqlite";
inline constexpr const char* kSegmentsName = "segments";
inline constexpr const char* kReadersName = "readers";
inline constexpr const char* kLockName = "lock";

// The counters of the one row of `state`.
struct CollectionCounters {
  int64_t version = 0;    // the newest
  int64_t layout = 0;     // changes with the list of segments
  int64_t next_row = 0;   // of the next item
  int64_t next_id = 0;    // that the collection gives: above all that it ever had
  int64_t next_file = 1;  // the number in the name of the next segment or index
  int64_t oldest = 0;     // items that were removed before this version may be forgotten
};

struct SegmentRow {
  int64_t number = 0;
  std::string file;  // in segments/
  int64_t rows = 0;
  int64_t first_row = 0;
  int64_t last_row = 0;
  int64_t bytes = 0;
  int64_t hash = 0;  // of the file's header and table
  std::string index_file;  // empty: none
  std::string index_factory;
  int64_t index_bytes = 0;
  int64_t index_hash = 0;
};

// Checks that it is a name that can stand in SQL; InvalidArgument else.
void check_column_name(const std::string& name);
// As it stands in SQL.
std::string quoted(const std::string& name);

void create_schema(Database& db, const CollectionParams& params);
// CorruptFile for what is no collection, Unsupported for another version.
void check_schema(const Database& db);
CollectionParams read_params(const Database& db);
void add_column_to_schema(Database& db, const Column& column, int64_t place);
void add_index_to_schema(Database& db, const std::string& column);

CollectionCounters read_counters(const Database& db);
void write_counters(Database& db, const CollectionCounters& counters);

std::vector<SegmentRow> read_segments(const Database& db);
void insert_segment(Database& db, const SegmentRow& row);

}  // namespace kith
