#include "graph/build/ggm/ggm_on_disk.hpp"

#include <kith/error.hpp>
#include <kith/row_reader.hpp>

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/cells_on_disk/source_pass.hpp"
#include "graph/build/descent_on_disk/descent_on_disk.hpp"
#include "graph/build/descent_on_disk/stored_round.hpp"
#include "graph/build/ggm/ggm_shards.hpp"
#include "graph/build/ggm/graph_parts.hpp"
#include "graph/build/ggm/list_sections.hpp"
#include "graph/build/ggm/pair_row_reader.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/working_lists.hpp"
#include "io/row_slice.hpp"
#include "ranks/parts.hpp"
#include "rows/finite_check.hpp"
#include "rows/rows_info.hpp"
#include "rows/threaded_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kFewestVerified = 64;  // rows at a time
constexpr int64_t kMostVerified = 8192;

std::string graph_name(int64_t shard) { return fmt::format("graph-{}", shard); }
std::string lists_name(int64_t shard) { return fmt::format("lists-{}", shard); }
std::string pair_name(int64_t a, int64_t b) { return fmt::format("pair-{}-{}", std::min(a, b), std::max(a, b)); }

// What the merge of two shards has told.
struct PairTold {
  GraphRecall recall;
  int64_t has_recall = 0;
  int64_t reached = 1;
};

// Two shards that are merged.
struct ShardPair {
  int64_t first = 0;
  int64_t second = 0;
};

std::string join_prefix(const ShardPair& pair) { return fmt::format("join-{}-{}-", pair.first, pair.second); }

// Where the pairs of a count are merged: from disk or in memory, whichever takes less, or in memory all of them.
enum class Pairs { anywhere, in_memory };

// Several devices are dealt shards, then pairs. A shard's lists are written by one at a time.
class MergeOnDisk {
 public:
  // Without a folder where memory is only counted.
  MergeOnDisk(const ShardWork& work, WorkFolder* folder, bool keep, int64_t most_rows, const Resources& resources)
      : work_(work),
        shards_(static_cast<int64_t>(work.shards.size())),
        metric_(work.graphs.metric),
        k_(work.graphs.k),
        folder_(folder),
        keep_(keep),
        most_rows_(most_rows),
        resources_(resources),
        quiet_(resources.with_progress({})),
        listing_(std::make_unique<std::mutex[]>(static_cast<size_t>(shards_))) {
    firsts_.push_back(0);
    for (const DiskShard& shard : work.shards) firsts_.push_back(firsts_.back() + shard.x.rows());
  }

  // What every phase takes at least: the graph of the largest shard, and a pair of the two largest, which is merged from
  // disk if it has more rows than a list, unless devices are dealt pairs.
  void count(Pairs pairs = Pairs::anywhere) {
    std::vector<int64_t> sizes;
    for (int64_t shard = 0; shard < shards_; ++shard) sizes.push_back(size(shard));
    std::sort(sizes.rbegin(), sizes.rend());
    const ReadMemory reading = source(0).reserve_memory(quiet_);
    const HostArray<uint64_t> sections = section_memory(quiet_);
    const HostArray<uint64_t> found = section_memory(quiet_);
    const int64_t at_once = resources_.threads() * kShardSectionRows;
    {
      const WorkingLists working(at_once, k_, quiet_);
      const Neighbors parts[] = {Neighbors(at_once, k_, quiet_), Neighbors(at_once, k_, quiet_)};
    }
    const Reservation tables(StepFile::table_bytes(6 * divide_up(sizes[0], kShardSectionRows)), 0, quiet_);
    for (int64_t shard = 0; shard < shards_; ++shard) {
      if (given(shard)) {
        if (given(shard)->ids() != nullptr) check_given(shard, quiet_);  // else it is still to be built
        (void)survey_given(shard, nullptr, quiet_);
      } else if (size(shard) == sizes[0]) {
        const MatrixBuffer rows(source(0).dtype(), sizes[0], source(0).cols(), "a shard", quiet_);
        (void)make_graph(rows.view(), 0, quiet_);
      }
    }
    int64_t most_in_a_list = 0;
    int64_t largest[2] = {-1, -1};
    for (int64_t a = 0; a < shards_; ++a) {
      for (int64_t b = a + 1; b < shards_; ++b) {
        const int64_t rows = size(a) + size(b);
        if (fits_a_list(rows)) {
          if (rows <= most_in_a_list) continue;
          most_in_a_list = rows;
          count_work(in_memory(size(a), size(b), resources_), quiet_);
        } else if (largest[0] < 0 || rows > size(largest[0]) + size(largest[1])) {
          largest[0] = a;
          largest[1] = b;
        }
      }
    }
    if (largest[0] < 0) return;
    const int64_t both = size(largest[0]) + size(largest[1]);
    const Footprint memory = in_memory(size(largest[0]), size(largest[1]), quiet_);
    if (pairs == Pairs::in_memory) return count_work(memory, quiet_);
    const Footprint disk = from_disk(largest[0], largest[1]);
    count_work(both <= most_rows_ && memory.host < disk.host ? memory : disk, quiet_);
  }

