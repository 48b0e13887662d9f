#include "graph/build/cells/cell_steps_host_cuda.hpp"

#include <kith/matrix_buffer.hpp>

#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"

#include <utility>

namespace kith {
namespace {

class CellStepsOnHost final : public CellSteps {
 public:
  CellStepsOnHost(const GraphListsCuda& lists, const CellParams& params)
      : there_(lists.lists()),
        context_(lists.context()),
        resources_(lists.resources().with_device(Device::cpu())),
        matrix_(lists.view().dtype(), there_.rows, lists.view().cols(), "the rows", resources_),
        lists_(there_.rows, there_.length, resources_) {
    const MatrixView& x = lists.view();
    const auto row_bytes = static_cast<size_t>(x.cols() * size_of(x.dtype()));
    const auto pitch = static_cast<size_t>(x.row_stride() * size_of(x.dtype()));
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(matrix_.mutable_view().row(0), row_bytes, x.data(), pitch, row_bytes,
                                      static_cast<size_t>(x.rows()), cudaMemcpyDeviceToHost, context_->stream()));
    context_->synchronize();
    pairs_ = std::make_unique<PairRows>(matrix_.view(), key_kind(params.metric), resources_);
    steps_ = make_cell_steps_cpu(*pairs_, params, lists_, resources_);
  }

  int64_t probes() const override { return steps_->probes(); }
  void expect(int64_t probes) override { steps_->expect(probes); }
  int64_t wave(int64_t first, int64_t end, ProgressMeter& meter) override {
    const int64_t entries = there_.rows * there_.length;
    context_->copy_values(lists_.list(0), there_.entries, entries);
    context_->synchronize();
    for (int64_t row = 0; row < there_.rows; ++row) lists_.refresh_threshold(row);
    const int64_t compared = steps_->wave(first, end, meter);
    context_->copy_values(there_.entries, lists_.list(0), entries);
    context_->synchronize();
    return compared;
  }

 private:
  const DeviceWorkingLists there_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  MatrixBuffer matrix_;
  WorkingLists lists_;
  std::unique_ptr<PairRows> pairs_;
  std::unique_ptr<CellSteps> steps_;
};

}  // namespace

std::unique_ptr<CellSteps> make_cell_steps_on_host(const GraphListsCuda& lists, const CellParams& params) {
  return std::make_unique<CellStepsOnHost>(lists, params);
}

}  // namespace kith
