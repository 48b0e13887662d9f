#include "graph/build/descent_on_disk/descent_round.hpp"

#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/descent_on_disk/gathered_rows.hpp"
#include "graph/build/descent_on_disk/record_spill.hpp"
#include "graph/build/nn_descent/inbox.hpp"
#include "graph/build/nn_descent/join_samples.hpp"
#include "graph/build/nn_descent/join_worker.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kSpilled = int64_t{1} << 18;  // records that are gathered before they are written
constexpr int64_t kMostOfLeast = 8192;          // rows that are gathered under the least limit

struct SampledRow {
  uint32_t row;
  uint32_t from;  // the row that has sampled it, and in bit 31 whether as OLD
};

struct SpilledOffer {
  uint32_t row;  // to which it is made
  uint32_t neighbor;
  uint32_t key;  // ordered
};

// One join makes up to one for each sample and each comparison that it takes part in.
int64_t most_offers(const DescentBlocks& blocks) { return 6 * blocks.samples(); }
// What waits in memory before it is written: the same whatever the limit, as is the largest section of a step.
int64_t spilled_offers(const DescentBlocks& blocks) {
  return std::max(std::min(kSpilled, blocks.block_rows() * most_offers(blocks)), most_offers(blocks));
}
int64_t spilled_names(const DescentBlocks& blocks) {
  return std::max(std::min(kSpilled, blocks.block_rows() * 2 * blocks.samples()), 2 * blocks.samples());
}

// Offers of joins to rows that are places of gathered ones, on their way to the blocks of these rows.
class SpillTarget {
 public:
  SpillTarget(const GatheredRows& gathered, const HostArray<uint32_t>& thresholds, RecordSpill<SpilledOffer>& spill)
      : gathered_(gathered), thresholds_(thresholds), spill_(spill) {}

  float largest_key(uint32_t place) const {
    const float key = key_of_ordered(thresholds_[gathered_.row_at(place)]);
    return key == key ? key : std::numeric_limits<float>::infinity();
  }
  // What the list knows already is found when it is loaded.
  bool in_vain(uint32_t, uint32_t, float, float) const { return false; }
  void offer(uint32_t place, uint64_t neighbor) const {
    const uint32_t row = gathered_.row_at(place);
    if (ordered_of(neighbor) > thresholds_[row]) return;
    spill_.add({row, gathered_.row_at(row_of(neighbor)), ordered_of(neighbor)});
  }

 private:
  const GatheredRows& gathered_;
  const HostArray<uint32_t>& thresholds_;
  RecordSpill<SpilledOffer>& spill_;
};

// What the joins of a block need beside the rows that they gather.
struct JoinMemory {
  explicit JoinMemory(const DescentBlocks& blocks)
      : forward(2 * blocks.samples() * blocks.block_rows(), "samples", blocks.resources()),
        reverse(2 * blocks.samples() * blocks.block_rows(), "samples", blocks.resources()),
        offers(spilled_offers(blocks), blocks.rows(), blocks.block_rows(), blocks.resources()) {}

  const HostArray<uint32_t> forward;
  const HostArray<uint32_t> reverse;
  RecordSpill<SpilledOffer> offers;
};

// A join's own samples and those of who has sampled its row; or those of several joins, since preparing a group of
// joins takes time by itself.
int64_t least_gathered(const DescentBlocks& blocks) {
  const int64_t together = std::min(blocks.rows() / kDescentBlocks, kMostOfLeast);
  return std::min(std::max(4 * blocks.samples(), together), blocks.rows());
}

// The memory of gathered rows, with what it takes to compare them.
Footprint join_footprint(const DescentBlocks& blocks, int64_t gathered_rows) {
  const DescentTask& task = blocks.task();
  return counted(blocks.resources(), [&](const Resources& counting) {
    const GatheredRows gathered(task.x, gathered_rows, counting);
    const PairRows pairs(gathered.room(), key_kind(task.params.metric), counting);
    std::vector<std::unique_ptr<PairScan>> scans;
    for (int slot = 0; slot < blocks.resources().threads(); ++slot) {
      scans.push_back(make_pair_scan(pairs, 2 * blocks.samples(), 2 * blocks.samples(), counting,
                                     choose_float_pairs(task.x.cols(), true)));
      scans.back()->make_room_for_nearest();
    }
  });
}

