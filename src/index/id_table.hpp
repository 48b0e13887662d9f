// The rows of a version: which are live (live_rows.hpp), and their ids, the caller's int64 numbers, looked up both ways.
//
// Rows without ids of their own are their row numbers, and then there is no table. Else ids lie in segments
// (rows/segments.hpp), so that versions share them and n single adds cost n log n. One whose ids do not ascend keeps
// their order beside them. What the next row without an id gets is larger than every id there ever
// was: a removed id does not come back by itself. Where it is added again, two stored rows have it, one of them dead.
//
// Memory: 8 bytes a row, 12 where ids do not ascend. Time: log^2 n to find an id, log n to find a row's.
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
  // Read from a file: `ids` is null where rows are their own ids, else `rows` checked ones.
  IdTable(const int64_t* ids, int64_t rows, int64_t next_id, const Resources& resources);

  const LiveRows& live() const { return live_; }
  int64_t next_id() const { return next_id_; }
  // Whether ids are the numbers of stored rows.
  bool plain() const { return ids_.empty(); }
  int64_t bytes() const;  // of the ids

  int64_t id(int64_t row) const;  // of a stored row, as all below
  // Row numbers become ids, in place; -1 stays.
  void rows_to_ids(int64_t* rows, int64_t count) const;
  // The live row with that id; -1 where there is none.
  int64_t row(int64_t id) const;

  // With `count` more rows. `ids` is null where they have none of their own; else InvalidArgument for a negative one
  // and for one that is there already.
  IdTable added(const int64_t* ids, int64_t count, const Resources& resources) const;
  int64_t added_bytes(bool given, int64_t count) const;  // what that takes; `given`: ids of the caller's
  // With the rows of another table, all live. InvalidArgument for an id that both have, unless `shift`: then the other's ids move
  // behind the largest that there ever was here. What the next row gets is larger than every id of both.
  IdTable joined(const IdTable& other, bool shift, const Resources& resources) const;
  // With the rows of these ids dead; ids that are not there are no error.
  IdTable without(const int64_t* ids, int64_t count, const Resources& resources) const;
  // The ids of the rows that are kept, numbered anew: all are live.
  IdTable kept(const KeptRows& kept, const Resources& resources) const;

 private:
  struct RowIds {
    HostArray<int64_t> ids;
    HostArray<uint32_t> by_id;  // places in ascending order of ids; none where ids ascend

    RowIds(HostArray<int64_t> given, const Resources& resources);
    int64_t size() const { return ids.size(); }
    int64_t bytes() const { return ids.bytes() + by_id.bytes(); }
    // The place of a live row with that id, where the first row is number first_row; -1 where there is none.
    int64_t place(int64_t id, int64_t first_row, const LiveRows& live) const;
  };

  // With more rows, where all are their own ids.
  IdTable numbered(int64_t count, const Resources& resources) const;
  void refuse_bad(const int64_t* ids, int64_t count, const Resources& resources) const;
  // With `count` more rows, whose ids write(to) puts there.
  template <typename Write>
  IdTable grown(int64_t count, int64_t next_id, const Resources& resources, const Write& write) const;

  Segments<RowIds> ids_;
  LiveRows live_;
  int64_t next_id_ = 0;
};

}  // namespace kith
