#include "graph/build/descent_on_disk/descent_on_disk.hpp"

#include "core/random.hpp"
#include "core/reservation.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/control_search.hpp"
#include "graph/build/cells_on_disk/rows_that_fit.hpp"
#include "graph/build/descent_on_disk/gathered_rows.hpp"
#include "graph/build/descent_on_disk/record_spill.hpp"
#include "graph/build/descent_on_disk/stored_round.hpp"
#include "graph/build/nn_descent/inbox.hpp"
#include "graph/build/nn_descent/join_samples.hpp"
#include "graph/build/nn_descent/join_worker.hpp"
#include "graph/lists/start_rules.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kDescentBlocks = 256;
constexpr int64_t kFewestBlockRows = 4096;
constexpr int64_t kSectionWords = 16384;     // of lists, read together
constexpr int64_t kSpilled = int64_t{1} << 18;  // records that are gathered before they are written
constexpr int64_t kJoinedRows = 16;          // of a task
constexpr int64_t kMostGathered = int64_t{1} << 24;
constexpr int64_t kMostOfLeast = 8192;  // rows that are gathered under the least limit

// What the mark of a round holds. Before the first there is no round, but a recall.
struct RoundMark {
  StoredRound round;
  RecallEstimate recall;
};

// One join makes up to one for each sample and each comparison that it takes part in.
int64_t most_offers(const DescentRules& rules) { return 6 * rules.samples; }
// What waits in memory before it is written: the same whatever the limit, as is the largest section of a step.
int64_t spilled_offers(int64_t block_rows, const DescentRules& rules) {
  return std::max(std::min(kSpilled, block_rows * most_offers(rules)), most_offers(rules));
}
int64_t spilled_names(int64_t block_rows, const DescentRules& rules) {
  return std::max(std::min(kSpilled, block_rows * 2 * rules.samples), 2 * rules.samples);
}

// Offers of joins to rows that are places of gathered ones, on their way to the blocks of these rows.
template <typename Offer>
class SpillTarget {
 public:
  SpillTarget(const GatheredRows& gathered, const HostArray<uint32_t>& thresholds, RecordSpill<Offer>& spill)
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
  RecordSpill<Offer>& spill_;
};

}  // namespace

struct DescentOnDisk::Name {
  uint32_t row;   // that was sampled
  uint32_t from;  // the row that has sampled it, and in bit 31 whether as OLD
};

struct DescentOnDisk::Offer {
  uint32_t row;  // to which it is made
  uint32_t neighbor;
  uint32_t key;  // ordered
};

// What the joins of a block need beside the rows that they gather.
struct DescentOnDisk::JoinMemory {
  JoinMemory(int64_t rows, int64_t block_rows, const DescentRules& rules, const Resources& resources)
      : forward(2 * rules.samples * block_rows, "samples", resources),
        reverse(2 * rules.samples * block_rows, "samples", resources),
        offers(spilled_offers(block_rows, rules), rows, block_rows, resources) {}


  const HostArray<uint32_t> forward;
  const HostArray<uint32_t> reverse;
  RecordSpill<Offer> offers;
};

DescentOnDisk::DescentOnDisk(const DescentTask& task, WorkFolder* folder, const Resources& resources)
    : task_(task),
      folder_(folder),
      resources_(resources.with_device(Device::cpu())),
      quiet_(resources_.with_progress({})),
      block_rows_(std::max<int64_t>(
          1, std::min({std::max(kFewestBlockRows, divide_up(rows(), kDescentBlocks)), task.most_rows, rows()}))),
      blocks_(divide_up(rows(), block_rows_)),
      section_rows_(std::clamp<int64_t>(kSectionWords / task.length, 1, block_rows_)) {}

std::string DescentOnDisk::step_name(std::string_view kind, int64_t round, int64_t block) const {
  return fmt::format("{}{}-{}-{}", task_.prefix, kind, round, block);
}

std::string DescentOnDisk::lists_name(int64_t round, int64_t block) const { return step_name("lists", round, block); }
std::string DescentOnDisk::mark_name(int64_t round) const { return fmt::format("{}round-{}", task_.prefix, round); }
std::string DescentOnDisk::present_name(int64_t block) const {
  return ends_whole_ ? step_name("whole", 0, block) : lists_name(last_round_, block);
}

