// The lists of a graph on the CPU, over rows in host memory, as builders see them there.
#pragma once

#include "core/dispatch.hpp"
#include "core/host_array.hpp"
#include "core/random.hpp"
#include "graph/lists/graph_lists.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class GraphListsCpu final : public GraphLists {
 public:
  // Over rows, control rows (or none) and lists of the caller's, which must outlive it; lists keep their place when
  // they get another length.
  GraphListsCpu(const PairRows& rows, Metric metric, const ControlRows* control, WorkingLists& lists,
                const Resources& resources, const GraphShare* share = nullptr)
      : pairs_(rows), metric_(metric), control_(control), lists_(lists), resources_(resources), share_(share) {}

  Device device() const override { return Device::cpu(); }
  const MatrixView& view() const override { return pairs_.view(); }
  int64_t length() const override { return lists_.length(); }
  void begin(int64_t length) override;
  void resize(int64_t length) override;
  void add_random_rows(uint64_t seed, int64_t boundary) override;
  void add_rows(const NamedRows& rows) override;
  ListSurvey survey(int64_t k, Flags flags) override;
  void write(const NeighborsView& out, const RankPart& rows) override;
  const GraphShare* share() const override { return share_; }
  void give_lists() override;
  std::optional<RecallEstimate> measure() override;
  int64_t control_rows() const override;

  // For the steps of a builder.
  const PairRows& pairs() const { return pairs_; }
  WorkingLists& lists() { return lists_; }
  const ControlRows* control() const { return control_; }
  const Resources& resources() const { return resources_; }
  // An order of the rows in which neighbours come near each other, where a builder has left one to the next.
  HostArray<uint32_t> order;
  // Random rows were added: many pairs that are compared will enter.
  bool has_random_rows() const { return has_random_rows_; }

 private:
  const PairRows& pairs_;
  const Metric metric_;
  const ControlRows* const control_;
  WorkingLists& lists_;
  const Resources resources_;
  const GraphShare* const share_;
  bool has_random_rows_ = false;
};

// Rows, of which those before a boundary are one set and the others another; 0: they are one.
struct StartSets {
  int64_t rows = 0;
  int64_t boundary = 0;
};
// Up to `most` distinct random rows for a list to begin with, ascending as drawn: of the other set, or of all others.
void draw_start_rows(const CounterRng& rng, int64_t row, const StartSets& sets, int64_t most,
                     std::vector<uint32_t>& out);
// Fills every list up with distinct random rows (GNND's Algorithm 1 says p of them, its text k), where `boundary` is
// not 0 with rows of the other set alone. Of those that a list has already none is added.
void add_random_rows(const PairRows& rows, int64_t boundary, uint64_t seed, WorkingLists& lists,
                     const Resources& resources);
// Offers rows by their ids, in host memory. Their distances are computed again: what lists hold are keys of this
// collection.
void add_named_rows(const PairRows& rows, const NamedRows& named, WorkingLists& lists, const Resources& resources);

// How a builder makes its steps: on_cpu(GraphListsCpu&) or, where the lists are a GraphListsCuda, on_gpu().
template <typename OnCpu, typename OnGpu>
auto dispatch_lists(GraphLists& lists, const OnCpu& on_cpu, const OnGpu& on_gpu) {
  return dispatch(
      lists.device(), [&] { return on_cpu(static_cast<GraphListsCpu&>(lists)); }, [&](int) { return on_gpu(); });
}

}  // namespace kith
