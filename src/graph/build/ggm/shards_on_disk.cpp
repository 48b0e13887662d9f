#include "graph/build/ggm/shards_on_disk.hpp"

#include "core/divide.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/ggm/graph_parts.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/working_lists.hpp"
#include "io/row_slice.hpp"
#include "rows/finite_check.hpp"
#include "rows/rows_info.hpp"
#include "rows/threaded_rows.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kFewestVerified = 64;  // rows at a time
constexpr int64_t kMostVerified = 8192;

std::vector<uint64_t> hashes_in(const StepFile& graph) { return graph.values<uint64_t>(0); }

}  // namespace

ShardsOnDisk::ShardsOnDisk(const ShardWork& work, WorkFolder* folder) : work_(work), folder_(folder), firsts_{0} {
  for (const DiskShard& shard : work.shards) firsts_.push_back(firsts_.back() + shard.x.rows());
}

int64_t ShardsOnDisk::largest_size() const {
  int64_t most = 0;
  for (int64_t shard = 0; shard < count(); ++shard) most = std::max(most, size(shard));
  return most;
}

int64_t ShardsOnDisk::largest_later(int64_t shard) const {
  int64_t most = 0;
  for (int64_t later = shard + 1; later < count(); ++later) most = std::max(most, size(later));
  return most;
}

int64_t ShardsOnDisk::largest_pair() const {
  int64_t most = 0;
  for (int64_t shard = 0; shard + 1 < count(); ++shard) most = std::max(most, size(shard) + largest_later(shard));
  return most;
}

std::string ShardsOnDisk::graph_name(int64_t shard) { return fmt::format("graph-{}", shard); }
std::string ShardsOnDisk::lists_name(int64_t shard) { return fmt::format("lists-{}", shard); }
std::string ShardsOnDisk::pair_name(const ShardPair& pair) {
  return fmt::format("pair-{}-{}", std::min(pair.first, pair.second), std::max(pair.first, pair.second));
}

uint64_t ShardsOnDisk::packed(const KnnGraph& graph, int64_t row, int64_t j) const {
  const int64_t id = graph.ids(row)[j];
  if (id < 0) return kPadding;
  const float distance = graph.distances(row)[j];
  return pack_neighbor(ordered_key(larger_is_nearer(metric()) ? -distance : distance), static_cast<uint32_t>(id));
}

bool ShardsOnDisk::is_needed(int64_t shard) const {
  for (int64_t other = 0; other < count(); ++other) {
    if (other != shard && !is_merged({shard, other})) return true;
  }
  return false;
}

void ShardsOnDisk::forget_lost_lists() {
  for (int64_t shard = 0; shard < count(); ++shard) {
    if (folder_->find(lists_name(shard))) continue;
    for (int64_t other = 0; other < count(); ++other) {
      if (other != shard) folder_->remove(pair_name({shard, other}));
    }
  }
}

std::optional<StepFile> ShardsOnDisk::lists_so_far(int64_t shard) const {
  std::optional<StepFile> lists = folder_->find(lists_name(shard));
  for (int64_t other = 0; !lists && other < count(); ++other) {
    if (other != shard && is_merged({shard, other})) return folder_->open(lists_name(shard));  // which throws
  }
  return lists;
}

int64_t ShardsOnDisk::graph_bytes_to_write() const {
  int64_t bytes = 0;
  for (int64_t shard = 0; shard < count(); ++shard) {
    if (!is_needed(shard) || folder_->find(graph_name(shard))) continue;
    const int64_t hashes = divide_up(size(shard), rows_per_hash(source(shard)));
    bytes += list_bytes(shard) + StepFile::end_bytes(1) + 8 * hashes;
  }
  return bytes;
}

int64_t ShardsOnDisk::list_bytes(int64_t shard) const {
  return size(shard) * k() * 8 + StepFile::end_bytes(list_sections(shard).count());
}

void ShardsOnDisk::verify(const Resources& on) const {
  for (int64_t shard = 0; shard < count(); ++shard) {
    const std::optional<StepFile> step = folder_->find(graph_name(shard));
    if (!step) continue;
    const std::vector<uint64_t> hashes = hashes_in(*step);
    if (given(shard)) {
      (void)survey_given(shard, &hashes, on);
    } else {
      (void)pass(shard, &hashes, on, [](int64_t, const MatrixView&) {});
    }
  }
}

// Goes over the rows of a shard, and returns their hashes; compared with those that are known.
std::vector<uint64_t> ShardsOnDisk::pass(int64_t shard, const std::vector<uint64_t>* known, const Resources& on,
                                         const Look& look) const {
  const VectorFile& x = source(shard);
  const int64_t batch = rows_that_fit(std::min(kFewestVerified, x.rows()), std::min(kMostVerified, x.rows()), on,
                                      [&](int64_t rows) { return pass_bytes(x, rows); });
  return pass_over(x, known == nullptr ? "survey" : "verify", {batch}, known, on, look);
}