bool DescentOnDisk::are_there(const std::function<std::string(int64_t)>& name) const {
  for (int64_t block = 0; block < blocks_; ++block) {
    if (!folder_->find(name(block))) return false;
  }
  return true;
}

void DescentOnDisk::remove_steps(const std::string& kind) {
  for (const std::string& name : folder_->names(task_.prefix + kind)) folder_->remove(name);
}

void DescentOnDisk::forget() { remove_steps(""); }

// Body: (row in the block, slot).
template <typename Body>
void DescentOnDisk::for_rows(int64_t block, const Body& body) const {
  constexpr int64_t kRowsPerTask = 256;
  for_row_blocks("rows", rows_of(block), quiet_, [&](int64_t first, int64_t end, int slot) {
    for (int64_t i = first; i < end; ++i) body(i, slot);
  }, kRowsPerTask);
}

void DescentOnDisk::count() {
  (void)search_control_rows(task_.x, {task_.params.metric, task_.params.k, task_.params.rules.seed}, quiet_);
  const HostArray<uint32_t> thresholds(rows(), "the ends of lists", quiet_);
  const int64_t tables = StepFile::table_bytes(divide_up(block_rows_, section_rows_) + 1) +
                         StepFile::table_bytes(blocks_ * (1 + most_offers(task_.params.rules) * block_rows_ /
                                                                  spilled_offers(block_rows_, task_.params.rules)));
  const Reservation kept(2 * tables, 0, quiet_);
  const ReadMemory reading = task_.x.reserve_memory(quiet_);
  {
    const WorkingLists lists(block_rows_, task_.length, quiet_);
    const HostArray<int64_t> ids(block_rows_ * task_.params.k, "the graphs' neighbours", quiet_);
    const GatheredRows gathered(task_.x, std::min(task_.length + 1, rows()), quiet_);
  }
  {
    const JoinMemory memory(rows(), block_rows_, task_.params.rules, quiet_);
    {
      const WorkingLists lists(block_rows_, task_.length, quiet_);
      const RecordSpill<Name> names(spilled_names(block_rows_, task_.params.rules), rows(), block_rows_, quiet_);
    }
    count_work(join_footprint(least_joined()), quiet_);
  }
  const WorkingLists lists(block_rows_, task_.length, quiet_);
  const Inbox inbox(block_rows_, task_.params.rules.inbox_slots, quiet_);
  const HostArray<Offer> offers(spilled_offers(block_rows_, task_.params.rules), "offers", quiet_);
  const HostArray<uint32_t> scratch(quiet_.threads() * 2 * samples(), "samples", quiet_);
  const HostArray<uint64_t> control(kControlRows * task_.length, "the control rows' lists", quiet_);
}

int64_t DescentOnDisk::disk_bytes() const {
  const int64_t lists = 2 * rows() * (8 * task_.length + 8);
  const int64_t named = rows() * 2 * samples() * static_cast<int64_t>(sizeof(Name));
  const int64_t offered =
      rows() * (task_.params.rules.boundary == 0 ? 6 : 4) * samples() * static_cast<int64_t>(sizeof(Offer));
  const int64_t tables = 6 * blocks_ * StepFile::end_bytes(blocks_ + divide_up(block_rows_, section_rows_));
  return lists + named + offered + tables;
}

BuildOutcome DescentOnDisk::run() {
  const ReadMemory reading = task_.x.reserve_memory(quiet_);
  thresholds_ = HostArray<uint32_t>(rows(), "the ends of lists", quiet_);
  began_ = std::chrono::steady_clock::now();
  const std::optional<int64_t> done = rounds_done();
  find_control();
  if (done) {
    last_round_ = *done;
    if (*done > 0) forget_round(*done - 1);  // the process may have been killed before it did that
  } else {
    begin_lists();
    end_round({});
  }
  constexpr int64_t kPasses = 3;  // over all blocks in a round
  ProgressMeter meter("descend", task_.params.iterations * kPasses * blocks_, resources_);
  meter.add(last_round_ * kPasses * blocks_);
  while (!is_over()) descend(meter);
  meter.finish();
  BuildOutcome outcome;
  outcome.rounds = rounds_;
  // What the graphs know beyond the half that the rounds began with.
  ends_whole_ = task_.params.k > task_.length / 2;
  if (ends_whole_) put_back();
  outcome.recall = measure();
  outcome.reached = !task_.params.recall || outcome.recall->recall >= *task_.params.recall;
  return outcome;
}

