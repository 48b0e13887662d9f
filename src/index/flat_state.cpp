// How a Flat index is searched: exactly, over its blocks, with the layouts that they have or get.
#include "index/flat_state.hpp"

#include "core/cpu_target.hpp"
#include "exact/exact_search.hpp"
#include "exact/knn_checks.hpp"
#include "exact/knn_output.hpp"
#include "exact/range_loop.hpp"

namespace kith {
namespace {

// The blocks of a state as one search sees them.
class FlatBase final : public BlocksBase {
 public:
  FlatBase(const FlatState& state, const Resources& resources)
      : BlocksBase(std::vector<Block>()), state_(state), resources_(resources) {
    for (const auto& block : state.blocks()) blocks_.push_back({block->view(), nullptr});
  }

  // However the search ends, it may have enqueued work that reads the blocks.
  ~FlatBase() override {
    if (device_.kind != DeviceKind::cuda) return;
    const std::shared_ptr<const StreamMark> mark = mark_stream(device_.index, resources_);
    for (const auto& block : state_.blocks()) block->read_until(mark);
  }
  FlatBase(const FlatBase&) = delete;
  FlatBase& operator=(const FlatBase&) = delete;

  bool can_prepare() const override { return state_.params().prepare; }

  bool prepare(const KnnProblem& problem, Device device, const Resources& resources) override {
    device_ = device;
    // A search of few queries uses what there is on the CPU, but would not make up for packing.
    const bool few = device == Device::cpu() && cpu_engine(problem, cpu_extensions()) == CpuEngine::direct;
    const bool make = state_.params().prepare && !few;
    bool all = true;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const FlatBlock& block = *state_.blocks()[i];
      const PrepareOptions options = flat_prepare_options(state_.params(), problem.query_dtype);
      blocks_[i].ready = make ? block.prepare(device, options, resources) : block.prepared(device, options.queries);
      all &= blocks_[i].ready != nullptr;
    }
    return all;
  }

 private:
  const FlatState& state_;
  const Resources& resources_;
  Device device_;  // that searches; a search on a GPU always asks for the layouts there
};

RowsInfo rows_info(const FlatState& state) {
  const IndexContent& content = state.content();
  RowsInfo info(content.rows, content.cols, content.dtype);
  info.space = content.space;
  return info;
}

}  // namespace

void FlatState::search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                       const Resources& resources) const {
  KnnProblem problem = check_knn(RowsInfo(queries), rows_info(*this), {params.k, params_.metric, params_.check_finite});
  problem.base_checked = checked_;
  problem.result_space = out.space;
  ViewSource query_rows(queries);
  FlatBase base(*this, resources);
  ArrayOutput output(out);
  search_knn(problem, {query_rows, base, params.filter}, output, resources);
}

RangeNeighbors FlatState::range_search(const MatrixView& queries, const RangeSearchParams& params,
                                       const Resources& resources) const {
  KnnProblem problem =
      check_range(RowsInfo(queries), rows_info(*this), {params.radius, params_.metric, params_.check_finite});
  problem.base_checked = checked_;
  ViewSource query_rows(queries);
  FlatBase base(*this, resources);
  return search_range(problem, params.radius, {query_rows, base, params.filter}, resources);
}

IndexBytes FlatState::bytes() const {
  IndexBytes total;
  for (const auto& block : blocks_) {
    const IndexBytes held = block->bytes();
    total.host += held.host;
    total.device += held.device;
  }
  return total;
}

}  // namespace kith