void ShardsOnDisk::check_given(int64_t shard, const Resources& on) const {
  check_part({*given(shard), slice_of(source(shard), 0, size(shard))}, fmt::format("graph {}", shard + 1),
             PartDistances::of_rows, on);
}

// A pass over rows whose graph is given, which must be comparable.
std::vector<uint64_t> ShardsOnDisk::survey_given(int64_t shard, const std::vector<uint64_t>* known,
                                                 const Resources& on) const {
  const auto number = static_cast<size_t>(shard);
  const std::string name = work_.names.empty() ? fmt::format("x{}", shard + 1) : work_.names[number];
  return pass(shard, known, on, [&](int64_t first, const MatrixView& rows) {
    if (work_.merges.check_finite) refuse_not_finite(name, rows, {first}, on);
    if (metric() == Metric::chi_square) refuse_negative(name, rows, {first}, on);
  });
}

// The rows of a shard, and their hashes; compared with those that are known.
std::vector<uint64_t> ShardsOnDisk::read_rows(int64_t shard, const MutableMatrixView& rows,
                                              const std::vector<uint64_t>* known, const Resources& on) const {
  read_by_threads(source(shard), on).read(0, rows);
  on.check_cancelled();
  SourceHasher hasher(source(shard));
  hasher.update(rows, known, on);
  return hasher.finish(known);
}

// The graph of rows that are in memory, or that are counted. `first`: the row of all shards that is their first.
KnnGraph ShardsOnDisk::graph_of(const MatrixView& rows, int64_t first, const Resources& on) const {
  const GraphOutput out({rows.rows(), k()}, on);
  GraphReport told;
  call_or_count(on, [&](const Resources& used) {
    naming_rows("x", [&] { told = knn_graph(rows, out.view(), work_.graphs, used); }, first);
  });
  return out.graph(metric(), std::move(told));
}

void ShardsOnDisk::make_graph(int64_t shard, const Resources& on) {
  if (given(shard)) {
    check_given(shard, on);
    return write_graph(shard, *given(shard), survey_given(shard, nullptr, on), on);
  }
  MatrixBuffer rows(source(shard).dtype(), size(shard), source(shard).cols(), "a shard", on);
  const std::vector<uint64_t> hashes = read_rows(shard, rows.mutable_view(), nullptr, on);
  write_graph(shard, graph_of(rows.view(), first_of(shard), on), hashes, on);
}

void ShardsOnDisk::count_graph(int64_t shard, const Resources& on) const {
  if (given(shard)) {
    if (given(shard)->ids() != nullptr) check_given(shard, on);  // else it is still to be built
    (void)survey_given(shard, nullptr, on);
  } else {
    const MatrixBuffer rows(source(0).dtype(), size(shard), source(0).cols(), "a shard", on);
    (void)graph_of(rows.view(), 0, on);
  }
}

void ShardsOnDisk::write_graph(int64_t shard, const KnnGraph& graph, const std::vector<uint64_t>& hashes,
                               const Resources& on) {
  const ListSections sections = graph_sections(shard);
  const HostArray<uint64_t> memory = section_memory(on);
  StepWriter writer(*folder_, graph_name(shard));
  writer.lay_out(sections.sizes({static_cast<int64_t>(hashes.size()) * 8}));
  writer.put(0, std::as_bytes(std::span(hashes)));
  sections.for_each(memory, on, [&](int64_t section, uint64_t* lists) {
    for (int64_t i = 0; i < sections.rows(section); ++i) {
      const int64_t row = sections.first(section) + i;
      for (int64_t j = 0; j < k(); ++j) lists[i * k() + j] = packed(graph, row, j);
    }
    writer.put(1 + section, sections.bytes(section, lists));
  });
  writer.commit();
}

KnnGraph ShardsOnDisk::load(int64_t shard, const MutableMatrixView& rows, const Resources& on) const {
  const StepFile step = folder_->open(graph_name(shard));
  const std::vector<uint64_t> hashes = hashes_in(step);
  (void)read_rows(shard, rows, &hashes, on);
  const GraphOutput out({size(shard), k()}, on);
  const ListSections sections = graph_sections(shard);
  const HostArray<uint64_t> memory = section_memory(on);
  const ResultExit exit(metric());
  sections.for_each(memory, on, [&](int64_t section, uint64_t* lists) {
    sections.read(step, section, lists);
    const int64_t at = sections.first(section) * k();
    write_results(exit, lists, sections.rows(section) * k(), out.view().ids + at, out.view().distances + at);
  });
  return out.graph(metric(), {});
}

}  // namespace kith