  GraphReport run(GraphSink& sink) {
    const ReadMemory reading = source(0).reserve_memory(quiet_);
    forget_lost_lists();
    if (folder_->resumed()) verify_sources();
    const Resources devices = devices_with_room();
    require_room(sink, devices);
    make_graphs(devices);
    merge_all(devices);
    write(sink);
    return report();
  }

 private:
  // The shard whose pairs a device merges, in front of a place for the other.
  struct Loaded {
    int64_t shard = -1;
    std::optional<Resources> together;  // who merges its pairs in memory; none: they are merged from disk
    std::optional<MatrixBuffer> rows;
    KnnGraph graph;
  };

  int64_t first_of(int64_t shard) const { return firsts_[static_cast<size_t>(shard)]; }
  int64_t size(int64_t shard) const { return work_.shards[static_cast<size_t>(shard)].x.rows(); }
  const VectorFile& source(int64_t shard) const { return work_.shards[static_cast<size_t>(shard)].x; }
  const std::optional<KnnGraph>& given(int64_t shard) const { return work_.shards[static_cast<size_t>(shard)].graph; }
  ListSections graph_sections(int64_t shard) const { return {size(shard), k_, 1}; }
  ListSections list_sections(int64_t shard) const { return {size(shard), k_, 0}; }
  // A section of lists for each thread.
  HostArray<uint64_t> section_memory(const Resources& on) const {
    return HostArray<uint64_t>(on.threads() * kShardSectionRows * k_, "lists", on);
  }

  // All devices, where each has room for a pair in memory; else the first.
  Resources devices_with_room() const {
    if (!is_shared(resources_)) return quiet_;
    const Resources first = quiet_.with_device(resources_.device());
    if (size_of_largest_pair() > most_rows_) return first;
    const Footprint needed = needed_by_parts(resources_, [&](const Resources& part) {
      return counted(part, [&](const Resources& counting) {
        MergeOnDisk(work_, nullptr, false, most_rows_, counting).count(Pairs::in_memory);
      });
    });
    return parts_have_room("graphs of shards, from disk", needed, resources_) ? quiet_ : first;
  }

  bool is_merged(int64_t a, int64_t b) { return folder_->find(pair_name(a, b)).has_value(); }
  bool is_needed(int64_t shard) {
    for (int64_t other = 0; other < shards_; ++other) {
      if (other != shard && !is_merged(shard, other)) return true;
    }
    return false;
  }

  // Lists that are gone must hear of all pairs again.
  void forget_lost_lists() {
    for (int64_t shard = 0; shard < shards_; ++shard) {
      if (folder_->find(lists_name(shard))) continue;
      for (int64_t other = 0; other < shards_; ++other) {
        if (other != shard) folder_->remove(pair_name(shard, other));
      }
    }
  }

  // None where the shard has not been merged with any other. Lists that are lost while pairs count as merged must not
  // begin anew: what those pairs found would be missing.
  std::optional<StepFile> lists_so_far(int64_t shard) {
    std::optional<StepFile> lists = folder_->find(lists_name(shard));
    for (int64_t other = 0; !lists && other < shards_; ++other) {
      if (other != shard && is_merged(shard, other)) return folder_->open(lists_name(shard));  // which throws
    }
    return lists;
  }

  std::vector<uint64_t> hashes_in(const StepFile& step) const {
    std::vector<uint64_t> hashes(static_cast<size_t>(step.bytes(0)) / sizeof(uint64_t));
    step.read(0, hashes.data());
    return hashes;
  }

