// The shards of a merge from disk (ggm_on_disk.hpp): their rows in files, their graphs and lists as steps of a work
// folder.
//
// Graphs and lists are packed neighbours in sections of rows (list_sections.hpp). In a shard's graph they are rows of
// that shard, in its lists rows of all shards. Hashes of the rows stand before the graph.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "graph/build/ggm/list_sections.hpp"
#include "graph/build/ggm/shard_work.hpp"
#include "io/work_folder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kith {

// Two shards that are merged, the first one before the second.
struct ShardPair {
  int64_t first = 0;
  int64_t second = 0;
};

class ShardsOnDisk {
 public:
  // Both must outlive it. Without a folder where memory is only counted.
  ShardsOnDisk(const ShardWork& work, WorkFolder* folder);

  const ShardWork& work() const { return work_; }
  WorkFolder& folder() const { return *folder_; }
  int64_t k() const { return work_.graphs.k; }
  Metric metric() const { return work_.graphs.metric; }
  int64_t count() const { return static_cast<int64_t>(work_.shards.size()); }
  int64_t rows() const { return firsts_.back(); }
  int64_t first_of(int64_t shard) const { return firsts_[static_cast<size_t>(shard)]; }
  int64_t size(int64_t shard) const { return source(shard).rows(); }
  const VectorFile& source(int64_t shard) const { return work_.shards[static_cast<size_t>(shard)].x; }
  int64_t largest_size() const;
  // The rows of the largest shard behind this one; of two shards together.
  int64_t largest_later(int64_t shard) const;
  int64_t largest_pair() const;

  // The steps of a shard, and the mark of a pair.
  static std::string graph_name(int64_t shard);
  static std::string lists_name(int64_t shard);
  static std::string pair_name(const ShardPair& pair);
  ListSections graph_sections(int64_t shard) const { return {size(shard), k(), 1}; }
  ListSections list_sections(int64_t shard) const { return {size(shard), k(), 0}; }
  // A section of lists for each thread.
  HostArray<uint64_t> section_memory(const Resources& on) const {
    return HostArray<uint64_t>(on.threads() * kShardSectionRows * k(), "lists", on);
  }
  // A graph's neighbour, packed; padding where there is none.
  uint64_t packed(const KnnGraph& graph, int64_t row, int64_t j) const;

  bool is_merged(const ShardPair& pair) const { return folder_->find(pair_name(pair)).has_value(); }
  // Whether the shard's graph is: it is still to be merged with another.
  bool is_needed(int64_t shard) const;
  // Lists that are gone must hear of all pairs again.
  void forget_lost_lists();
  // None where the shard has not been merged with any other. Lists that are lost while pairs count as merged must not
  // begin anew: what those pairs found would be missing.
  std::optional<StepFile> lists_so_far(int64_t shard) const;
  // What remains to be written of graphs that are still needed.
  int64_t graph_bytes_to_write() const;
  // What a shard's lists take on the disk.
  int64_t list_bytes(int64_t shard) const;

  // Checks rows that this work has hashed, in another process.
  void verify(const Resources& on) const;
  // Makes a shard's graph, or checks the one that is given, and writes it with the hashes of the rows.
  void make_graph(int64_t shard, const Resources& on);
  // A shard's graph, and its rows to this place; both as they were.
  KnnGraph load(int64_t shard, const MutableMatrixView& rows, const Resources& on) const;

  // Counts the memory of a shard's graph while it is made.
  void count_graph(int64_t shard, const Resources& on) const;

 private:
  using Look = std::function<void(int64_t, const MatrixView&)>;

  const std::optional<KnnGraph>& given(int64_t shard) const { return work_.shards[static_cast<size_t>(shard)].graph; }
  std::vector<uint64_t> pass(int64_t shard, const std::vector<uint64_t>* known, const Resources& on,
                             const Look& look) const;
  void check_given(int64_t shard, const Resources& on) const;
  std::vector<uint64_t> survey_given(int64_t shard, const std::vector<uint64_t>* known, const Resources& on) const;
  std::vector<uint64_t> read_rows(int64_t shard, const MutableMatrixView& rows, const std::vector<uint64_t>* known,
                                  const Resources& on) const;
  KnnGraph graph_of(const MatrixView& rows, int64_t first, const Resources& on) const;
  void write_graph(int64_t shard, const KnnGraph& graph, const std::vector<uint64_t>& hashes, const Resources& on);

  const ShardWork& work_;
  WorkFolder* const folder_;
  std::vector<int64_t> firsts_;  // rows before each shard, and all rows
};

}  // namespace kith
