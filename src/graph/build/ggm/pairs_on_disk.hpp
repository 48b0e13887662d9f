// Merges pairs of shards for GGM from disk (ggm_on_disk.hpp): in memory where two have room there, else from disk by
// the same rounds. What a merge finds for the rows of a shard is offered to the shard's lists.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "graph/build/ggm/shards_on_disk.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace kith {

// Where pairs are merged: from disk or in memory, whichever takes less, or in memory all of them.
enum class PairPlaces : uint8_t { anywhere, in_memory };

// The shard whose pairs a device merges, in front of a place for the other.
struct LoadedShard {
  int64_t shard = -1;
  std::optional<Resources> together;  // who merges its pairs in memory; none: they are merged from disk
  std::optional<MatrixBuffer> rows;
  KnnGraph graph;
};

class PairsOnDisk {
 public:
  // The shards must outlive it, and so must the resources. `keep`: graphs that are no longer needed stay. `most_rows`:
  // of pairs that are merged in memory, for tests.
  PairsOnDisk(ShardsOnDisk& shards, bool keep, int64_t most_rows, const Resources& resources);

  // Counts the memory of the pair that takes most: one of the two largest shards, which is merged from disk if it has
  // more rows than a list, unless devices are dealt pairs.
  void count(PairPlaces places) const;
  // Who merges the pairs of a shard with later ones in memory, the device or the CPU; none: they are merged from disk.
  std::optional<Resources> room_for_pairs_of(int64_t shard, const Resources& on) const;
  // What the pairs that are merged from disk take there at most; none where several devices are dealt pairs.
  int64_t joining_bytes(const Resources& devices) const;

  // Merges two and marks them as merged. `loaded` is the first, or becomes it.
  void merge(const ShardPair& pair, LoadedShard& loaded, const Resources& on);
  // Removes what a process left that was killed in a merge from disk.
  void forget_joins(const ShardPair& pair);
  // Removes a shard's graph once all its pairs are merged.
  void remove_if_merged(int64_t shard);

  // As in memory: the least recall of all pairs, and the rounds of the only one.
  GraphReport report() const;

 private:
  bool fits_a_list(int64_t rows) const;
  Footprint in_memory(int64_t a, int64_t b, const Resources& resources) const;
  Footprint from_disk(const ShardPair& pair) const;
  std::optional<Resources> room_in_memory(int64_t a, int64_t b, const Resources& on) const;
  void merge_in_memory(const ShardPair& pair, LoadedShard& loaded, const Resources& on);
  void merge_from_disk(const ShardPair& pair, const Resources& on);
  template <typename Read>
  void add_lists(int64_t shard, const Read& read, const ShardPair& pair, const Resources& on);
  void end_pair(const ShardPair& pair, const GraphReport& report);

  ShardsOnDisk& shards_;
  const bool keep_;
  const int64_t most_rows_;
  const Resources& resources_;
  const Resources quiet_;
  const std::unique_ptr<std::mutex[]> listing_;  // held while lists of a shard are written
};

}  // namespace kith
