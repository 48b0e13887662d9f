#include "graph/build/nn_descent/join_cuda.hpp"

#include "cuda/device_array.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/device_share_cuda.hpp"
#include "graph/lists/graph_lists_cuda.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kOrderedRows = int64_t{1} << 13;    // fewer are processed in their order: everything is in the cache
constexpr int64_t kRowsPerLaunch = int64_t{1} << 18;  // some tens of milliseconds at most, where keys are slow

constexpr int64_t kHalfBytes = 2;

// The operands of all rows for the products of joins, with what is known of each, made once.
//
// Memory: 2 bytes a value, rounded up to 128, and 16 a row; 40 more for each of kFactRows rows while they are made.
class JoinOperandsCuda {
 public:
  // Nothing where the metric is the user's or no product, or there are too many columns for one.
  JoinOperandsCuda(const PairKeyRows& rows, std::shared_ptr<const DeviceContext> context, const Resources& resources);

  JoinOperands get() const { return operands_; }

 private:
  DeviceBuffer halves_;
  DeviceArray<JoinBounds> bounds_;
  JoinOperands operands_;
};

JoinOperandsCuda::JoinOperandsCuda(const PairKeyRows& rows, std::shared_ptr<const DeviceContext> context,
                                   const Resources& resources) {
  const int64_t count = rows.rows.count;
  if (rows.custom != nullptr || !joins_are_products(rows.kind, rows.cols) || count == 0) return;
  const int64_t chunks = operand_chunks(rows.cols, kHalfBytes);
  const cudaStream_t stream = context->stream();
  halves_ = DeviceBuffer(operand_bytes(count, chunks), "operands of the rows", context, resources);
  bounds_ = DeviceArray<JoinBounds>(count, "operands of the rows", context, resources);
  const DeviceArray<float> centre(rows.cols, "operands of the rows", context, resources);
  const DeviceArray<BaseBounds> base(1, "operands of the rows", context, resources);
  const DeviceArray<QueryOperand> some(std::min(count, kFactRows), "operands of the rows", context, resources);
  context->fill(base.data(), 0, 1);
  OperandTask task{rows.rows, rows.cols, rows.kind, OperandType::half, centre.data(), base.data(), halves_.data()};
  launch_sample(task, stream);
  for (int64_t first = 0; first < count; first += kFactRows) {
    const int64_t here = std::min(kFactRows, count - first);
    task.rows = slice_rows(rows.rows, first, here);
    task.operands = halves_.data() + first / kOperandTile * chunks * kTileChunkBytes;
    launch_query_operands(task, {some.data(), nullptr, 0}, stream);
    launch_join_bounds(rows.kind, some.data(), here, bounds_.data() + first, stream);
  }
  context->synchronize();  // what was taken for a while goes back
  operands_ = {halves_.data(), bounds_.data(), chunks};
}

class DescentStepsCuda final : public DescentSteps {
 public:
  DescentStepsCuda(const PairKeyRows& rows, const DescentRules& rules, uint64_t* lists, int64_t list_length,
                   std::shared_ptr<const DeviceContext> context, const Resources& resources,
                   const DescentPasses& passes)
      : rules_(rules),
        passes_(passes),
        context_(std::move(context)),
        operands_(rows, context_, resources),
        resources_(resources),
        layout_(rows.rows.count, list_length, rules),
        memory_(layout_.bytes, "rounds of NN-Descent", context_, resources),
        lists_{{lists, rows.rows.count, list_length}, at(layout_.ends)},
        own_(passes.share == nullptr ? RankPart{0, rows.rows.count} : passes.share->rows()) {
    task_.rows = rows;
    task_.operands = operands_.get();
    task_.lists = lists_;
    task_.known = {at(layout_.known), known_bits(list_length)};
    task_.samples = {at(layout_.samples), at(layout_.sample_counts), rules.samples};
    task_.inbox = at(layout_.inbox);
    task_.slots = rules.inbox_slots;
    task_.boundary = rules.boundary;
    task_.all_pairs = rules.all_pairs;
    if (rows.custom != nullptr) {
      sets_.emplace(*rows.custom, rows, rows.rows.count, 2 * rules.samples, 4 * rules.samples, context_, resources);
    }
    if (passes.order == nullptr && rows.custom == nullptr && lists_.rows >= kOrderedRows) {
      // Uses the memory of the known rows, which come later.
      const JoinOrderLayout layout(lists_.rows);
      if (layout.bytes <= layout_.known.bytes()) order_.emplace(layout);
    }
    launch_list_ends(lists_, stream());
    clear(layout_.inbox);
  }