// The joins of a block. As many as there is room for gather their rows together; a thread then makes some of them.
class BlockJoins {
 public:
  BlockJoins(const DescentBlocks& blocks, int64_t block, const HostArray<uint32_t>& thresholds, JoinMemory& memory)
      : blocks_(blocks),
        block_(block),
        memory_(memory),
        rules_(blocks.task().params.rules),
        gathered_(blocks.task().x, rows_at_once(blocks), blocks.resources()),
        target_(gathered_, thresholds, memory.offers),
        sets_(static_cast<size_t>(blocks.resources().threads())),
        compared_(sets_.size(), 0) {
    rules_.random_lists = true;
  }

  // Writes all offers. Returns the number of pairs compared.
  int64_t run(StepWriter& writer) {
    for (int64_t first = 0; first < blocks_.rows_of(block_);) {
      const int64_t end = gather_from(first);
      if (gathered_.view().rows() == 0) break;
      join(first, end, writer);
      first = end;
    }
    memory_.offers.flush(writer);
    int64_t pairs = 0;
    for (const int64_t some : compared_) pairs += some;
    return pairs;
  }

 private:
  static int64_t rows_at_once(const DescentBlocks& blocks) {
    return rows_that_fit(least_gathered(blocks), std::min(blocks.rows(), kMostGathered), blocks.resources(),
                         [&](int64_t some) { return join_footprint(blocks, some); });
  }
  uint32_t* forward(int64_t i) const { return memory_.forward.data() + 2 * rules_.samples * i; }
  uint32_t* reverse(int64_t i) const { return memory_.reverse.data() + 2 * rules_.samples * i; }
  bool meets_somebody(int64_t i) const {
    const auto is_one = [](uint32_t row) { return row != kNobody; };
    return std::any_of(forward(i), forward(i) + rules_.samples, is_one) ||
           std::any_of(reverse(i), reverse(i) + rules_.samples, is_one);
  }

  // Gathers the rows of joins from this one on. Returns the first that had no room.
  int64_t gather_from(int64_t first) {
    gathered_.clear();
    int64_t end = first;
    for (; end < blocks_.rows_of(block_); ++end) {
      if (!meets_somebody(end)) continue;
      // Both or none: the second try gets the room of an empty set.
      if (!gathered_.add(forward(end), 2 * rules_.samples) || !gathered_.add(reverse(end), 2 * rules_.samples)) break;
    }
    return end;
  }

  void join(int64_t first, int64_t end, StepWriter& writer) {
    const Resources& resources = blocks_.resources();
    gathered_.load();
    const PairRows rows(gathered_.view(), key_kind(blocks_.task().params.metric), resources);
    std::vector<std::unique_ptr<JoinWorker<SpillTarget>>> workers;
    for (size_t slot = 0; slot < sets_.size(); ++slot) {
      workers.push_back(std::make_unique<JoinWorker<SpillTarget>>(rows, rules_, target_, resources));
    }
    const int64_t together = std::max<int64_t>(1, memory_.offers.room() / most_offers(blocks_));
    for (int64_t at = first; at < end; at += together) {
      const int64_t some = std::min(together, end - at);
      if (!memory_.offers.has_room(some * most_offers(blocks_))) memory_.offers.flush(writer);
      const auto join_some = [&](int64_t begin, int64_t stop, int slot_number) {
        const auto slot = static_cast<size_t>(slot_number);
        for (int64_t i = at + begin; i < at + stop; ++i) compared_[slot] += join_one(i, sets_[slot], *workers[slot]);
      };
      for_row_blocks("join", some, resources, join_some, kDescentRowsPerTask);
    }
  }

  int64_t join_one(int64_t i, JoinSets& sets, JoinWorker<SpillTarget>& worker) const {
    collect_samples(forward(i), reverse(i), rules_.samples, sets);
    if (sets.fresh.empty()) return 0;
    for (std::vector<uint32_t>* const set : {&sets.fresh, &sets.old}) {
      for (uint32_t& row : *set) row = gathered_.place_of(row);
    }
    return worker.join(sets);
  }

  const DescentBlocks& blocks_;
  const int64_t block_;
  JoinMemory& memory_;
  DescentRules rules_;
  GatheredRows gathered_;
  const SpillTarget target_;
  std::vector<JoinSets> sets_;     // of each thread
  std::vector<int64_t> compared_;  // by each thread
};

}  // namespace