  // What is to be written from here on, at its fullest: graphs beside lists, of which those of a shard are there twice
  // while they are written anew, by each of `devices`, and the graph of all beside the lists. Less what is there already.
  void require_room(const GraphSink& sink, const Resources& devices) {
    int64_t largest = 0;
    int64_t graphs = 0;
    int64_t all_lists = 0;
    for (int64_t shard = 0; shard < shards_; ++shard) {
      const int64_t sections = list_sections(shard).count();
      const int64_t lists = size(shard) * k_ * 8 + StepFile::end_bytes(sections);
      const int64_t hashes = divide_up(size(shard), rows_per_hash(source(shard)));
      if (is_needed(shard) && !folder_->find(graph_name(shard))) graphs += lists + StepFile::end_bytes(1) + 8 * hashes;
      largest = std::max(largest, lists);
      all_lists += lists;
    }
    constexpr int64_t kTold = 4096;  // of a pair, with its rounds
    const int64_t pairs = shards_ * (shards_ - 1) / 2 * kTold + joining_bytes(devices);
    const int64_t stored =
        folder_->stored_bytes("lists-") + folder_->stored_bytes("pair-") + folder_->stored_bytes("join-");
    const int64_t lists = std::max<int64_t>(all_lists + pairs - stored, 0);
    const int64_t merged = sink.bytes_beside(folder_->path());
    const int64_t merging = graphs + lists + largest * std::min<int64_t>(devices.parts(), shards_);
    if (keep_) return folder_->require_space(merging + merged);
    folder_->require_space(std::max(merging, lists + merged - folder_->stored_bytes("graph-")));
  }

  // Checks the shards against what another process hashed.
  void verify_sources() {
    for (int64_t shard = 0; shard < shards_; ++shard) {
      const std::optional<StepFile> step = folder_->find(graph_name(shard));
      if (!step) continue;
      const std::vector<uint64_t> hashes = hashes_in(*step);
      if (given(shard)) {
        (void)survey_given(shard, &hashes, quiet_);
      } else {
        (void)pass(shard, &hashes, quiet_, [](int64_t, const MatrixView&) {});
      }
    }
  }

  // Goes over the rows of a shard, and returns their hashes; compared with those that are known.
  std::vector<uint64_t> pass(int64_t shard, const std::vector<uint64_t>* known, const Resources& on,
                             const std::function<void(int64_t, const MatrixView&)>& look) const {
    const VectorFile& x = source(shard);
    const int64_t batch = rows_that_fit(std::min(kFewestVerified, x.rows()), std::min(kMostVerified, x.rows()), on,
                                        [&](int64_t rows) { return pass_bytes(x, rows); });
    return pass_over(x, known == nullptr ? "survey" : "verify", {batch}, known, on, look);
  }

  void check_given(int64_t shard, const Resources& on) const {
    check_part({*given(shard), slice_of(source(shard), 0, size(shard))}, fmt::format("graph {}", shard + 1),
               PartDistances::of_rows, on);
  }

  // The same of rows whose graph is given, which must be comparable.
  std::vector<uint64_t> survey_given(int64_t shard, const std::vector<uint64_t>* known, const Resources& on) const {
    const std::string name = work_.names.empty() ? fmt::format("x{}", shard + 1) : work_.names[static_cast<size_t>(shard)];
    return pass(shard, known, on, [&](int64_t first, const MatrixView& rows) {
      if (work_.merges.check_finite) refuse_not_finite(name, rows, {first}, on);
      if (metric_ == Metric::chi_square) refuse_negative(name, rows, {first}, on);
    });
  }

  // The rows of a shard, and their hashes; compared with those that are known.
  std::vector<uint64_t> load(int64_t shard, const MutableMatrixView& rows, const std::vector<uint64_t>* known,
                             const Resources& on) const {
    read_by_threads(source(shard), on).read(0, rows);
    on.check_cancelled();
    SourceHasher hasher(source(shard));
    hasher.update(rows, known, on);
    return hasher.finish(known);
  }

  // A graph of rows that are in memory, or that are counted.
  KnnGraph make_graph(const MatrixView& rows, int64_t first, const Resources& on) const {
    const GraphOutput out({rows.rows(), k_}, on);
    GraphReport told;
    call_or_count(on, [&](const Resources& used) {
      naming_rows("x", [&] { told = knn_graph(rows, out.view(), work_.graphs, used); }, first);
    });
    return out.graph(metric_, std::move(told));
  }

