// A segment as searches use it: its file, an index over its vectors where there is one, and a Flat index that refers to
// them where it is searched exactly by many queries. Both are made when they are first asked for.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/index.hpp>

#include "collection/directory.hpp"
#include "collection/stored_rows.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace kith {

// An index as one search uses it. `counted`: its memory, against the limit of a call that did not load it itself.
struct SegmentIndex {
  std::shared_ptr<const Index> index;  // null: there is none
  HostBuffer counted;
};

// Whether a GPU may search: it has copies of its own, which an index keeps and makes when it is first searched there.
bool searches_copies(const Resources& resources);

class Segment {
 public:
  Segment(std::shared_ptr<const CollectionDirectory> directory, std::shared_ptr<const SegmentFile> file, Metric metric)
      : directory_(std::move(directory)), file_(std::move(file)), metric_(metric) {}

  const std::shared_ptr<const SegmentFile>& file() const { return file_; }
  const SegmentRow& entry() const { return file_->entry(); }
  // Over the mapped rows, which it borrows, with a copy laid out for searches; null where there is none yet. Making it
  // reads every row: on the CPU it comes when as many queries were asked as make up for that, and where memory is free.
  std::shared_ptr<const Index> flat(int64_t queries, const Resources& resources) const;
  // Without one where there is none, or where its file is missing or damaged: a warning says so once, and the segment is
  // searched exactly. Without a memory limit it is mapped; under limits it is loaded once, for all of them. A mapped index
  // lays out what it opens anew for each search: it is loaded too when so many queries were asked that this pays, and
  // where memory is free.
  SegmentIndex index(int64_t queries, const Resources& resources) const;
  // The same for one that turned out to be damaged.
  void distrust_index(const std::string& reason, const Resources& resources) const;

 private:
  std::shared_ptr<const Index> open_index(bool mapped, const Resources& resources) const;
  // Whether `queries` more make a copy of so many bytes worth while. `asked` counts them.
  static bool copy_pays(std::atomic<int64_t>& asked, int64_t queries, int64_t enough, int64_t bytes);

  std::shared_ptr<const CollectionDirectory> directory_;
  std::shared_ptr<const SegmentFile> file_;
  Metric metric_;
  mutable std::atomic<int64_t> asked_{0};          // queries that were searched without a copy of the rows
  mutable std::atomic<int64_t> asked_of_index_{0};  // and by the mapped index
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Index> flat_;
  mutable std::shared_ptr<const Index> mapped_index_;
  mutable std::shared_ptr<const Index> loaded_index_;
  mutable std::shared_ptr<MemoryBudget> loaded_budget_;  // that it counts against
  mutable bool bad_index_ = false;
};

// Writes an index beside the segments, under this name; the caller makes the name durable and names it in a transaction.
// Returns its bytes and the hash of its header and table.
struct WrittenIndexFile {
  int64_t bytes = 0;
  int64_t hash = 0;
};
WrittenIndexFile write_index_file(const CollectionDirectory& directory, const Index& index, const std::string& name,
                                const Resources& resources);

}  // namespace kith
