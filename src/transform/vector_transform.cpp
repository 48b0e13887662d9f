#include <kith/vector_transform.hpp>

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/named_limit.hpp"
#include "rows/finite_check.hpp"
#include "transform/transform_chain.hpp"
#include "transform/transform_cuda.hpp"
#include "transform/transform_spec.hpp"
#include "transform/transform_training.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kFileRows = 4096;  // read at a time

void check_finite(const MatrixView& rows, const Resources& resources) {
  rows.space().host_readable() ? refuse_not_finite("x", rows, {0}, resources)
                               : refuse_not_finite_cuda("x", rows, resources);
}

}  // namespace

// What was trained is immutable and replaced as a whole.
struct VectorTransform::State {
  const VectorTransformParams params;
  std::mutex mutex;
  std::shared_ptr<const TransformChain> chain;

  explicit State(VectorTransformParams given) : params(std::move(given)) {}
  std::shared_ptr<const TransformChain> current() {
    const std::lock_guard lock(mutex);
    return chain;
  }
  std::shared_ptr<const TransformChain> current_trained() {
    std::shared_ptr<const TransformChain> now = current();
    if (now == nullptr) throw InvalidState("this transform is not trained yet; train it first");
    return now;
  }
  void publish(TransformChain next) {
    auto made = std::make_shared<const TransformChain>(std::move(next));
    const std::lock_guard lock(mutex);
    chain.swap(made);
  }
};

void VectorTransformParams::validate() const { (void)parse_transforms(steps); }

VectorTransform::VectorTransform(VectorTransformParams params) {
  params.validate();
  state_ = std::make_unique<State>(std::move(params));
}
VectorTransform::~VectorTransform() = default;
VectorTransform::VectorTransform(VectorTransform&&) noexcept = default;
VectorTransform& VectorTransform::operator=(VectorTransform&&) noexcept = default;

void VectorTransform::train(const MatrixView& rows, const Resources& resources) {
  ViewSource source(rows);
  state_->publish(train_transforms(parse_transforms(params().steps), source, params().seed, resources));
}

void VectorTransform::train(const VectorFile& rows, const Resources& resources) {
  const ReadMemory memory = rows.reserve_memory(resources);
  FileSource source(rows);
  source.open(std::min(kFileRows, std::max<int64_t>(rows.rows(), 1)), resources);
  state_->publish(train_transforms(parse_transforms(params().steps), source, params().seed, resources));
}

void VectorTransform::set_steps(std::vector<TransformStep> steps, const Resources& resources) {
  if (steps.empty()) throw InvalidArgument("a transform needs at least one step");
  state_->publish(TransformChain::from_parts(std::move(steps), resources));
}

std::vector<TransformStep> VectorTransform::steps() const { return state_->current_trained()->parts(); }
const VectorTransformParams& VectorTransform::params() const { return state_->params; }
bool VectorTransform::trained() const { return state_->current() != nullptr; }

int64_t VectorTransform::in() const {
  const std::shared_ptr<const TransformChain> chain = state_->current();
  return chain == nullptr ? 0 : chain->in();
}

int64_t VectorTransform::out() const {
  const std::shared_ptr<const TransformChain> chain = state_->current();
  return chain == nullptr ? 0 : chain->out();
}

void VectorTransform::apply(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources) const {
  const std::shared_ptr<const TransformChain> chain = state_->current_trained();
  if (params().check_finite) check_finite(rows, resources.with_progress({}));
  const auto needed = [&] { return chain->run_bytes(rows.rows(), resources.threads()); };
  naming_host_limit(needed, resources, [&] { chain->apply(rows, to, resources); });
}

void VectorTransform::reverse(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources) const {
  const std::shared_ptr<const TransformChain> chain = state_->current_trained();
  if (params().check_finite) check_finite(rows, resources.with_progress({}));
  const auto needed = [&] { return chain->run_bytes(rows.rows(), resources.threads()); };
  naming_host_limit(needed, resources, [&] { chain->reverse(rows, to, resources); });
}

int64_t VectorTransform::transforming_bytes(int64_t rows, int threads) const {
  return state_->current_trained()->run_bytes(rows, threads);
}

}  // namespace kith