  void make_graphs(const Resources& devices) {
    ProgressMeter meter("graphs", shards_, resources_);
    deal_steps(shards_, devices, [&](int64_t shard, const Resources& part) {
      const Resources on = part.with_progress({});
      if (is_needed(shard) && !folder_->find(graph_name(shard))) {
        if (given(shard)) {
          check_given(shard, on);
          write_graph(shard, *given(shard), survey_given(shard, nullptr, on), on);
        } else {
          MatrixBuffer rows(source(shard).dtype(), size(shard), source(shard).cols(), "a shard", on);
          const std::vector<uint64_t> hashes = load(shard, rows.mutable_view(), nullptr, on);
          write_graph(shard, make_graph(rows.view(), first_of(shard), on), hashes, on);
        }
      }
      meter.add(1);
      meter.checkpoint();
    });
    meter.finish();
  }

  uint64_t packed(const KnnGraph& graph, int64_t row, int64_t j, int64_t id) const {
    const float distance = graph.distances(row)[j];
    return pack_neighbor(ordered_key(larger_is_nearer(metric_) ? -distance : distance), static_cast<uint32_t>(id));
  }

  void write_graph(int64_t shard, const KnnGraph& graph, const std::vector<uint64_t>& hashes, const Resources& on) {
    const ListSections sections = graph_sections(shard);
    const HostArray<uint64_t> memory = section_memory(on);
    StepWriter writer(*folder_, graph_name(shard));
    writer.lay_out(sections.sizes({static_cast<int64_t>(hashes.size()) * 8}));
    writer.put(0, std::as_bytes(std::span(hashes)));
    sections.for_each(memory, on, [&](int64_t section, uint64_t* lists) {
      for (int64_t i = 0; i < sections.rows(section); ++i) {
        const int64_t row = sections.first(section) + i;
        for (int64_t j = 0; j < k_; ++j) {
          const int64_t id = graph.ids(row)[j];
          lists[i * k_ + j] = id < 0 ? kPadding : packed(graph, row, j, id);
        }
      }
      writer.put(1 + section, sections.bytes(section, lists));
    });
    writer.commit();
  }

  // A shard's graph, and its rows to this place; both as they were.
  KnnGraph load_shard(int64_t shard, const MutableMatrixView& rows, const Resources& on) {
    const StepFile step = folder_->open(graph_name(shard));
    const std::vector<uint64_t> hashes = hashes_in(step);
    (void)load(shard, rows, &hashes, on);
    const GraphOutput out({size(shard), k_}, on);
    const ListSections sections = graph_sections(shard);
    const HostArray<uint64_t> memory = section_memory(on);
    const ResultExit exit(metric_);
    sections.for_each(memory, on, [&](int64_t section, uint64_t* lists) {
      sections.read(step, section, lists);
      const int64_t at = sections.first(section) * k_;
      write_results(exit, lists, sections.rows(section) * k_, out.view().ids + at, out.view().distances + at);
    });
    return out.graph(metric_, {});
  }

