// A segment as searches use it: its file, an index over its vectors where there is one, and a Flat index that refers to
// them where it is searched exactly. Both are made when they are first asked for.
#pragma once

#include <kith/index.hpp>

#include "collection/directory.hpp"
#include "collection/stored_rows.hpp"

#include <memory>
#include <mutex>

namespace kith {

class Segment {
 public:
  Segment(std::shared_ptr<const CollectionDirectory> directory, std::shared_ptr<const SegmentFile> file, Metric metric)
      : directory_(std::move(directory)), file_(std::move(file)), metric_(metric) {}

  const std::shared_ptr<const SegmentFile>& file() const { return file_; }
  const SegmentRow& entry() const { return file_->entry(); }
  // Over the mapped rows, which it borrows; null where they are not mapped.
  std::shared_ptr<const Index> flat(const Resources& resources) const;
  // Null where there is none, or where its file is missing or damaged: a warning says so once, and the segment is
  // searched exactly.
  std::shared_ptr<const Index> index(const Resources& resources) const;
  // The same for one that turned out to be damaged.
  void distrust_index(const std::string& reason, const Resources& resources) const;

 private:
  std::shared_ptr<const CollectionDirectory> directory_;
  std::shared_ptr<const SegmentFile> file_;
  Metric metric_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Index> flat_;
  mutable std::shared_ptr<const Index> index_;
  mutable std::shared_ptr<MemoryBudget> index_budget_;  // that a loaded index counts against
  mutable bool bad_index_ = false;
};

// Writes an index beside the segments, under this name; the caller makes the name durable and names it in a transaction.
// Returns its bytes and the hash of its header and table.
struct IndexFileFacts {
  int64_t bytes = 0;
  int64_t hash = 0;
};
IndexFileFacts write_index_file(const CollectionDirectory& directory, const Index& index, const std::string& name,
                                const Resources& resources);

}  // namespace kith
