#include "graph/build/ggm/pairs_on_disk.hpp"

#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/build/descent_on_disk/descent_on_disk.hpp"
#include "graph/build/descent_on_disk/stored_round.hpp"
#include "graph/build/ggm/graph_parts.hpp"
#include "graph/build/ggm/pair_row_reader.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/working_lists.hpp"
#include "ranks/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kith {
namespace {

// What the merge of two shards has told.
struct PairResult {
  GraphRecall recall;
  int64_t has_recall = 0;
  int64_t reached = 1;
};

std::string join_prefix(const ShardPair& pair) { return fmt::format("join-{}-{}-", pair.first, pair.second); }

// Two shards whose rows stay in their files.
class PairDescent {
 public:
  PairDescent(const ShardsOnDisk& shards, const ShardPair& pair, int64_t most_rows, const Resources& resources)
      : shards_(shards),
        pair_{pair.first, pair.second},
        x_(std::make_shared<PairRowReader>(shards.source(pair.first), shards.source(pair.second))),
        section_(kShardSectionRows * shards.k(), "lists", resources) {
    const GraphMergeParams& params = shards.work().merges;
    const int64_t length = merge_list_length(params, shards.k());
    task_.emplace(DescentTask{.x = x_,
                              .params = descent_params(params, shards.metric(), shards.k(), length),
                              .length = length,
                              .graphs = [this](int64_t first, int64_t count, int64_t* ids) { read(first, count, ids); },
                              .prefix = join_prefix(pair),
                              .most_rows = most_rows});
    task_->params.rules.boundary = shards.size(pair.first);
  }
  PairDescent(const PairDescent&) = delete;
  PairDescent& operator=(const PairDescent&) = delete;
  const DescentTask& task() const { return *task_; }