  // Two shards are merged in memory where that has room, else from disk, by the same rounds.
  bool fits_a_list(int64_t rows) const { return rows - 1 <= merge_list_length(work_.merges, k_); }
  // The memory of a pair beside what every pair takes.
  Footprint in_memory(int64_t a, int64_t b, const Resources& resources) const {
    return counted(resources, [&](const Resources& counting) {
      const Resources quiet = counting.with_progress({});
      const WorkingLists working(resources.threads() * kShardSectionRows, k_, quiet);
      const MatrixBuffer rows(source(0).dtype(), a + b, source(0).cols(), "two shards", quiet);
      const GraphOutput first({a, k_}, quiet);
      const GraphOutput second({b, k_}, quiet);
      const GraphOutput both({a + b, k_}, quiet);
      count_call(quiet, [&](const Resources& used) {
        merge_graphs({{first.graph(metric_, {}), rows.view().slice(0, a)}, {second.graph(metric_, {}), rows.view().slice(a, b)}},
                     both.view(), work_.merges, used);
      });
    });
  }
  Footprint from_disk(int64_t a, int64_t b) const {
    return counted(quiet_, [&](const Resources& counting) {
      const MergeOnDisk merge(work_, nullptr, false, most_rows_, counting);
      const WorkingLists working(resources_.threads() * kShardSectionRows, k_, counting);
      const PairDescent pair(merge, {a, b});
      DescentOnDisk descent(pair.task(), nullptr, counting);
      const HostArray<uint64_t> scratch(resources_.threads() * descent.scratch_words(), "lists", counting);
      descent.count();
    });
  }
  // Who merges two in memory, the device or the CPU; none: they are merged from disk.
  std::optional<Resources> room_in_memory(int64_t a, int64_t b, const Resources& on) const {
    const auto has_room = [&](const Resources& used) {
      const Footprint sections{2 * on.threads() * kShardSectionRows * k_ * 8};
      return has_room_for(in_memory(a, b, used).beside(sections), used);
    };
    if (a + b > most_rows_) return std::nullopt;
    if (!counts_memory(on) || has_room(on)) return on;
    const Resources on_cpu = on.with_device(Device::cpu());
    if (has_room(on_cpu)) return on_cpu;
    return std::nullopt;
  }
  int64_t largest_later(int64_t shard) const {
    int64_t most = 0;
    for (int64_t later = shard + 1; later < shards_; ++later) most = std::max(most, size(later));
    return most;
  }
  int64_t size_of_largest_pair() const {
    int64_t most = 0;
    for (int64_t shard = 0; shard + 1 < shards_; ++shard) most = std::max(most, size(shard) + largest_later(shard));
    return most;
  }
  // What the pairs that are merged from disk take there at most; none where several devices are dealt pairs.
  int64_t joining_bytes(const Resources& devices) {
    int64_t most = 0;
    for (int64_t a = 0; a + 1 < shards_ && !is_shared(devices); ++a) {
      if (room_in_memory(size(a), largest_later(a), devices)) continue;
      for (int64_t b = a + 1; b < shards_; ++b) {
        if (is_merged(a, b) || fits_a_list(size(a) + size(b))) continue;
        const PairDescent pair(*this, {a, b});
        most = std::max(most, DescentOnDisk(pair.task(), folder_, quiet_).disk_bytes());
      }
    }
    return most;
  }

  // Two shards whose rows stay in their files.
  class PairDescent {
   public:
    PairDescent(const MergeOnDisk& merge, const ShardPair& pair)
        : merge_(merge),
          shards_{pair.first, pair.second},
          x_(std::make_shared<PairRowReader>(merge.source(pair.first), merge.source(pair.second))),
          section_(kShardSectionRows * merge.k_, "lists", merge.quiet_) {
      const int64_t length = merge_list_length(merge.work_.merges, merge.k_);
      task_.emplace(
          DescentTask{.x = x_,
                      .params = descent_params(merge.work_.merges, merge.metric_, merge.k_, length),
                      .length = length,
                      .graphs = [this](int64_t first, int64_t count, int64_t* ids) { read(first, count, ids); },
                      .prefix = join_prefix(pair),
                      .most_rows = merge.most_rows_});
      task_->params.rules.boundary = merge.size(pair.first);
    }
    PairDescent(const PairDescent&) = delete;
    PairDescent& operator=(const PairDescent&) = delete;
    const DescentTask& task() const { return *task_; }

   private:
    // The graphs' neighbours of some rows, as rows of the pair.
    void read(int64_t first, int64_t count, int64_t* ids) const {
      const int64_t k = merge_.k_;
      for (int64_t row = first; row < first + count;) {
        const int64_t boundary = merge_.size(shards_[0]);
        const int side = row < boundary ? 0 : 1;
        const int64_t begin = side == 0 ? 0 : boundary;
        const ListSections sections = merge_.graph_sections(shards_[side]);
        const StepFile step = merge_.folder_->open(graph_name(shards_[side]));
        const int64_t end = std::min(first + count, begin + merge_.size(shards_[side]));
        while (row < end) {
          const int64_t section = (row - begin) / kShardSectionRows;
          sections.read(step, section, section_.data());
          const int64_t section_first = begin + sections.first(section);
          for (; row < std::min(end, section_first + sections.rows(section)); ++row) {
            const uint64_t* const list = section_.data() + (row - section_first) * k;
            for (int64_t j = 0; j < k; ++j) {
              ids[(row - first) * k + j] = list[j] == kPadding ? -1 : begin + row_of(list[j]);
            }
          }
        }
      }
    }