DescentRound::DescentRound(const DescentBlocks& blocks, int64_t round, const HostArray<uint32_t>& thresholds)
    : blocks_(blocks), round_(round), thresholds_(thresholds) {}

void DescentRound::count_joins(const DescentBlocks& blocks) {
  const JoinMemory memory(blocks);
  {
    const WorkingLists lists = blocks.empty_lists();
    const RecordSpill<SampledRow> names(spilled_names(blocks), blocks.rows(), blocks.block_rows(), blocks.resources());
  }
  count_work(join_footprint(blocks, least_gathered(blocks)), blocks.resources());
}

void DescentRound::count_merges(const DescentBlocks& blocks) {
  const Resources& resources = blocks.resources();
  const WorkingLists lists = blocks.empty_lists();
  const Inbox inbox(blocks.block_rows(), blocks.task().params.rules.inbox_slots, resources);
  const HostArray<SpilledOffer> offers(spilled_offers(blocks), "offers", resources);
  const HostArray<uint32_t> scratch(resources.threads() * 2 * blocks.samples(), "samples", resources);
}

int64_t DescentRound::most_sections(const DescentBlocks& blocks) {
  return blocks.count() * (1 + most_offers(blocks) * blocks.block_rows() / spilled_offers(blocks));
}

int64_t DescentRound::disk_bytes(const DescentBlocks& blocks) {
  const int64_t offers = (blocks.task().params.rules.boundary == 0 ? 6 : 4) * blocks.samples();
  return blocks.rows() * (2 * blocks.samples() * static_cast<int64_t>(sizeof(SampledRow)) +
                          offers * static_cast<int64_t>(sizeof(SpilledOffer)));
}

void DescentRound::name_samples(int64_t block) const {
  const std::string name = names(block);
  if (blocks_.folder().find(name)) return;
  blocks_.resources().check_cancelled();
  const int64_t each = 2 * blocks_.samples();
  const HostArray<uint32_t> forward(each * blocks_.rows_of(block), "samples", blocks_.resources());
  RecordSpill<SampledRow> named(spilled_names(blocks_), blocks_.rows(), blocks_.block_rows(), blocks_.resources());
  {
    WorkingLists lists = blocks_.empty_lists();
    blocks_.read_lists(blocks_.lists_name(round_, block), block, lists);
    blocks_.draw(block, lists, forward.data());
  }
  StepWriter writer(blocks_.folder(), name);
  for (int64_t i = 0; i < blocks_.rows_of(block); ++i) {
    if (!named.has_room(each)) named.flush(writer);
    const auto row = static_cast<uint32_t>(blocks_.first_of(block) + i);
    for (int64_t j = 0; j < each; ++j) {
      const uint32_t to = forward[each * i + j];
      if (to != kNobody) named.add({to, j < blocks_.samples() ? row : row | static_cast<uint32_t>(kOldFlag)});
    }
  }
  named.flush(writer);
  writer.commit();
}

// Whoever has sampled the rows of a block, as reverse samples of these.
void DescentRound::read_names(int64_t block, uint32_t* reverse) const {
  const uint64_t salt = round_salt(blocks_.task().params.rules.seed, round_);
  const int64_t p = blocks_.samples();
  std::fill_n(reverse, 2 * p * blocks_.rows_of(block), kNobody);
  const HostArray<SampledRow> sampled(spilled_names(blocks_), "samples", blocks_.resources());
  for (int64_t from = 0; from < blocks_.count(); ++from) {
    const StepFile step = blocks_.folder().open(names(from));
    for (int64_t section = block; section < step.sections(); section += blocks_.count()) {
      const auto count = step.bytes(section) / static_cast<int64_t>(sizeof(SampledRow));
      if (count > sampled.size()) step.refuse("the step is of another size");
      step.read(section, sampled.data());
      for (int64_t i = 0; i < count; ++i) {
        const bool old = (sampled[i].from & kOldFlag) != 0;
        const auto sampler = static_cast<uint32_t>(without_flag(sampled[i].from));
        const int64_t at = static_cast<int64_t>(sampled[i].row) - blocks_.first_of(block);
        if (at < 0 || at >= blocks_.rows_of(block)) step.refuse("the step is of other rows");
        uint32_t* const bucket = reverse + (2 * at + (old ? kOldSample : kNewSample)) * p;
        uint32_t& there = bucket[place_of(pair_hash(salt, sampler, sampled[i].row), p)];
        if (replaces(salt, sampled[i].row, sampler, there)) there = sampler;
      }
    }
  }
}

