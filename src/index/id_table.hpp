// The rows of a version: which are live (live_rows.hpp), and their ids, with lookup in both directions.
//
// If the ids are the row numbers, there is no table. Otherwise ids are stored in segments (rows/segments.hpp), which
// versions share, so that n single adds cost n log n. A segment whose ids do not ascend also stores their order. The
// next automatic id is larger than every id ever used: a removed id does not come back by itself. If the caller adds it
// again, two stored rows have it, one of them dead.
//
// Memory: 8 bytes per row, 12 if ids do not ascend. Time: log^2 n to find the row of an id, log n for the id of a row.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "index/live_rows.hpp"
#include "rows/kept_rows.hpp"
#include "rows/segments.hpp"

#include <cstdint>

namespace kith {

class IdTable {
 public:
  // No rows.
  IdTable() = default;
  // From a file: `ids` is null if ids are row numbers, otherwise `rows` ids that have been checked.
  IdTable(const int64_t* ids, int64_t rows, int64_t next_id, const Resources& resources);

  const LiveRows& live() const { return live_; }
  int64_t next_id() const { return next_id_; }
  // Whether ids are the numbers of stored rows.
  bool plain() const { return ids_.empty(); }
  int64_t bytes() const;  // of the ids

  int64_t id(int64_t row) const;  // rows are stored rows, here and below
  // Replaces row numbers by ids, in place; -1 stays.
  void rows_to_ids(int64_t* rows, int64_t count) const;
  // The live row with that id, or -1.
  int64_t row(int64_t id) const;

  // With `count` more rows. `ids` is null for automatic ids; otherwise InvalidArgument for negative and for existing
  // ones.
  IdTable added(const int64_t* ids, int64_t count, const Resources& resources) const;
  int64_t added_bytes(bool given, int64_t count) const;  // memory of added(); `given`: with the caller's ids
  // With the rows of another table, all live. InvalidArgument for an id that both have, unless `shift`, which moves the
  // other's ids above all ids ever used here. The next automatic id is larger than every id of both.
  IdTable joined(const IdTable& other, bool shift, const Resources& resources) const;
  // With the rows of these ids dead; unknown ids are ignored.
  IdTable without(const int64_t* ids, int64_t count, const Resources& resources) const;
  // Only the kept rows, renumbered, all live.
  IdTable kept(const KeptRows& kept, const Resources& resources) const;

 private:
  struct RowIds {
    HostArray<int64_t> ids;
    HostArray<uint32_t> by_id;  // places in ascending order of ids; empty if ids ascend

    RowIds(HostArray<int64_t> given, const Resources& resources);
    int64_t size() const { return ids.size(); }
    int64_t bytes() const { return ids.bytes() + by_id.bytes(); }
    // The place of the live row with that id, or -1; the segment begins at row first_row.
    int64_t place(int64_t id, int64_t first_row, const LiveRows& live) const;
  };

  // With more rows, if all ids are row numbers.
  IdTable numbered(int64_t count, const Resources& resources) const;
  void refuse_bad(const int64_t* ids, int64_t count, const Resources& resources) const;
  // With `count` more rows, whose ids write(to) provides.
  template <typename Write>
  IdTable grown(int64_t count, int64_t next_id, const Resources& resources, const Write& write) const;

  Segments<RowIds> ids_;
  LiveRows live_;
  int64_t next_id_ = 0;
};

}  // namespace kith
