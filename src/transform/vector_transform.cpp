#include <kith/vector_transform.hpp>

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "cluster/data/kmeans_checks.hpp"
#include "core/published.hpp"
#include "core/within_limits.hpp"
#include "rows/finite_check.hpp"
#include "rows/narrowed_rows.hpp"
#include "transform/transform_chain.hpp"
#include "transform/transform_cuda.hpp"
#include "transform/transform_training.hpp"

#include <utility>

namespace kith {
namespace {

constexpr int64_t kFileRows = 4096;  // read at a time

void check_finite(const MatrixView& rows, const Resources& resources) {
  if (!rows.space().host_readable()) return refuse_not_finite_cuda("x", rows, resources);
  if (!counts_only(resources)) refuse_not_finite("x", rows, {0}, resources);  // narrowed rows are not there then
}

}  // namespace

void refuse_not_finite_cuda(std::string_view what, const MatrixView& rows, const Resources& resources) {
  const int64_t bad = first_not_finite(rows, resources);
  if (bad >= 0) throw_not_finite(what, bad);
}

struct VectorTransform::State {
  const VectorTransformParams params;
  Published<TransformChain> chain{"this transform is not trained yet; train it first"};

  explicit State(VectorTransformParams given) : params(std::move(given)) {}

  // Applies or inverts the transform on checked rows.
  using Way = void (TransformChain::*)(const MatrixView&, const MutableMatrixView&, const Resources&) const;
  void run(Way way, const MatrixView& given, const MutableMatrixView& to, const Resources& resources) const {
    with_narrowed("the transform", "x", given, nullptr, OfRounding::warns, resources,
                  [&](const MatrixView& rows, const Resources& used) {
                    const std::shared_ptr<const TransformChain> now = chain.get();
                    within_limits("the transform", used, [&](const Resources& limited) {
                      if (params.check_finite) check_finite(rows, limited.with_progress({}));
                      (now.get()->*way)(rows, to, limited);
                    });
                  });
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
  const auto train_on = [&](const MatrixView& read, const Resources& used) {
    ViewSource source(read);
    return train_transforms(parse_transforms(params().steps), source, params().seed, used);
  };
  state_->chain.publish(
      with_narrowed("training the transform", "x", rows, nullptr, OfRounding::warns, resources, train_on));
}

void VectorTransform::train(const VectorFile& rows, const Resources& resources) {
  state_->chain.publish(within_limits("training the transform", resources, [&](const Resources& used) {
    const ReadMemory memory = rows.reserve_memory(used);
    FileSource source(rows);
    source.open(std::min(kFileRows, std::max<int64_t>(rows.rows(), 1)), used);
    return naming_files({{"training", rows}}, [&] {
      return train_transforms(parse_transforms(params().steps), source, params().seed, used);
    });
  }));
}

void VectorTransform::set_steps(std::vector<TransformStep> steps, const Resources& resources) {
  if (steps.empty()) throw InvalidArgument("a transform needs at least one step");
  state_->chain.publish(TransformChain::from_parts(std::move(steps), resources));
}

std::vector<TransformStep> VectorTransform::steps() const { return state_->chain.get()->parts(); }
const VectorTransformParams& VectorTransform::params() const { return state_->params; }
bool VectorTransform::trained() const { return state_->chain.find() != nullptr; }

int64_t VectorTransform::dimension_in() const {
  const std::shared_ptr<const TransformChain> chain = state_->chain.find();
  return chain == nullptr ? 0 : chain->in();
}

int64_t VectorTransform::dimension_out() const {
  const std::shared_ptr<const TransformChain> chain = state_->chain.find();
  return chain == nullptr ? 0 : chain->out();
}

void VectorTransform::apply(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources) const {
  state_->run(&TransformChain::apply, rows, to, resources);
}

void VectorTransform::reverse(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources) const {
  state_->run(&TransformChain::reverse, rows, to, resources);
}

}  // namespace kith
