#include <kith/scalar_quantizer.hpp>

#include <kith/error.hpp>

#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

CodeSpec spec_of(const ScalarQuantizerParams& params) {
  if (params.bits == 16) return {CodeKind::stored, DType::f16, 8, 0};
  return {CodeKind::scalar, DType::f32, params.bits, 0};
}

}  // namespace

struct ScalarQuantizer::State {
  explicit State(const ScalarQuantizerParams& given)
      : params(given), codec(spec_of(given), /*seed=*/0, given.check_finite) {}

  const ScalarQuantizerParams params;
  TrainedCodec codec;
};

void ScalarQuantizerParams::validate() const {
  if (bits == 4 || bits == 6 || bits == 8 || bits == 16) return;
  throw InvalidArgument(fmt::format("bits = {}; it must be 4, 6, 8, or 16 for f16", bits));
}

ScalarQuantizer::ScalarQuantizer(ScalarQuantizerParams params) {
  params.validate();
  state_ = std::make_unique<State>(params);
}
ScalarQuantizer::~ScalarQuantizer() = default;
ScalarQuantizer::ScalarQuantizer(ScalarQuantizer&&) noexcept = default;
ScalarQuantizer& ScalarQuantizer::operator=(ScalarQuantizer&&) noexcept = default;

void ScalarQuantizer::train(const MatrixView& rows, const Resources& resources) {
  state_->codec.train(rows, resources);
}
void ScalarQuantizer::train(const VectorFile& rows, const Resources& resources) {
  state_->codec.train(rows, resources);
}

void ScalarQuantizer::set_values(int64_t cols, const VectorView<const float>& ranges) {
  state_->codec.set_values(cols, ranges);
}

std::vector<float> ScalarQuantizer::values() const { return state_->codec.get()->values(); }

const ScalarQuantizerParams& ScalarQuantizer::params() const { return state_->params; }
bool ScalarQuantizer::trained() const { return state_->codec.find() != nullptr; }
int64_t ScalarQuantizer::cols() const {
  const std::shared_ptr<const Codec> codec = state_->codec.find();
  return codec == nullptr ? 0 : codec->format().cols;
}
int64_t ScalarQuantizer::code_bytes() const {
  const std::shared_ptr<const Codec> codec = state_->codec.find();
  return codec == nullptr ? 0 : codec->format().bytes();
}

void ScalarQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const {
  state_->codec.encode(rows, codes, resources);
}
void ScalarQuantizer::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  state_->codec.decode(codes, out, resources);
}
void ScalarQuantizer::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                   const Resources& resources) const {
  state_->codec.lookup_table(queries, metric, out, resources);
}

}  // namespace kith
