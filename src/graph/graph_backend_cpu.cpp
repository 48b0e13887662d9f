#include "graph/graph_backend_cpu.hpp"

#include "graph/cells/cell_partition.hpp"
#include "graph/nn_descent/start_lists.hpp"
#include "graph/write_lists.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// Waves, with the cells that they go over.
class CutCells final : public CellSteps {
 public:
  CutCells(const PairRows& rows, const CellParams& params, WorkingLists& lists, const Resources& resources)
      : cells_(rows.view(), params, resources), steps_(make_cell_steps_cpu(rows, cells_, lists, resources)) {}

  int64_t probes() const override { return cells_.probes(); }
  void expect(int64_t probes) override { steps_->expect(probes); }
  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override { return steps_->wave(first, end, meter); }
  const CellPartition& cells() const { return cells_; }

 private:
  CellPartition cells_;
  std::unique_ptr<CellSteps> steps_;
};

class GraphBackendCpu final : public GraphBackend {
 public:
  GraphBackendCpu(const PairRows& rows, Metric metric, const ControlRows* control, WorkingLists& lists,
                  const Resources& resources)
      : rows_(rows), metric_(metric), control_(control), lists_(lists), resources_(resources) {}

  const MatrixView& view() const override { return rows_.view(); }
  int64_t list_length() const override { return lists_.length(); }

  void begin_lists(int64_t length) override {
    lists_ = WorkingLists(0, length, resources_);  // the old ones go before the new ones come
    lists_ = WorkingLists(rows(), length, resources_);
  }
  void resize_lists(int64_t length) override {
    WorkingLists resized(rows(), length, resources_);
    for (int64_t row = 0; row < rows(); ++row) {
      std::copy_n(lists_.list(row), std::min(length, lists_.length()), resized.list(row));
      resized.refresh_threshold(row);
    }
    lists_ = std::move(resized);
  }
  void add_random_rows(uint64_t seed, int64_t boundary) override {
    kith::add_random_rows(rows_, boundary, seed, lists_, resources_);
    has_random_lists_ = true;
  }
  void add_rows(const NamedRows& rows) override { add_named_rows(rows_, rows, lists_, resources_); }
  ListSurvey survey(int64_t k, Flags flags) override { return survey_lists(lists_, k, metric_, flags, resources_); }
  void write(const NeighborsView& out) override { write_lists(lists_, metric_, out, resources_); }

  std::optional<RecallEstimate> measure() override {
    return control_ == nullptr ? std::nullopt : std::optional(control_->measure(lists_));
  }
  int64_t control_rows() const override {
    return control_ == nullptr ? 0 : static_cast<int64_t>(control_->rows().size());
  }

  std::unique_ptr<CellSteps> cut_cells(const CellParams& params, bool keeps_order) override {
    if (keeps_order) order_ = HostArray<uint32_t>(rows(), "the order of rows", resources_);
    auto steps = std::make_unique<CutCells>(rows_, params, lists_, resources_);
    if (keeps_order) std::copy_n(steps->cells().members(0), rows(), order_.data());
    return steps;
  }
  std::unique_ptr<DescentSteps> descent_steps(const DescentRules& rules) override {
    DescentRules ordered = rules;
    if (order_.size() > 0) ordered.order = order_.data();
    ordered.random_lists = has_random_lists_;
    return make_descent_steps_cpu(rows_, ordered, lists_, resources_);
  }

 private:
  const PairRows& rows_;
  const Metric metric_;
  const ControlRows* const control_;
  WorkingLists& lists_;
  const Resources resources_;
  HostArray<uint32_t> order_;  // cell by cell, once cells were cut
  bool has_random_lists_ = false;
};

}  // namespace

std::unique_ptr<GraphBackend> make_graph_backend_cpu(const PairRows& rows, Metric metric, const ControlRows* control,
                                                     WorkingLists& lists, const Resources& resources) {
  return std::make_unique<GraphBackendCpu>(rows, metric, control, lists, resources);
}

}  // namespace kith
