// What a collection stands on, so that tests can put another disk under it, break it, and make small what is large.
#pragma once

#include "io/disk.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kith {

// The steps that determine the state after a crash: tests omit one and expect that this is detected.
enum class DurableStep : uint8_t {
  none,
  sync_new_database,         // create, snapshot: the database before it gets its name
  sync_new_folder,           // and the folder with that name and segments/ in it
  sync_parent_folder,        // and the parent folder
  sync_segment,              // a segment, and an index, before it gets its name
  sync_segments_folder,      // and the folder, before a transaction names it
};

struct CollectionEnvironment {
  Disk* disk = &real_disk();
  std::string vfs;  // of SQLite; empty: its own

  int64_t fold_bytes = int64_t{64} << 20;        // of newest vectors; more are folded at a write
  int64_t close_fold_bytes = int64_t{4} << 20;   // the same at close
  int64_t segment_bytes = int64_t{64} << 20;     // of the vectors of a batch that becomes a segment at once
  int64_t rewrite_bytes = int64_t{256} << 20;    // of segments that one fold writes anew
  int64_t index_rows = 65536;                    // that a segment needs to get an index
  int64_t least_dropped = 4096;                  // removed items that are forgotten together
  bool writes_beside = true;                     // files on a thread of their own; false: calls of the disk have one order

  // For tests of the tests.
  DurableStep left_out = DurableStep::none;
  int swapped = -1;  // this step of a fold comes after the next

  bool does(DurableStep step) const { return step != left_out; }
};

}  // namespace kith