void DescentOnDisk::find_control() {
  const std::vector<uint32_t> drawn = ControlRows::draw(rows(), task_.params.rules.seed, quiet_);
  const auto count = static_cast<int64_t>(drawn.size());
  const int64_t wanted = ControlRows::wanted(rows(), task_.params.k);
  const std::string name = task_.prefix + "control";
  const int64_t places = count * wanted;
  if (const std::optional<StepFile> step = folder_->find(name)) {
    if (step->sections() != 2 || step->bytes(0) != places * 8 || step->bytes(1) != places * 4) {
      step->refuse("the step is of other control rows");
    }
    Neighbors truth(count, wanted, quiet_);
    step->read(0, truth.view().ids);
    step->read(1, truth.view().distances);
    control_.emplace(rows(), task_.params.metric, task_.params.k, drawn, truth);
    return;
  }
  const Neighbors truth =
      search_control_rows(task_.x, {task_.params.metric, task_.params.k, task_.params.rules.seed}, quiet_);
  StepWriter writer(*folder_, name);
  writer.add(std::as_bytes(std::span(truth.ids(), static_cast<size_t>(places))));
  writer.add(std::as_bytes(std::span(truth.distances(), static_cast<size_t>(places))));
  writer.commit();
  control_.emplace(rows(), task_.params.metric, task_.params.k, drawn, truth);
}

std::optional<int64_t> DescentOnDisk::rounds_done() {
  std::optional<int64_t> done;
  rounds_.clear();
  for (int64_t round = 0;; ++round) {
    const std::optional<StepFile> step = folder_->find(mark_name(round));
    if (!step) break;
    RoundMark mark;
    if (step->sections() != 1 || step->bytes(0) != int64_t{sizeof(mark)}) step->refuse("the step is of another size");
    step->read(0, &mark);
    recall_ = mark.recall;
    if (round > 0) rounds_.push_back(mark.round.told());
    done = round;
  }
  if (!done || are_there([&](int64_t block) { return lists_name(*done, block); })) return done;
  forget();  // lists of earlier rounds are gone: it begins anew
  rounds_.clear();
  return std::nullopt;
}

bool DescentOnDisk::is_over() const {
  if (task_.params.recall && recall_.recall >= *task_.params.recall) return true;
  if (last_round_ == task_.params.iterations) return true;
  const double little = task_.params.delta * static_cast<double>(rows()) * static_cast<double>(task_.params.k);
  return last_round_ > 0 && static_cast<double>(rounds_.back().updates) <= little;
}

void DescentOnDisk::begin_lists() {
  for (int64_t block = 0; block < blocks_; ++block) {
    if (folder_->find(lists_name(0, block))) continue;
    quiet_.check_cancelled();
    WorkingLists lists(block_rows_, task_.length, quiet_);
    offer_graphs(block, task_.length / 2, lists);
    for_rows(block, [&](int64_t i, int) {
      uint64_t* const list = lists.list(i);
      for (int64_t j = 0; j < task_.length && list[j] != kPadding; ++j) list[j] |= kOldFlag;
    });
    offer_random(block, lists);
    write_block(lists_name(0, block), block, 0, lists);
  }
}

// One more round.
void DescentOnDisk::descend(ProgressMeter& meter) {
  const int64_t round = last_round_;
  const auto offers = [&](int64_t block) { return step_name("offers", round, block); };
  const auto for_blocks = [&](const auto& body) {
    for (int64_t block = 0; block < blocks_; ++block) {
      body(block);
      meter.add(1);
      meter.poll();
    }
  };
  if (!are_there(offers)) {
    if (!knows_thresholds_) keep_thresholds(round);
    for_blocks([&](int64_t block) { name_samples(round, block); });
    for_blocks([&](int64_t block) { join(round, block); });
  }
  remove_steps("names-");
  GraphRound told;
  told.comparisons = pairs_compared(round);
  for_blocks([&](int64_t block) { merge(round, block, told); });
  knows_thresholds_ = true;
  ++last_round_;
  end_round(told);
}

