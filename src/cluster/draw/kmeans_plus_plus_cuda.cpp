#include "cluster/draw/kmeans_plus_plus_cuda.hpp"

#include "cluster/draw/kmeans_plus_plus.hpp"
#include "cluster/draw/plus_plus_steps_cuda.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/vector_access.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "rows/gather_rows_cuda.hpp"

#include <memory>

namespace kith {
namespace {

constexpr int64_t kRoundsAtOnce = 64;  // enqueued before the host looks whether it is to go on

class PlusPlusCuda {
 public:
  PlusPlusCuda(int device, const PlusPlusInput& input, const Resources& resources)
      : input_(input),
        shape_(shape_of(input)),
        layout_(shape_),
        context_(std::make_shared<const DeviceContext>(device, resources.options().stream)),
        workspace_(layout_.bytes, "k-means++", context_, resources) {
    round_.tree = DrawTree(shape_.rows);
    round_.cols = shape_.cols;
    round_.stride = layout_.stride;
    round_.distances = at(layout_.distances);
    round_.segments = at(layout_.segments);
    round_.sums = at(layout_.sums);
    round_.state = at(layout_.state);
  }

  std::vector<uint32_t> choose(const CounterRng& rng, ProgressMeter& meter, const Resources& resources) {
    bring_rows(meter, resources);
    if (shape_.weighted) {
      context_->copy_values(at(layout_.weights), input_.weights, shape_.rows);
      round_.weights = at(layout_.weights);
    }
    std::vector<double> shares(static_cast<size_t>(shape_.clusters * shape_.trials));
    for (size_t i = 0; i < shares.size(); ++i) shares[i] = plus_plus_share(rng, 1 + i);
    context_->copy_values(at(layout_.shares), shares.data(), std::ssize(shares));
    PlusPlusState state{};
    state.trials[0] = first_plus_plus_row(shape_.rows, input_.weights, rng);
    context_->copy_values(round_.state, &state, 1);
    for (int64_t centre = 0; centre < shape_.clusters; ++centre) {
      round_.first = centre == 0;
      round_.trials = static_cast<int>(centre == 0 ? 1 : shape_.trials);
      round_.next_trials = static_cast<int>(centre + 1 == shape_.clusters ? 0 : shape_.trials);
      round_.shares = at(layout_.shares) + centre * shape_.trials;
      round_.chosen = at(layout_.chosen) + centre;
      launch_try_rows(round_, context_->stream());
      launch_take_best(round_, context_->stream());
      if (centre % kRoundsAtOnce == kRoundsAtOnce - 1) context_->synchronize();
      meter.add(shape_.rows);
      meter.poll();
    }
    std::vector<uint32_t> chosen(static_cast<size_t>(shape_.clusters));
    context_->copy_values(chosen.data(), at(layout_.chosen), shape_.clusters);
    context_->synchronize();
    return chosen;
  }

 private:
  static PlusPlusShape shape_of(const PlusPlusInput& input) {
    const MatrixView& rows = input.rows;
    PlusPlusShape shape;
    shape.rows = input.list.empty() ? rows.rows() : static_cast<int64_t>(input.list.size());
    shape.cols = rows.cols();
    shape.clusters = input.clusters;
    shape.trials = plus_plus_trials(input.clusters);
    shape.weighted = input.weights != nullptr;
    shape.listed = !input.list.empty();
    shape.in_place = !rows.space().host_readable() && rows.dtype() == DType::f32 && !shape.listed;
    return shape;
  }

  void bring_rows(ProgressMeter& meter, const Resources& resources) {
    auto* const own = at(layout_.rows);
    round_.rows = own;
    round_.row_stride = shape_.cols;
    if (shape_.in_place) {
      round_.rows = static_cast<const float*>(input_.rows.data());
      round_.row_stride = input_.rows.row_stride();
    } else if (input_.rows.space().host_readable()) {
      RowUpload upload(input_.pinned, resources);
      upload.copy(input_.rows, vectors<std::byte>(own), context_->stream(), meter);
    } else {
      if (shape_.listed) context_->copy_values(at(layout_.list), input_.list.data(), shape_.rows);
      const uint32_t* const list = shape_.listed ? at(layout_.list) : nullptr;
      launch_gather_floats(device_rows(input_.rows), shape_.cols, list, shape_.rows, own, context_->stream());
    }
  }

  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(workspace_.data());
  }
  const PlusPlusInput& input_;
  const PlusPlusShape shape_;
  const PlusPlusWorkspace layout_;
  std::shared_ptr<const DeviceContext> context_;
  DeviceBuffer workspace_;
  PlusPlusRound round_;
};

}  // namespace

std::vector<uint32_t> choose_plus_plus_cuda(int device, const PlusPlusInput& input, const CounterRng& rng,
                                            ProgressMeter& meter, const Resources& resources) {
  const DeviceGuard guard(device);
  return PlusPlusCuda(device, input, resources).choose(rng, meter, resources);
}

}  // namespace kith
