#include "graph/build/descent_on_disk/descent_on_disk.hpp"

#include "core/reservation.hpp"
#include "core/within_limits.hpp"
#include "graph/build/cells_on_disk/control_search.hpp"
#include "graph/build/descent_on_disk/descent_round.hpp"
#include "graph/build/descent_on_disk/descent_start.hpp"
#include "graph/build/descent_on_disk/stored_round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace kith {
namespace {

// What the mark of a round holds. Before the first there is no round, but a recall.
struct RoundMark {
  StoredRound round;
  RecallEstimate recall;
};

}  // namespace

DescentOnDisk::DescentOnDisk(const DescentTask& task, WorkFolder* folder, const Resources& resources)
    : task_(task),
      folder_(folder),
      resources_(resources.with_device(Device::cpu())),
      quiet_(resources_.with_progress({})),
      blocks_(task, folder, quiet_) {}

std::string DescentOnDisk::mark_name(int64_t round) const { return fmt::format("{}round-{}", task_.prefix, round); }
std::string DescentOnDisk::present_name(int64_t block) const {
  return ends_whole_ ? blocks_.step_name("whole", 0, block) : blocks_.lists_name(last_round_, block);
}

void DescentOnDisk::forget() { blocks_.remove_steps(""); }

void DescentOnDisk::count() {
  (void)search_control_rows(task_.x, {task_.params.metric, task_.params.k, task_.params.rules.seed}, quiet_);
  const HostArray<uint32_t> thresholds(rows(), "the ends of lists", quiet_);
  const int64_t tables = StepFile::table_bytes(divide_up(blocks_.block_rows(), blocks_.section_rows()) + 1) +
                         StepFile::table_bytes(DescentRound::most_sections(blocks_));
  const Reservation kept(2 * tables, 0, quiet_);
  const ReadMemory reading = task_.x.reserve_memory(quiet_);
  count_start(blocks_);
  DescentRound::count_joins(blocks_);
  const HostArray<uint64_t> control(kControlRows * task_.length, "the control rows' lists", quiet_);
  DescentRound::count_merges(blocks_);
}

int64_t DescentOnDisk::disk_bytes() const {
  const int64_t sections = divide_up(blocks_.block_rows(), blocks_.section_rows());
  const int64_t lists = 2 * rows() * (8 * task_.length + 8);
  const int64_t tables = 6 * blocks_.count() * StepFile::end_bytes(blocks_.count() + sections);
  return lists + DescentRound::disk_bytes(blocks_) + tables;
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
  ProgressMeter meter("descend", task_.params.iterations * kPasses * blocks_.count(), resources_);
  meter.add(last_round_ * kPasses * blocks_.count());
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
  if (!done || blocks_.are_there([&](int64_t block) { return blocks_.lists_name(*done, block); })) return done;
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
  for (int64_t block = 0; block < blocks_.count(); ++block) {
    const std::string name = blocks_.lists_name(0, block);
    if (folder_->find(name)) continue;
    quiet_.check_cancelled();
    WorkingLists lists = blocks_.empty_lists();
    offer_graphs(blocks_, block, task_.length / 2, lists);
    blocks_.for_rows(block, [&](int64_t i, int) {
      uint64_t* const list = lists.list(i);
      for (int64_t j = 0; j < task_.length && list[j] != kPadding; ++j) list[j] |= kOldFlag;
    });
    offer_random(blocks_, block, lists);
    blocks_.write_lists(name, block, 0, lists);
  }
}

// One more round.
void DescentOnDisk::descend(ProgressMeter& meter) {
  const DescentRound round(blocks_, last_round_, thresholds_);
  const auto for_blocks = [&](const auto& body) {
    for (int64_t block = 0; block < blocks_.count(); ++block) {
      body(block);
      meter.add(1);
      meter.poll();
    }
  };
  if (!blocks_.are_there([&](int64_t block) { return round.offers(block); })) {
    if (!knows_thresholds_) keep_thresholds(last_round_);
    for_blocks([&](int64_t block) { round.name_samples(block); });
    for_blocks([&](int64_t block) { round.join(block); });
  }
  blocks_.remove_steps("names-");
  GraphRound told;
  told.comparisons = round.pairs_compared();
  for_blocks([&](int64_t block) { round.merge(block, told); });
  knows_thresholds_ = true;
  ++last_round_;
  end_round(told);
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
  for (const std::string_view kind : {"names", "offers", "lists"}) {
    blocks_.remove_steps(fmt::format("{}-{}-", kind, round));
  }
}

void DescentOnDisk::put_back() {
  for (int64_t block = 0; block < blocks_.count(); ++block) {
    const std::string name = blocks_.step_name("whole", 0, block);
    if (folder_->find(name)) continue;
    quiet_.check_cancelled();
    WorkingLists lists = blocks_.empty_lists();
    blocks_.read_lists(blocks_.lists_name(last_round_, block), block, lists);
    offer_graphs(blocks_, block, task_.params.k, lists);
    blocks_.write_lists(name, block, 0, lists);
  }
}

RecallEstimate DescentOnDisk::measure() const {
  const std::vector<uint32_t>& drawn = control_->rows();
  const HostArray<uint64_t> found(static_cast<int64_t>(drawn.size()) * task_.length, "the control rows' lists", quiet_);
  const HostArray<uint64_t> lists(scratch_words(), "lists", quiet_);
  // Whose lists are in memory.
  int64_t block = -1;
  int64_t section = -1;
  std::optional<StepFile> step;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const bool same_block = blocks_.block_of(drawn[i]) == block;
    block = blocks_.block_of(drawn[i]);
    if (!same_block) step.emplace(folder_->open(present_name(block)));
    const int64_t in_block = drawn[i] - blocks_.first_of(block);
    const bool same_section = same_block && in_block / blocks_.section_rows() == section;
    section = in_block / blocks_.section_rows();
    if (!same_section) blocks_.read_section(*step, block, section, lists.data());
    std::copy_n(lists.data() + in_block % blocks_.section_rows() * task_.length, task_.length,
                found.data() + static_cast<int64_t>(i) * task_.length);
  }
  return control_->measure(found.data(), task_.length);
}

void DescentOnDisk::keep_thresholds(int64_t round) {
  WorkingLists lists = blocks_.empty_lists();
  for (int64_t block = 0; block < blocks_.count(); ++block) {
    blocks_.read_lists(blocks_.lists_name(round, block), block, lists);
    blocks_.copy_thresholds(block, lists, thresholds_);
  }
}

void DescentOnDisk::read(int64_t first, int64_t count, uint64_t* lists, uint64_t* scratch) const {
  const int64_t k = task_.params.k;
  for (int64_t row = first; row < first + count;) {
    const int64_t block = blocks_.block_of(row);
    const StepFile step = folder_->open(present_name(block));
    const int64_t end = std::min(blocks_.first_of(block) + blocks_.rows_of(block), first + count);
    while (row < end) {
      const int64_t section = (row - blocks_.first_of(block)) / blocks_.section_rows();
      const int64_t begin = blocks_.first_of(block) + section * blocks_.section_rows();
      blocks_.read_section(step, block, section, scratch);
      for (; row < std::min(begin + blocks_.section_rows(), end); ++row) {
        const uint64_t* const list = scratch + (row - begin) * task_.length;
        uint64_t* const out = lists + (row - first) * k;
        for (int64_t j = 0; j < k; ++j) out[j] = list[j] == kPadding ? kPadding : without_flag(list[j]);
      }
    }
  }
}

}  // namespace kith