// The last sections of the offers of a round.
int64_t DescentOnDisk::pairs_compared(int64_t round) const {
  int64_t pairs = 0;
  for (int64_t block = 0; block < blocks_; ++block) {
    const StepFile step = folder_->open(step_name("offers", round, block));
    const int64_t last = step.sections() - 1;
    if (last < 0 || last % blocks_ != 0 || step.bytes(last) != 8) step.refuse("the step is of other offers");
    pairs += step.values<int64_t>(last).at(0);
  }
  return pairs;
}

void DescentOnDisk::name_samples(int64_t round, int64_t block) {
  const std::string name = step_name("names", round, block);
  if (folder_->find(name)) return;
  quiet_.check_cancelled();
  const HostArray<uint32_t> forward(2 * samples() * rows_of(block), "samples", quiet_);
  RecordSpill<Name> names(spilled_names(block_rows_, task_.params.rules), rows(), block_rows_, quiet_);
  {
    WorkingLists lists(block_rows_, task_.length, quiet_);
    read_block(lists_name(round, block), block, lists);
    draw(block, lists, forward.data());
  }
  StepWriter writer(*folder_, name);
  for (int64_t i = 0; i < rows_of(block); ++i) {
    if (!names.has_room(2 * samples())) names.flush(writer);
    const auto row = static_cast<uint32_t>(first_of(block) + i);
    for (int64_t j = 0; j < 2 * samples(); ++j) {
      const uint32_t to = forward[2 * samples() * i + j];
      if (to != kNobody) names.add({to, j < samples() ? row : row | static_cast<uint32_t>(kOldFlag)});
    }
  }
  names.flush(writer);
  writer.commit();
}

// Whoever has sampled the rows of a block, as reverse samples of these.
void DescentOnDisk::read_names(int64_t round, int64_t block, uint32_t* reverse) const {
  const uint64_t salt = round_salt(task_.params.rules.seed, round);
  const int64_t p = samples();
  std::fill_n(reverse, 2 * p * rows_of(block), kNobody);
  const HostArray<Name> names(spilled_names(block_rows_, task_.params.rules), "samples", quiet_);
  for (int64_t from = 0; from < blocks_; ++from) {
    const StepFile step = folder_->open(step_name("names", round, from));
    for (int64_t section = block; section < step.sections(); section += blocks_) {
      const auto count = step.bytes(section) / static_cast<int64_t>(sizeof(Name));
      if (count > names.size()) step.refuse("the step is of another size");
      step.read(section, names.data());
      for (int64_t i = 0; i < count; ++i) {
        const bool old = (names[i].from & kOldFlag) != 0;
        const auto sampler = static_cast<uint32_t>(without_flag(names[i].from));
        const int64_t at = static_cast<int64_t>(names[i].row) - first_of(block);
        if (at < 0 || at >= rows_of(block)) step.refuse("the step is of other rows");
        uint32_t* const bucket = reverse + (2 * at + (old ? kOldSample : kNewSample)) * p;
        uint32_t& there = bucket[place_of(pair_hash(salt, sampler, names[i].row), p)];
        if (replaces(salt, names[i].row, sampler, there)) there = sampler;
      }
    }
  }
}

// A join's own samples and those of who has sampled its row; or those of several joins, since preparing a group of joins
// takes time by itself.
int64_t DescentOnDisk::least_joined() const {
  return std::min(std::max(4 * samples(), std::min(rows() / kDescentBlocks, kMostOfLeast)), rows());
}

