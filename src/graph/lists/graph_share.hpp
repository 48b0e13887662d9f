// One graph, built in memory by several ranks: all of them have the same rows, and each compares those of its share.
//
// The results of each rank are exchanged before the next step begins, so that all then have the same lists. Every
// exchange begins with an agreement (ranks/agreement.hpp): an exception of one rank between two of them ends all.
//
// Ranks that are processes, on CPUs, send each other their lists. Parts of one process exchange pointers, and each
// reads what it needs, on GPUs by device_share_cuda.hpp; they fill one graph, each the rows of its share.
//
// Exchanged, a row and rank: at most 16 bytes x k for each wave of probes; 8 bytes for each slot of an inbox and for
// each neighbour of a list in a round of NN-Descent.
#pragma once

#include <kith/communicator.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/lists/working_lists.hpp"
#include "ranks/agreement.hpp"
#include "ranks/mutual_reads.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class GraphShare {
 public:
  // `reads`: of parts of one process; null where ranks are processes.
  GraphShare(Communicator& ranks, int64_t rows, const MutualReads* reads = nullptr)
      : ranks_(ranks), all_(rows), reads_(reads) {}

  Communicator& ranks() const { return ranks_; }
  // Parts of one process, which fill one graph.
  bool are_parts() const { return reads_ != nullptr; }
  const MutualReads& reads() const { return *reads_; }
  bool leads() const { return ranks_.rank() == 0; }
  // The rows of this rank, or of another: a contiguous range.
  RankPart rows() const { return rows_of(ranks_.rank()); }
  RankPart rows_of(int rank) const { return part_of(all_, 1, rank, ranks_.size()); }

  // Completes the values of all rows, `each` per row, of which this rank has computed its own.
  template <typename T>
  void give(T* values, int64_t each) const {
    agree(ranks_, nullptr);
    ranks_.all_gather(values + rows().first * each, bytes_of(each * static_cast<int64_t>(sizeof(T))), values);
  }
  // Copies `values` of the first rank to all.
  template <typename T>
  void take_first(T* values, int64_t count) const {
    agree(ranks_, nullptr);
    ranks_.broadcast(0, values, count * static_cast<int64_t>(sizeof(T)));
  }
  int64_t sum(int64_t own) const;

  // Gathers a value from every rank, in order. Parts publish pointers this way, and may change the data only after all
  // have read it and called meet().
  template <typename T>
  std::vector<T> told_by_all(const T& own) const {
    agree(ranks_, nullptr);
    std::vector<T> all(static_cast<size_t>(ranks_.size()));
    ranks_.all_gather(&own, std::vector<int64_t>(all.size(), sizeof(T)), all.data());
    return all;
  }
  // A barrier: returns once all ranks have called it.
  void meet() const { agree(ranks_, nullptr); }

  // Merges the lists of all ranks, each of which has offered what it compared. `own`: each only to the lists of its
  // rows. `room` has room_rows() lists.
  void join(WorkingLists& lists, bool own, const HostArray<uint64_t>& room, const Resources& resources) const;
  // Completes the lists of all rows, of which each rank has those of its own.
  void give_lists(WorkingLists& lists, const Resources& resources) const;
  // Offers wait in `slots` words of each row, the least of each slot: leaves those of all ranks for the rank's own
  // rows. `room` has those of room_rows() rows. The others have read this rank's when it returns.
  void gather_offers(uint64_t* offers, int64_t slots, const HostArray<uint64_t>& room,
                     const Resources& resources) const;
  // The rows of all ranks whose lists are exchanged together; none of parts, which read them in place.
  int64_t room_rows() const;
  // The same of a part on a GPU: the rows whose lists it takes at a time, of so many that are its own, and the memory
  // that one of so many parts needs for all rows.
  static int64_t rows_taken_at_once(int64_t own_rows, int64_t length);
  static int64_t device_bytes_to_join(int64_t rows, int64_t length, int parts);
  // The same for offers in so many slots of each row.
  static int64_t device_bytes_to_gather(int64_t rows, int64_t slots, int parts);

  // The first k of all rows of `x`, which the rank's device reads, for each query, which are in host memory; each rank
  // looks through its share.
  Neighbors search(const MatrixView& queries, const MatrixView& x, Metric metric, int64_t k,
                   const Resources& resources) const;

 private:
  std::vector<int64_t> bytes_of(int64_t row_bytes) const;
  template <typename Use>
  void for_found(const uint64_t* values, int64_t each, const HostArray<uint64_t>& room, const Resources& resources,
                 const Use& use) const;
  template <typename Use>
  void for_found_in_place(const uint64_t* values, int64_t each, const Resources& resources, const Use& use) const;

  Communicator& ranks_;
  const int64_t all_;
  const MutualReads* const reads_;
};

}  // namespace kith