    const MergeOnDisk& merge_;
    const int64_t shards_[2];
    const VectorFile x_;
    const HostArray<uint64_t> section_;
    std::optional<DescentTask> task_;
  };

  // Pairs of the same shard follow each other, so that a device mostly has it already.
  void merge_all(const Resources& devices) {
    std::vector<ShardPair> pairs;
    for (int64_t a = 0; a < shards_; ++a) {
      for (int64_t b = a + 1; b < shards_; ++b) {
        if (is_merged(a, b)) {
          forget_joins({a, b});
        } else {
          pairs.push_back({a, b});
        }
      }
      remove_if_merged(a);  // where a process was killed before it did that
    }
    const auto count = static_cast<int64_t>(pairs.size());
    ProgressMeter meter("merge", shards_ * (shards_ - 1) / 2, resources_);
    meter.add(shards_ * (shards_ - 1) / 2 - count);
    const bool dealt = is_shared(devices);
    const auto merge_dealt = [&](const auto& next, const Resources& part) {
      const Resources on = part.with_progress({});
      Loaded loaded;
      for (int64_t step = next(); step >= 0; step = next()) {
        meter.checkpoint();
        const ShardPair& pair = pairs[static_cast<size_t>(step)];
        if (loaded.shard != pair.first) {
          loaded = {};  // before another takes its place
          loaded.shard = pair.first;
          loaded.together = dealt ? on : room_in_memory(size(pair.first), largest_later(pair.first), on);
        }
        merge(pair, loaded, on);
        meter.add(1);
      }
    };
    if (dealt) {
      run_parts(devices, [&](Communicator& ranks, const Resources& part) {
        ranks.begin_steps(count);
        merge_dealt([&] { return ranks.next_step(); }, part);
      });
    } else {
      int64_t step = 0;
      merge_dealt([&] { return step < count ? step++ : -1; }, devices);
    }
    meter.finish();
  }

  // What a process left that was killed in a merge from disk.
  void forget_joins(const ShardPair& pair) {
    for (const std::string& begun : folder_->names(join_prefix(pair))) folder_->remove(begun);
  }

  void merge(const ShardPair& pair, Loaded& loaded, const Resources& on) {
    const auto [a, b] = pair;
    if (!loaded.together && !fits_a_list(size(a) + size(b))) return merge_from_disk(pair, on);
    forget_joins(pair);
    if (!loaded.rows) {
      const int64_t room = loaded.together ? largest_later(a) : size(b);
      loaded.rows.emplace(source(a).dtype(), size(a) + room, source(a).cols(), "two shards", on);
      loaded.graph = load_shard(a, loaded.rows->mutable_view().slice(0, size(a)), on);
    }
    merge_in_memory(pair, loaded, on);
    if (!loaded.together) {
      loaded.graph = KnnGraph();
      loaded.rows.reset();
    }
  }

  void merge_in_memory(const ShardPair& pair, Loaded& loaded, const Resources& on) {
    const auto [a, b] = pair;
    const KnnGraph second = load_shard(b, loaded.rows->mutable_view().slice(size(a), size(b)), on);
    const GraphOutput both({size(a) + size(b), k_}, on);
    const MatrixView rows = loaded.rows->view();
    const GraphReport told =
        merge_graphs({{loaded.graph, rows.slice(0, size(a))}, {second, rows.slice(size(a), size(b))}}, both.view(),
                     work_.merges, loaded.together.value_or(on));
    const KnnGraph merged = both.graph(metric_, {});
    const auto read = [&](int64_t first, int64_t count, uint64_t* lists, int) {
      for (int64_t row = first; row < first + count; ++row) {
        for (int64_t j = 0; j < k_; ++j, ++lists) {
          const int64_t id = merged.ids(row)[j];
          *lists = id < 0 ? kPadding : packed(merged, row, j, id);
        }
      }
    };
    add_lists(a, read, pair, on);
    add_lists(b, read, pair, on);
    end_pair(pair, told);
  }

  void merge_from_disk(const ShardPair& pair, const Resources& on) {
    const PairDescent rounds(*this, pair);
    DescentOnDisk descent(rounds.task(), folder_, on.with_progress(resources_.options().progress));
    GraphReport told;
    put_outcome(descent.run(), descent.control_rows(), told);
    warn_if_missed(told, work_.merges.recall, kMissedMergeAdvice, on);
    const HostArray<uint64_t> scratch(on.threads() * descent.scratch_words(), "lists", on);
    const auto read = [&](int64_t first, int64_t count, uint64_t* lists, int slot) {
      descent.read(first, count, lists, scratch.data() + slot * descent.scratch_words());
    };
    add_lists(pair.first, read, pair, on);
    add_lists(pair.second, read, pair, on);
    end_pair(pair, told);
    descent.forget();
  }