// The memory of gathered rows, with what it takes to compare them.
Footprint DescentOnDisk::join_footprint(int64_t gathered_rows) const {
  return counted(quiet_, [&](const Resources& counting) {
    const GatheredRows gathered(task_.x, gathered_rows, counting);
    const PairRows pairs(gathered.room(), key_kind(task_.params.metric), counting);
    std::vector<std::unique_ptr<PairScan>> scans;
    for (int slot = 0; slot < quiet_.threads(); ++slot) {
      scans.push_back(make_pair_scan(pairs, 2 * samples(), 2 * samples(), counting,
                                     choose_float_pairs(task_.x.cols(), true)));
      scans.back()->make_room_for_nearest();
    }
  });
}

void DescentOnDisk::join(int64_t round, int64_t block) {
  const std::string name = step_name("offers", round, block);
  if (folder_->find(name)) return;
  quiet_.check_cancelled();
  const int64_t p = samples();
  DescentRules rules = task_.params.rules;
  rules.random_lists = true;
  JoinMemory memory(rows(), block_rows_, rules, quiet_);
  {
    WorkingLists lists(block_rows_, task_.length, quiet_);
    read_block(lists_name(round, block), block, lists);
    draw(block, lists, memory.forward.data());
  }
  read_names(round, block, memory.reverse.data());
  const int64_t room = rows_that_fit(least_joined(), std::min(rows(), kMostGathered), quiet_,
                                     [&](int64_t some) { return join_footprint(some); });
  GatheredRows gathered(task_.x, room, quiet_);
  const SpillTarget<Offer> target(gathered, thresholds_, memory.offers);
  const auto forward = [&](int64_t i) { return memory.forward.data() + 2 * p * i; };
  const auto reverse = [&](int64_t i) { return memory.reverse.data() + 2 * p * i; };
  const auto meets_somebody = [&](int64_t i) {
    const auto is_one = [](uint32_t row) { return row != kNobody; };
    return std::any_of(forward(i), forward(i) + p, is_one) || std::any_of(reverse(i), reverse(i) + p, is_one);
  };
  StepWriter writer(*folder_, name);
  const int64_t together = std::max<int64_t>(1, memory.offers.room() / most_offers(rules));
  int64_t pairs = 0;
  for (int64_t first = 0; first < rows_of(block);) {
    gathered.clear();
    int64_t end = first;
    for (; end < rows_of(block); ++end) {
      if (!meets_somebody(end)) continue;
      // Both or none: the second try gets the room of an empty set.
      if (!gathered.add(forward(end), 2 * p) || !gathered.add(reverse(end), 2 * p)) break;
    }
    if (gathered.view().rows() == 0) break;
    gathered.load();
    const PairRows rows(gathered.view(), key_kind(task_.params.metric), quiet_);
    std::vector<std::unique_ptr<JoinWorker<SpillTarget<Offer>>>> workers;
    for (int slot = 0; slot < quiet_.threads(); ++slot) {
      workers.push_back(std::make_unique<JoinWorker<SpillTarget<Offer>>>(rows, rules, target, quiet_));
    }
    std::vector<JoinSets> sets(workers.size());
    std::vector<int64_t> compared(workers.size(), 0);
    for (int64_t at = first; at < end; at += together) {
      const int64_t some = std::min(together, end - at);
      if (!memory.offers.has_room(some * most_offers(rules))) memory.offers.flush(writer);
      for_row_blocks("join", some, quiet_, [&](int64_t begin, int64_t stop, int slot) {
        JoinSets& mine = sets[static_cast<size_t>(slot)];
        for (int64_t i = at + begin; i < at + stop; ++i) {
          collect_samples(forward(i), reverse(i), p, mine);
          if (mine.fresh.empty()) continue;
          for (std::vector<uint32_t>* const set : {&mine.fresh, &mine.old}) {
            for (uint32_t& row : *set) row = gathered.place_of(row);
          }
          compared[static_cast<size_t>(slot)] += workers[static_cast<size_t>(slot)]->join(mine);
        }
      }, kJoinedRows);
    }
    for (const int64_t some : compared) pairs += some;
    first = end;
  }
  memory.offers.flush(writer);
  writer.add(std::as_bytes(std::span(&pairs, 1)));
  writer.commit();
}