 private:
  // The graphs' neighbours of some rows, as rows of the pair.
  void read(int64_t first, int64_t count, int64_t* ids) const {
    const int64_t k = shards_.k();
    for (int64_t row = first; row < first + count;) {
      const int64_t boundary = shards_.size(pair_[0]);
      const int side = row < boundary ? 0 : 1;
      const int64_t begin = side == 0 ? 0 : boundary;
      const ListSections sections = shards_.graph_sections(pair_[side]);
      const StepFile step = shards_.folder().open(ShardsOnDisk::graph_name(pair_[side]));
      const int64_t end = std::min(first + count, begin + shards_.size(pair_[side]));
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

  const ShardsOnDisk& shards_;
  const int64_t pair_[2];
  const VectorFile x_;
  const HostArray<uint64_t> section_;
  std::optional<DescentTask> task_;
};

}  // namespace

PairsOnDisk::PairsOnDisk(ShardsOnDisk& shards, bool keep, int64_t most_rows, const Resources& resources)
    : shards_(shards),
      keep_(keep),
      most_rows_(most_rows),
      resources_(resources),
      quiet_(resources.with_progress({})),
      listing_(std::make_unique<std::mutex[]>(static_cast<size_t>(shards.count()))) {}

bool PairsOnDisk::fits_a_list(int64_t rows) const {
  return rows - 1 <= merge_list_length(shards_.work().merges, shards_.k());
}

// The memory of two shards of so many rows beside what every pair takes.
Footprint PairsOnDisk::in_memory(int64_t a, int64_t b, const Resources& resources) const {
  const int64_t k = shards_.k();
  const Metric metric = shards_.metric();
  const VectorFile& x = shards_.source(0);
  return counted(resources, [&](const Resources& counting) {
    const Resources quiet = counting.with_progress({});
    const WorkingLists working(resources.threads() * kShardSectionRows, k, quiet);
    const MatrixBuffer rows(x.dtype(), a + b, x.cols(), "two shards", quiet);
    const GraphOutput first({a, k}, quiet);
    const GraphOutput second({b, k}, quiet);
    const GraphOutput both({a + b, k}, quiet);
    count_call(quiet, [&](const Resources& used) {
      const GraphPart parts[] = {{first.graph(metric, {}), rows.view().slice(0, a)},
                                 {second.graph(metric, {}), rows.view().slice(a, b)}};
      merge_graphs({parts[0], parts[1]}, both.view(), shards_.work().merges, used);
    });
  });
}

Footprint PairsOnDisk::from_disk(const ShardPair& pair) const {
  return counted(quiet_, [&](const Resources& counting) {
    const ShardsOnDisk shards(shards_.work(), nullptr);
    const WorkingLists working(resources_.threads() * kShardSectionRows, shards.k(), counting);
    const PairDescent rounds(shards, pair, most_rows_, counting.with_progress({}));
    DescentOnDisk descent(rounds.task(), nullptr, counting);
    const HostArray<uint64_t> scratch(resources_.threads() * descent.scratch_words(), "lists", counting);
    descent.count();
  });
}

void PairsOnDisk::count(PairPlaces places) const {
  int64_t most_in_a_list = 0;
  ShardPair largest{-1, -1};
  int64_t largest_rows = -1;
  for (int64_t a = 0; a < shards_.count(); ++a) {
    for (int64_t b = a + 1; b < shards_.count(); ++b) {
      const int64_t rows = shards_.size(a) + shards_.size(b);
      if (fits_a_list(rows)) {
        if (rows <= most_in_a_list) continue;
        most_in_a_list = rows;
        count_work(in_memory(shards_.size(a), shards_.size(b), resources_), quiet_);
      } else if (rows > largest_rows) {
        largest = {a, b};
        largest_rows = rows;
      }
    }
  }
  if (largest_rows < 0) return;
  const Footprint memory = in_memory(shards_.size(largest.first), shards_.size(largest.second), quiet_);
  if (places == PairPlaces::in_memory) return count_work(memory, quiet_);
  const Footprint disk = from_disk(largest);
  count_work(largest_rows <= most_rows_ && memory.host < disk.host ? memory : disk, quiet_);
}

std::optional<Resources> PairsOnDisk::room_in_memory(int64_t a, int64_t b, const Resources& on) const {
  const auto has_room = [&](const Resources& used) {
    const Footprint sections{2 * on.threads() * kShardSectionRows * shards_.k() * 8};
    return has_room_for(in_memory(a, b, used).beside(sections), used);
  };
  if (a + b > most_rows_) return std::nullopt;
  if (!counts_memory(on) || has_room(on)) return on;
  const Resources on_cpu = on.with_device(Device::cpu());
  if (has_room(on_cpu)) return on_cpu;
  return std::nullopt;
}

std::optional<Resources> PairsOnDisk::room_for_pairs_of(int64_t shard, const Resources& on) const {
  return room_in_memory(shards_.size(shard), shards_.largest_later(shard), on);
}

int64_t PairsOnDisk::joining_bytes(const Resources& devices) const {
  int64_t most = 0;
  for (int64_t a = 0; a + 1 < shards_.count() && !is_shared(devices); ++a) {
    if (room_for_pairs_of(a, devices)) continue;
    for (int64_t b = a + 1; b < shards_.count(); ++b) {
      if (shards_.is_merged({a, b}) || fits_a_list(shards_.size(a) + shards_.size(b))) continue;
      const PairDescent rounds(shards_, {a, b}, most_rows_, quiet_);
      most = std::max(most, DescentOnDisk(rounds.task(), &shards_.folder(), quiet_).disk_bytes());
    }
  }
  return most;
}

void PairsOnDisk::forget_joins(const ShardPair& pair) {
  for (const std::string& begun : shards_.folder().names(join_prefix(pair))) shards_.folder().remove(begun);
}

void PairsOnDisk::remove_if_merged(int64_t shard) {
  if (!keep_ && !shards_.is_needed(shard)) shards_.folder().remove(ShardsOnDisk::graph_name(shard));
}

void PairsOnDisk::merge(const ShardPair& pair, LoadedShard& loaded, const Resources& on) {
  const auto [a, b] = pair;
  if (!loaded.together && !fits_a_list(shards_.size(a) + shards_.size(b))) return merge_from_disk(pair, on);
  forget_joins(pair);
  if (!loaded.rows) {
    const int64_t room = loaded.together ? shards_.largest_later(a) : shards_.size(b);
    const VectorFile& x = shards_.source(a);
    loaded.rows.emplace(x.dtype(), x.rows() + room, x.cols(), "two shards", on);
    loaded.graph = shards_.load(a, loaded.rows->mutable_view().slice(0, x.rows()), on);
  }
  merge_in_memory(pair, loaded, on);
  if (!loaded.together) {
    loaded.graph = KnnGraph();
    loaded.rows.reset();
  }
}

void PairsOnDisk::merge_in_memory(const ShardPair& pair, LoadedShard& loaded, const Resources& on) {
  const int64_t a = shards_.size(pair.first);
  const int64_t b = shards_.size(pair.second);
  const int64_t k = shards_.k();
  const KnnGraph second = shards_.load(pair.second, loaded.rows->mutable_view().slice(a, b), on);
  const GraphOutput both({a + b, k}, on);
  const MatrixView rows = loaded.rows->view();
  const GraphReport told = merge_graphs({{loaded.graph, rows.slice(0, a)}, {second, rows.slice(a, b)}}, both.view(),
                                        shards_.work().merges, loaded.together.value_or(on));
  const KnnGraph merged = both.graph(shards_.metric(), {});
  const auto read = [&](int64_t first, int64_t count, uint64_t* lists, int) {
    for (int64_t row = first; row < first + count; ++row) {
      for (int64_t j = 0; j < k; ++j) *lists++ = shards_.packed(merged, row, j);
    }
  };
  add_lists(pair.first, read, pair, on);
  add_lists(pair.second, read, pair, on);
  end_pair(pair, told);
}

void PairsOnDisk::merge_from_disk(const ShardPair& pair, const Resources& on) {
  const PairDescent rounds(shards_, pair, most_rows_, quiet_);
  DescentOnDisk descent(rounds.task(), &shards_.folder(), on.with_progress(resources_.options().progress));
  GraphReport told;
  put_outcome(descent.run(), descent.control_rows(), told);
  warn_if_missed(told, shards_.work().merges.recall, kMissedMergeAdvice, on);
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
void PairsOnDisk::add_lists(int64_t shard, const Read& read, const ShardPair& pair, const Resources& on) {
  const std::lock_guard lock(listing_[static_cast<size_t>(shard)]);
  const int64_t k = shards_.k();
  const ListSections sections = shards_.list_sections(shard);
  const std::optional<StepFile> before = shards_.lists_so_far(shard);
  const int64_t boundary = shards_.size(pair.first);
  const int64_t begin = shard == pair.first ? 0 : boundary;
  const auto place = [&](int64_t row) {
    return row < boundary ? shards_.first_of(pair.first) + row : shards_.first_of(pair.second) + row - boundary;
  };
  const HostArray<uint64_t> memory = shards_.section_memory(on);
  const HostArray<uint64_t> found = shards_.section_memory(on);
  WorkingLists working(on.threads() * kShardSectionRows, k, on);
  StepWriter writer(shards_.folder(), ShardsOnDisk::lists_name(shard));
  writer.lay_out(sections.sizes({}));
  ProgressMeter meter("lists", sections.count(), on);
  parallel_for(sections.count(), meter, on, [&](int64_t section, int slot) {
    const int64_t mine = slot * kShardSectionRows;
    uint64_t* const lists = memory.data() + mine * k;
    if (before) {
      sections.read(*before, section, lists);
    } else {
      std::fill_n(lists, sections.rows(section) * k, kPadding);
    }
    read(begin + sections.first(section), sections.rows(section), found.data() + mine * k, slot);
    for (int64_t i = 0; i < sections.rows(section); ++i) {
      std::copy_n(lists + i * k, k, working.list(mine + i));
      working.refresh_threshold(mine + i);
      const uint64_t* const nearest = found.data() + (mine + i) * k;
      for (int64_t j = 0; j < k && nearest[j] != kPadding; ++j) {
        const auto row = static_cast<uint32_t>(place(row_of(nearest[j])));
        working.offer_alone(mine + i, pack_neighbor(ordered_of(nearest[j]), row));
      }
    }
    writer.put(section, sections.bytes(section, working.list(mine)));
  });
  writer.commit();
}

void PairsOnDisk::end_pair(const ShardPair& pair, const GraphReport& report) {
  PairResult told;
  if (report.recall) told = {*report.recall, 1, 1};
  told.reached = report.reached ? 1 : 0;
  const std::vector<StoredRound> rounds(report.rounds.begin(), report.rounds.end());
  {
    StepWriter writer(shards_.folder(), ShardsOnDisk::pair_name(pair));
    writer.add(std::as_bytes(std::span(&told, 1)));
    writer.add(std::as_bytes(std::span(rounds)));
    writer.commit();
  }
  remove_if_merged(pair.first);
  remove_if_merged(pair.second);
}

GraphReport PairsOnDisk::report() const {
  GraphReport report;
  for (int64_t a = 0; a < shards_.count(); ++a) {
    for (int64_t b = a + 1; b < shards_.count(); ++b) {
      const StepFile step = shards_.folder().open(ShardsOnDisk::pair_name({a, b}));
      PairResult told;
      if (step.sections() != 2 || step.bytes(0) != int64_t{sizeof(told)}) step.refuse("the step is of another size");
      step.read(0, &told);
      if (shards_.count() == 2) {
        for (const StoredRound& round : step.values<StoredRound>(1)) report.rounds.push_back(round.told());
      }
      const bool less = told.has_recall != 0 && (!report.recall || told.recall.recall < report.recall->recall);
      if (less) report.recall = told.recall;
      report.reached = report.reached && told.reached != 0;
    }
  }
  return report;
}

}  // namespace kith