void DescentRound::join(int64_t block) const {
  const std::string name = offers(block);
  if (blocks_.folder().find(name)) return;
  blocks_.resources().check_cancelled();
  JoinMemory memory(blocks_);
  {
    WorkingLists lists = blocks_.empty_lists();
    blocks_.read_lists(blocks_.lists_name(round_, block), block, lists);
    blocks_.draw(block, lists, memory.forward.data());
  }
  read_names(block, memory.reverse.data());
  BlockJoins joins(blocks_, block, thresholds_, memory);
  StepWriter writer(blocks_.folder(), name);
  const int64_t pairs = joins.run(writer);
  writer.add(std::as_bytes(std::span(&pairs, 1)));
  writer.commit();
}

// The last sections of the offers.
int64_t DescentRound::pairs_compared() const {
  int64_t pairs = 0;
  for (int64_t block = 0; block < blocks_.count(); ++block) {
    const StepFile step = blocks_.folder().open(offers(block));
    const int64_t last = step.sections() - 1;
    if (last < 0 || last % blocks_.count() != 0 || step.bytes(last) != 8) step.refuse("the step is of other offers");
    pairs += step.values<int64_t>(last).at(0);
  }
  return pairs;
}

void DescentRound::merge(int64_t block, GraphRound& told) const {
  const DescentTask& task = blocks_.task();
  const DescentRules& rules = task.params.rules;
  const Resources& resources = blocks_.resources();
  const auto tell = [&](const WorkingLists& lists, int64_t entered) {
    told.updates += entered;
    told.phi += survey_lists(lists, task.params.k, task.params.metric, Flags::keep, resources).phi;
    blocks_.copy_thresholds(block, lists, thresholds_);
  };
  const std::string name = blocks_.lists_name(round_ + 1, block);
  WorkingLists lists = blocks_.empty_lists();
  if (const std::optional<StepFile> step = blocks_.folder().find(name)) {
    blocks_.read_lists(name, block, lists);
    return tell(lists, step->values<int64_t>(0).at(0));
  }
  resources.check_cancelled();
  const uint64_t salt = round_salt(rules.seed, round_);
  const Inbox inbox(blocks_.block_rows(), rules.inbox_slots, resources);
  blocks_.read_lists(blocks_.lists_name(round_, block), block, lists);
  {
    const HostArray<uint32_t> samples_of(resources.threads() * 2 * rules.samples, "samples", resources);
    blocks_.for_rows(block, [&](int64_t i, int slot) {
      draw_samples(rules, blocks_.first_of(block) + i, lists.list(i), task.length,
                   samples_of.data() + slot * 2 * rules.samples);
    });
  }
  const HostArray<SpilledOffer> found(spilled_offers(blocks_), "offers", resources);
  for (int64_t from = 0; from < blocks_.count(); ++from) {
    const StepFile step = blocks_.folder().open(offers(from));
    for (int64_t section = block; section < step.sections() - 1; section += blocks_.count()) {
      const auto count = step.bytes(section) / static_cast<int64_t>(sizeof(SpilledOffer));
      if (count > found.size()) step.refuse("the step is of another size");
      step.read(section, found.data());
      for_row_blocks("offers", count, resources, [&](int64_t first, int64_t end) {
        for (int64_t i = first; i < end; ++i) {
          const int64_t at = static_cast<int64_t>(found[i].row) - blocks_.first_of(block);
          if (at < 0 || at >= blocks_.rows_of(block)) step.refuse("the step is of other rows");
          const uint64_t neighbor = pack_neighbor(found[i].key, found[i].neighbor);
          if (!takes_offer(lists.list(at), task.length, neighbor)) continue;
          inbox.offer(at, inbox_slot(salt, found[i].neighbor, inbox.slots()), neighbor);
        }
      });
    }
  }
  std::atomic<int64_t> entered{0};
  blocks_.for_rows(block, [&](int64_t i, int) {
    entered.fetch_add(merge_offers(inbox.of(i), inbox.slots(), lists, i), std::memory_order_relaxed);
  });
  blocks_.write_lists(name, block, entered.load(), lists);
  tell(lists, entered.load());
}

}  // namespace kith