// Adds to `told` what happened to the lists of a block.
void DescentOnDisk::merge(int64_t round, int64_t block, GraphRound& told) {
  const auto tell = [&](const WorkingLists& lists, int64_t entered) {
    told.updates += entered;
    told.phi += survey_lists(lists, task_.params.k, task_.params.metric, Flags::keep, quiet_).phi;
    keep_thresholds(block, lists);
  };
  const std::string name = lists_name(round + 1, block);
  WorkingLists lists(block_rows_, task_.length, quiet_);
  if (const std::optional<StepFile> step = folder_->find(name)) {
    read_block(name, block, lists);
    return tell(lists, step->values<int64_t>(0).at(0));
  }
  quiet_.check_cancelled();
  const uint64_t salt = round_salt(task_.params.rules.seed, round);
  const Inbox inbox(block_rows_, task_.params.rules.inbox_slots, quiet_);
  read_block(lists_name(round, block), block, lists);
  {
    const HostArray<uint32_t> samples_of(quiet_.threads() * 2 * samples(), "samples", quiet_);
    for_rows(block, [&](int64_t i, int slot) {
      draw_samples(task_.params.rules, first_of(block) + i, lists.list(i), task_.length,
                   samples_of.data() + slot * 2 * samples());
    });
  }
  const HostArray<Offer> offers(spilled_offers(block_rows_, task_.params.rules), "offers", quiet_);
  for (int64_t from = 0; from < blocks_; ++from) {
    const StepFile step = folder_->open(step_name("offers", round, from));
    for (int64_t section = block; section < step.sections() - 1; section += blocks_) {
      const auto count = step.bytes(section) / static_cast<int64_t>(sizeof(Offer));
      if (count > offers.size()) step.refuse("the step is of another size");
      step.read(section, offers.data());
      for_row_blocks("offers", count, quiet_, [&](int64_t first, int64_t end) {
        for (int64_t i = first; i < end; ++i) {
          const int64_t at = static_cast<int64_t>(offers[i].row) - first_of(block);
          if (at < 0 || at >= rows_of(block)) step.refuse("the step is of other rows");
          const uint64_t neighbor = pack_neighbor(offers[i].key, offers[i].neighbor);
          if (!takes_offer(lists.list(at), task_.length, neighbor)) continue;
          inbox.offer(at, inbox_slot(salt, offers[i].neighbor, inbox.slots()), neighbor);
        }
      });
    }
  }
  std::atomic<int64_t> entered{0};
  for_rows(block, [&](int64_t i, int) {
    entered.fetch_add(merge_offers(inbox.of(i), inbox.slots(), lists, i), std::memory_order_relaxed);
  });
  write_block(name, block, entered.load(), lists);
  tell(lists, entered.load());
}

// Marks the lists as there, after the last round or before the first.
void DescentOnDisk::end_round(const GraphRound& told) {
  recall_ = measure();
  const auto now = std::chrono::steady_clock::now();
  GraphRound round = told;
  round.recall = recall_.recall;
  round.seconds = std::chrono::duration<double>(now - began_).count();
  began_ = now;
  const RoundMark mark{StoredRound(round), recall_};
  StepWriter writer(*folder_, mark_name(last_round_));
  writer.add(std::as_bytes(std::span(&mark, 1)));
  writer.commit();
  if (last_round_ == 0) return;
  rounds_.push_back(round);
  forget_round(last_round_ - 1);
}

// Removes what a round began with, once its mark is there.
void DescentOnDisk::forget_round(int64_t round) {
  for (const std::string_view kind : {"names", "offers", "lists"}) remove_steps(fmt::format("{}-{}-", kind, round));
}

void DescentOnDisk::put_back() {
  for (int64_t block = 0; block < blocks_; ++block) {
    const std::string name = step_name("whole", 0, block);
    if (folder_->find(name)) continue;
    quiet_.check_cancelled();
    WorkingLists lists(block_rows_, task_.length, quiet_);
    read_block(lists_name(last_round_, block), block, lists);
    offer_graphs(block, task_.params.k, lists);
    write_block(name, block, 0, lists);
  }
}