  void sample(int64_t round, ProgressMeter& meter) override {
    if (passes_.share != nullptr) launch_list_ends(lists_, stream());  // others have changed them
    clear(layout_.samples);
    launch_sample_lists(lists_, task_.samples, rules_.boundary, round_salt(rules_.seed, round), stream());
    const uint32_t* order = passes_.order;
    if (order_) {
      launch_join_order(lists_, *order_, memory_.data() + layout_.known.offset, at(layout_.order), stream());
      order = at(layout_.order);
    }
    clear(layout_.pairs, 0);
    clear(layout_.join_counts, 0);
    const DeviceJoins joins{at(layout_.joins), at(layout_.join_counts)};
    launch_collect_joins({task_.samples, own_.first, own_.count, rules_.boundary > 0, order,
                          task_.operands.halves != nullptr, joins, at(layout_.pairs)},
                         stream());
    context_->copy_values(joins_, joins.counts, kJoinSizes);
    launch_know_rows(lists_, task_.known, stream());
    advance(2 * lists_.rows, meter);
  }

  int64_t join(int64_t round, ProgressMeter& meter) override {
    task_.salt = round_salt(rules_.seed, round);
    int64_t done = 0;
    for (int size = kJoinSizes - 1; size >= 0; --size) {  // the longest first
      task_.joins = at(layout_.joins) + size * own_.count;
      const int64_t count = joins_[size];
      for (task_.first = 0; task_.first < count; task_.first += kRowsPerLaunch) {
        task_.count = std::min(kRowsPerLaunch, count - task_.first);
        if (sets_) {
          join_by_sets(meter);
        } else {
          launch_join(task_, static_cast<JoinSize>(size), stream());
        }
        advance(task_.count, meter);
      }
      done += count;
    }
    meter.add(own_.count - done);
    return read_count(at(layout_.pairs), *context_);
  }

  void gather() override {
    gather_offers_on_device(*passes_.share, task_.inbox, rules_.inbox_slots, context_, resources_);
  }

  int64_t merge(ProgressMeter& meter) override {
    clear(layout_.entered, 0);
    const uint64_t* const offers = task_.inbox + own_.first * rules_.inbox_slots;
    launch_merge_offers(lists_, {offers, rules_.inbox_slots, own_.first, own_.count}, at(layout_.entered), stream());
    clear(layout_.inbox);
    advance(own_.count, meter);
    return read_count(at(layout_.entered), *context_);
  }

 private:
  cudaStream_t stream() const { return context_->stream(); }
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_.data());
  }
  // The rows of a launch by a metric of the user's, as many sets at a time as there is room for.
  void join_by_sets(ProgressMeter& meter) const {
    constexpr int64_t kBatchesAhead = 8;  // metrics may be slow, and the call is to be cancelled
    JoinTask part = task_;
    const int64_t end = task_.first + task_.count;
    for (int64_t batch = 1; part.first < end; part.first += part.count, ++batch) {
      part.count = std::min(sets_->room(), end - part.first);
      launch_join_sets(part, sets_->ref(), stream());
      sets_->compute(part.count);
      launch_join_offers(part, sets_->ref(), stream());
      if (batch % kBatchesAhead == 0) advance(0, meter);
    }
  }
  // Fills with kNobody and padding, unless another byte is given.
  template <typename T>
  void clear(const Slot<T>& slot, int byte = 0xFF) const {
    context_->fill(at(slot), byte, slot.count);
  }
  void advance(int64_t rows, ProgressMeter& meter) const {
    context_->synchronize();
    meter.add(rows);
    meter.poll();
  }

  const DescentRules rules_;
  const DescentPasses passes_;
  std::shared_ptr<const DeviceContext> context_;
  JoinOperandsCuda operands_;
  const Resources resources_;
  DescentLayout layout_;
  DeviceBuffer memory_;
  DeviceListsRef lists_;
  const RankPart own_;  // whose samples are joined: rows of these numbers, or at these places of the order
  JoinTask task_;
  uint32_t joins_[kJoinSizes] = {};  // of each size in this round
  std::optional<CustomSetsCuda> sets_;
  std::optional<JoinOrderLayout> order_;  // none: rows are processed in their order
};

}  // namespace

std::unique_ptr<DescentSteps> make_descent_steps_cuda(const PairKeyRows& rows, const DescentRules& rules,
                                                      uint64_t* lists, int64_t list_length,
                                                      std::shared_ptr<const DeviceContext> context,
                                                      const Resources& resources, const DescentPasses& passes) {
  check_descent(rules, list_length, Device::cuda(context->device()));
  return std::make_unique<DescentStepsCuda>(rows, rules, lists, list_length, std::move(context), resources, passes);
}

std::unique_ptr<DescentSteps> make_descent_steps_cuda(GraphLists& lists, const DescentRules& rules,
                                                      const DescentPasses& passes) {
  const auto& there = static_cast<const GraphListsCuda&>(lists);
  return make_descent_steps_cuda(there.pairs(), rules, there.lists().entries, there.length(), there.context(),
                                 there.resources(), passes);
}

}  // namespace kith
