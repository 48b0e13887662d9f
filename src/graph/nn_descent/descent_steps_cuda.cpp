#include "graph/nn_descent/descent_steps_cuda.hpp"

#include "cuda/device_buffer.hpp"
#include "graph/nn_descent/collect_joins_cuda.hpp"
#include "graph/nn_descent/custom_join_cuda.hpp"
#include "graph/nn_descent/descent_workspace.hpp"
#include "graph/nn_descent/join_cuda.hpp"
#include "graph/nn_descent/join_operands_cuda.hpp"
#include "graph/nn_descent/join_order_cuda.hpp"
#include "graph/nn_descent/join_rules.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kOrderedRows = int64_t{1} << 13;    // fewer are gone over as they lie: all is in the cache
constexpr int64_t kRowsPerLaunch = int64_t{1} << 18;  // some tens of milliseconds at most, where keys are slow

static_assert(kCounterBytes == kCounters * static_cast<int64_t>(sizeof(unsigned long long)));

class DescentStepsCuda final : public DescentSteps {
 public:
  DescentStepsCuda(const PairKeyRows& rows, const DescentRules& rules, uint64_t* lists, int64_t list_length,
                   std::shared_ptr<const DeviceContext> context, const Resources& resources)
      : rules_(rules),
        context_(std::move(context)),
        operands_(rows, context_, resources),
        layout_(rows.rows.count, list_length, rules),
        memory_(layout_.bytes, "rounds of NN-Descent", context_, resources),
        lists_{{lists, rows.rows.count, list_length}, at<uint64_t>(layout_.ends)} {
    task_.rows = rows;
    task_.operands = operands_.get();
    task_.lists = lists_;
    task_.known = {at<uint32_t>(layout_.known), known_bits(list_length)};
    task_.samples = {at<uint32_t>(layout_.samples), at<uint32_t>(layout_.sample_counts), rules.samples};
    task_.inbox = at<uint64_t>(layout_.inbox);
    task_.slots = rules.inbox_slots;
    task_.boundary = rules.boundary;
    task_.all_pairs = rules.all_pairs;
    if (rows.custom != nullptr) {
      sets_.emplace(*rows.custom, rows, rows.rows.count, 2 * rules.samples, 4 * rules.samples, context_, resources);
    }
    if (rules.order == nullptr && rows.custom == nullptr && lists_.rows >= kOrderedRows) {
      // It is made where the known rows will lie.
      const JoinOrderLayout layout(lists_.rows);
      if (layout.bytes <= lists_.rows * DescentLayout::known_bytes(list_length)) order_.emplace(layout);
    }
    launch_list_ends(lists_, stream());
    clear(task_.inbox, 8 * rules.inbox_slots * lists_.rows);
  }

  void sample(int64_t round, ProgressMeter& meter) override {
    clear(task_.samples.numbers, task_.samples.bytes(lists_.rows));
    launch_sample_lists(lists_, task_.samples, rules_.boundary, round_salt(rules_.seed, round), stream());
    const uint32_t* order = rules_.order;
    if (order_) {
      launch_join_order(lists_, *order_, at<std::byte>(layout_.known), at<uint32_t>(layout_.order), stream());
      order = at<uint32_t>(layout_.order);
    }
    KITH_CUDA_CHECK(cudaMemsetAsync(pairs(), 0, 2 * kCounterBytes, stream()));
    const DeviceJoins joins{at<uint32_t>(layout_.joins), reinterpret_cast<uint32_t*>(pairs() + kCounters)};
    launch_collect_joins({task_.samples, lists_.rows, rules_.boundary > 0, order, task_.operands.halves != nullptr, joins, pairs()},
                         stream());
    context_->copy(joins_, joins.counts, sizeof joins_);
    launch_know_rows(lists_, task_.known, stream());
    advance(2 * lists_.rows, meter);
  }

  int64_t join(int64_t round, ProgressMeter& meter) override {
    task_.salt = round_salt(rules_.seed, round);
    int64_t done = 0;
    for (int size = kJoinSizes - 1; size >= 0; --size) {  // the longest first
      task_.joins = at<uint32_t>(layout_.joins) + size * lists_.rows;
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
    meter.add(lists_.rows - done);
    return read_count(pairs(), *context_);
  }

  int64_t merge(ProgressMeter& meter) override {
    unsigned long long* const entered = pairs() + 2 * kCounters;
    KITH_CUDA_CHECK(cudaMemsetAsync(entered, 0, kCounterBytes, stream()));
    launch_merge_offers(lists_, {task_.inbox, rules_.inbox_slots, 0, lists_.rows}, entered, stream());
    clear(task_.inbox, 8 * rules_.inbox_slots * lists_.rows);
    advance(lists_.rows, meter);
    return read_count(entered, *context_);
  }

 private:
  cudaStream_t stream() const { return context_->stream(); }
  unsigned long long* pairs() const { return at<unsigned long long>(layout_.counters); }
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
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
  // Nobody, or padding.
  void clear(void* from, int64_t bytes) const {
    KITH_CUDA_CHECK(cudaMemsetAsync(from, 0xFF, static_cast<size_t>(bytes), stream()));
  }
  void advance(int64_t rows, ProgressMeter& meter) const {
    context_->synchronize();
    meter.add(rows);
    meter.poll();
  }

  const DescentRules rules_;
  std::shared_ptr<const DeviceContext> context_;
  JoinOperandsCuda operands_;
  DescentLayout layout_;
  DeviceBuffer memory_;
  DeviceListsRef lists_;
  JoinTask task_;
  uint32_t joins_[kJoinSizes] = {};  // of each size in this round
  std::optional<CustomSetsCuda> sets_;
  std::optional<JoinOrderLayout> order_;  // none: rows are gone over as they lie
};

}  // namespace

std::unique_ptr<DescentSteps> make_descent_steps_cuda(const PairKeyRows& rows, const DescentRules& rules,
                                                      uint64_t* lists, int64_t list_length,
                                                      std::shared_ptr<const DeviceContext> context,
                                                      const Resources& resources) {
  check_descent(rules, list_length, Device::cuda(context->device()));
  return std::make_unique<DescentStepsCuda>(rows, rules, lists, list_length, std::move(context), resources);
}

}  // namespace kith