RecallEstimate DescentOnDisk::measure() const {
  const std::vector<uint32_t>& drawn = control_->rows();
  const HostArray<uint64_t> found(static_cast<int64_t>(drawn.size()) * task_.length, "the control rows' lists", quiet_);
  const HostArray<uint64_t> section(scratch_words(), "lists", quiet_);
  int64_t there = -1;  // the section, of all blocks, that is in memory
  std::optional<StepFile> step;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const int64_t block = drawn[i] / block_rows_;
    const int64_t in_block = drawn[i] - first_of(block);
    const int64_t number = block * divide_up(block_rows_, section_rows_) + in_block / section_rows_;
    if (number != there) {
      if (!step || there < 0 || there / divide_up(block_rows_, section_rows_) != block) {
        step.emplace(folder_->open(present_name(block)));
      }
      step->read(1 + in_block / section_rows_, section.data());
      there = number;
    }
    std::copy_n(section.data() + in_block % section_rows_ * task_.length, task_.length,
                found.data() + static_cast<int64_t>(i) * task_.length);
  }
  return control_->measure(found.data(), task_.length);
}

void DescentOnDisk::offer_graphs(int64_t block, int64_t most, WorkingLists& lists) {
  const int64_t k = task_.params.k;
  const HostArray<int64_t> ids(rows_of(block) * k, "the graphs' neighbours", quiet_);
  task_.graphs(first_of(block), rows_of(block), ids.data());
  offer_rows(block, std::min(most, k), [&](int64_t i, std::vector<uint32_t>& named) {
    const int64_t* const of_row = ids.data() + i * k;
    for (int64_t j = 0; j < std::min(most, k) && of_row[j] >= 0; ++j) named.push_back(static_cast<uint32_t>(of_row[j]));
  }, lists);
}

void DescentOnDisk::offer_random(int64_t block, WorkingLists& lists) {
  const CounterRng rng(task_.params.rules.seed, kStartStream);
  // Room as it was before any of them came: each row is asked for twice.
  const HostArray<int32_t> room(rows_of(block), "random rows", quiet_);
  for_rows(block, [&](int64_t i, int) {
    const uint64_t* const list = lists.list(i);
    room[i] = static_cast<int32_t>(std::count(list, list + task_.length, kPadding));
  });
  offer_rows(block, task_.length, [&](int64_t i, std::vector<uint32_t>& drawn) {
    std::vector<uint32_t> of_row;
    draw_start_rows(rng, first_of(block) + i, {rows(), task_.params.rules.boundary}, room[i], of_row);
    drawn.insert(drawn.end(), of_row.begin(), of_row.end());
  }, lists);
}

void DescentOnDisk::offer_rows(int64_t block, int64_t most,
                               const std::function<void(int64_t, std::vector<uint32_t>&)>& list_rows,
                               WorkingLists& lists) {
  const int64_t room =
      rows_that_fit(std::min(most + 1, rows()), std::min(rows(), kMostGathered), quiet_, [&](int64_t some) {
        return counted(quiet_, [&](const Resources& counting) { (void)GatheredRows(task_.x, some, counting); });
      });
  GatheredRows gathered(task_.x, room, quiet_);
  std::vector<uint32_t> listed;
  for (int64_t first = 0; first < rows_of(block);) {
    gathered.clear();
    int64_t end = first;
    for (; end < rows_of(block); ++end) {
      listed.assign(1, static_cast<uint32_t>(first_of(block) + end));
      list_rows(end, listed);
      if (!gathered.add(listed.data(), static_cast<int64_t>(listed.size()))) break;
    }
    gathered.load();
    struct Worker {
      PairKeys keys;
      std::vector<uint32_t> rows;
      std::vector<float> found;
    };
    std::vector<Worker> workers(static_cast<size_t>(quiet_.threads()),
                                {PairKeys(gathered.view(), key_kind(task_.params.metric)), {}, {}});
    for_row_blocks("start", end - first, quiet_, [&](int64_t begin, int64_t stop, int slot) {
      Worker& mine = workers[static_cast<size_t>(slot)];
      for (int64_t i = first + begin; i < first + stop; ++i) {
        mine.rows.clear();
        list_rows(i, mine.rows);
        if (mine.rows.empty()) continue;
        for (uint32_t& row : mine.rows) row = gathered.place_of(row);
        mine.found.resize(mine.rows.size());
        const uint32_t place = gathered.place_of(static_cast<uint32_t>(first_of(block) + i));
        mine.keys.of(place, mine.rows.data(), static_cast<int64_t>(mine.rows.size()), mine.found.data());
        for (size_t j = 0; j < mine.rows.size(); ++j) {
          lists.offer_alone(i, pack_neighbor(ordered_key(mine.found[j]), gathered.row_at(mine.rows[j])));
        }
      }
    }, kJoinedRows);
    first = end;
  }
}