  // Offers what the merge of a pair has found for the rows of one of the two to its lists.
  // read(first, count, lists, slot): packed neighbours of rows of the pair.
  template <typename Read>
  void add_lists(int64_t shard, const Read& read, const ShardPair& pair, const Resources& on) {
    const std::lock_guard lock(listing_[static_cast<size_t>(shard)]);
    const ListSections sections = list_sections(shard);
    const std::optional<StepFile> before = lists_so_far(shard);
    const int64_t begin = shard == pair.first ? 0 : size(pair.first);
    const auto place = [&](int64_t row) {
      return row < size(pair.first) ? first_of(pair.first) + row : first_of(pair.second) + row - size(pair.first);
    };
    const HostArray<uint64_t> memory = section_memory(on);
    const HostArray<uint64_t> found = section_memory(on);
    WorkingLists working(on.threads() * kShardSectionRows, k_, on);
    StepWriter writer(*folder_, lists_name(shard));
    writer.lay_out(sections.sizes({}));
    ProgressMeter meter("lists", sections.count(), on);
    parallel_for(sections.count(), meter, on, [&](int64_t section, int slot) {
      const int64_t mine = slot * kShardSectionRows;
      uint64_t* const lists = memory.data() + mine * k_;
      if (before) {
        sections.read(*before, section, lists);
      } else {
        std::fill_n(lists, sections.rows(section) * k_, kPadding);
      }
      read(begin + sections.first(section), sections.rows(section), found.data() + mine * k_, slot);
      for (int64_t i = 0; i < sections.rows(section); ++i) {
        std::copy_n(lists + i * k_, k_, working.list(mine + i));
        working.refresh_threshold(mine + i);
        const uint64_t* const nearest = found.data() + (mine + i) * k_;
        for (int64_t j = 0; j < k_ && nearest[j] != kPadding; ++j) {
          const auto row = static_cast<uint32_t>(place(row_of(nearest[j])));
          working.offer_alone(mine + i, pack_neighbor(ordered_of(nearest[j]), row));
        }
      }
      writer.put(section, sections.bytes(section, working.list(mine)));
    });
    writer.commit();
  }

  void end_pair(const ShardPair& pair, const GraphReport& report) {
    PairTold told;
    if (report.recall) told = {*report.recall, 1, 1};
    told.reached = report.reached ? 1 : 0;
    const std::vector<StoredRound> rounds(report.rounds.begin(), report.rounds.end());
    {
      StepWriter writer(*folder_, pair_name(pair.first, pair.second));
      writer.add(std::as_bytes(std::span(&told, 1)));
      writer.add(std::as_bytes(std::span(rounds)));
      writer.commit();
    }
    remove_if_merged(pair.first);
    remove_if_merged(pair.second);
  }

  // A graph is not needed any more once all pairs of its shard are merged.
  void remove_if_merged(int64_t shard) {
    if (!keep_ && !is_needed(shard)) folder_->remove(graph_name(shard));
  }

  // A section of each thread is read while those before it are written.
  void write(GraphSink& sink) {
    const HostArray<uint64_t> memory = section_memory(quiet_);
    const int64_t at_once = resources_.threads();
    Neighbors parts[2];
    for (Neighbors& part : parts) part = Neighbors(at_once * kShardSectionRows, k_, quiet_);
    const ResultExit exit(metric_);
    ProgressMeter meter("write", firsts_.back(), resources_);
    ProgressMeter reading("write", firsts_.back(), quiet_);
    sink.begin();
    std::future<void> written;
    int64_t turn = 0;
    for (int64_t shard = 0; shard < shards_; ++shard) {
      if (size(shard) == 0) continue;
      const StepFile step = folder_->open(lists_name(shard));
      const ListSections sections = list_sections(shard);
      for (int64_t first = 0; first < sections.count(); first += at_once, turn = 1 - turn) {
        const int64_t end = std::min(first + at_once, sections.count());
        const NeighborsView part = parts[turn].view();
        parallel_for(end - first, reading, quiet_, [&](int64_t number, int slot) {
          uint64_t* const lists = memory.data() + slot * kShardSectionRows * k_;
          sections.read(step, first + number, lists);
          const int64_t at = number * kShardSectionRows * k_;
          write_results(exit, lists, sections.rows(first + number) * k_, part.ids + at, part.distances + at);
        });
        if (written.valid()) written.get();
        const int64_t rows = sections.first(end - 1) + sections.rows(end - 1) - sections.first(first);
        written = start_beside([&sink, whole = NeighborsView{part.ids, part.distances, rows, k_, {}}] { sink.append(whole); });
        meter.add(rows);
        meter.poll();
      }
    }
    if (written.valid()) written.get();
    meter.finish();
  }