void DescentOnDisk::read_block(const std::string& name, int64_t block, WorkingLists& lists) const {
  const StepFile step = folder_->open(name);
  if (step.sections() != 1 + sections_of(block)) {
    step.refuse("the step is of other rows");
  }
  ProgressMeter meter("lists", sections_of(block), quiet_);
  parallel_for(sections_of(block), meter, quiet_, [&](int64_t section, int) {
    const int64_t first = section * section_rows_;
    const int64_t end = std::min(first + section_rows_, rows_of(block));
    if (step.bytes(1 + section) != (end - first) * task_.length * 8) {
      step.refuse("the step is of other rows");
    }
    step.read(1 + section, lists.list(first));
    for (int64_t i = first; i < end; ++i) lists.refresh_threshold(i);
  });
}

void DescentOnDisk::write_block(const std::string& name, int64_t block, int64_t entered, const WorkingLists& lists) {
  std::vector<int64_t> sizes{8};
  for (int64_t section = 0; section < sections_of(block); ++section) {
    sizes.push_back(std::min(section_rows_, rows_of(block) - section * section_rows_) * task_.length * 8);
  }
  StepWriter writer(*folder_, name);
  writer.lay_out(sizes);
  writer.put(0, std::as_bytes(std::span(&entered, 1)));
  ProgressMeter meter("lists", sections_of(block), quiet_);
  parallel_for(sections_of(block), meter, quiet_, [&](int64_t section, int) {
    const auto* const begin = reinterpret_cast<const std::byte*>(lists.list(section * section_rows_));
    writer.put(1 + section, {begin, static_cast<size_t>(sizes[static_cast<size_t>(1 + section)])});
  });
  writer.commit();
}

void DescentOnDisk::keep_thresholds(int64_t round) {
  WorkingLists lists(block_rows_, task_.length, quiet_);
  for (int64_t block = 0; block < blocks_; ++block) {
    read_block(lists_name(round, block), block, lists);
    keep_thresholds(block, lists);
  }
}

void DescentOnDisk::keep_thresholds(int64_t block, const WorkingLists& lists) {
  for (int64_t i = 0; i < rows_of(block); ++i) thresholds_[first_of(block) + i] = lists.threshold(i);
}

void DescentOnDisk::draw(int64_t block, WorkingLists& lists, uint32_t* samples_of) const {
  for_rows(block, [&](int64_t i, int) {
    draw_samples(task_.params.rules, first_of(block) + i, lists.list(i), task_.length, samples_of + 2 * samples() * i);
  });
}

void DescentOnDisk::read(int64_t first, int64_t count, uint64_t* lists, uint64_t* scratch) const {
  const int64_t k = task_.params.k;
  for (int64_t row = first; row < first + count;) {
    const int64_t block = row / block_rows_;
    const StepFile step = folder_->open(present_name(block));
    const int64_t block_end = std::min(first_of(block) + rows_of(block), first + count);
    while (row < block_end) {
      const int64_t section = (row - first_of(block)) / section_rows_;
      const int64_t begin = first_of(block) + section * section_rows_;
      const int64_t end = std::min(begin + section_rows_, first_of(block) + rows_of(block));
      if (step.sections() != 1 + sections_of(block) || step.bytes(1 + section) != (end - begin) * task_.length * 8) {
        step.refuse("the step is of other rows");
      }
      step.read(1 + section, scratch);
      for (; row < std::min(end, block_end); ++row) {
        const uint64_t* const list = scratch + (row - begin) * task_.length;
        uint64_t* const out = lists + (row - first) * k;
        for (int64_t j = 0; j < k; ++j) out[j] = list[j] == kPadding ? kPadding : without_flag(list[j]);
      }
    }
  }
}

}  // namespace kith