  // As in memory: the least recall of all pairs, and the rounds of the only one.
  GraphReport report() {
    GraphReport report;
    for (int64_t a = 0; a < shards_; ++a) {
      for (int64_t b = a + 1; b < shards_; ++b) {
        const StepFile step = folder_->open(pair_name(a, b));
        PairTold told;
        if (step.sections() != 2 || step.bytes(0) != int64_t{sizeof(told)}) step.refuse("the step is of another size");
        step.read(0, &told);
        if (shards_ == 2) {
          for (const StoredRound& round : step.values<StoredRound>(1)) report.rounds.push_back(round.told());
        }
        const bool less = told.has_recall != 0 && (!report.recall || told.recall.recall < report.recall->recall);
        if (less) report.recall = told.recall;
        report.reached = report.reached && told.reached != 0;
      }
    }
    work_.put_method(report);
    return report;
  }

  const ShardWork& work_;
  const int64_t shards_;
  const Metric metric_;
  const int64_t k_;
  WorkFolder* const folder_;
  const bool keep_;
  const int64_t most_rows_;  // that are in memory together, for tests
  const Resources& resources_;
  const Resources quiet_;
  std::vector<int64_t> firsts_;                  // rows before each shard
  const std::unique_ptr<std::mutex[]> listing_;  // held while lists of a shard are written
};

}  // namespace

Footprint merge_on_disk_footprint(const ShardWork& work, const Resources& resources, int64_t most_rows) {
  return counted(resources, [&](const Resources& counting) { MergeOnDisk(work, nullptr, false, most_rows, counting).count(); });
}

GraphReport merge_on_disk(const ShardWork& work, const DiskWork& disk, GraphSink& sink, const Resources& resources) {
  const auto least = [&] { return merge_on_disk_footprint(work, resources, disk.most_rows); };
  return within_limits("the graph", resources, least, [&] {
    WorkFolder folder(disk.disk, disk.folder, work.manifest, resources);
    return repairing(folder, [&] {
      const GraphReport report = MergeOnDisk(work, &folder, disk.keep, disk.most_rows, resources).run(sink);
      sink.finish(report);
      folder.finish({}, disk.keep);
      return report;
    });
  });
}

ShardWork ggm_work(const VectorFile& x, const KnnGraphParams& params) {
  const GgmShards shards(x.rows(), params);
  ShardWork work;
  work.graphs = shard_params(params);
  work.merges = shard_merge_params(params);
  work.put_method = [params, shards](GraphReport& report) { put_ggm(params, shards, report); };
  for (int64_t shard = 0; shard < shards.count; ++shard) {
    work.shards.push_back(DiskShard{slice_of(x, shards.first(shard), shards.size(shard)), std::nullopt});
  }
  WorkManifest& manifest = work.manifest;
  manifest.set("work", "a graph by ggm");
  put_source(x, manifest);
  manifest.set("k", params.k);
  manifest.set("metric", name_of(params.metric));
  manifest.set("shards", shards.count);
  put_merge_params(work.merges, manifest);
  return work;
}

void put_merge_params(const GraphMergeParams& params, WorkManifest& manifest) {
  manifest.set("recall", fmt::format("{}", params.recall));
  manifest.set("seed", fmt::format("{}", params.seed));
  if (params.samples) manifest.set("samples", *params.samples);
  if (params.list_length) manifest.set("list_length", *params.list_length);
  if (params.iterations) manifest.set("iterations", *params.iterations);
  if (params.delta) manifest.set("delta", fmt::format("{}", *params.delta));
}

}  // namespace kith
