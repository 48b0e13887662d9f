#include <kith/residual_quantizer.hpp>

#include <kith/error.hpp>

#include "quantize/additive/packed_codes.hpp"
#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

CodeSpec spec_of(const ResidualQuantizerParams& params) {
  CodeSpec spec;
  spec.kind = CodeKind::additive;
  spec.bits = params.bits;
  spec.parts = params.codebooks;
  spec.search = AdditiveSearch::beam;
  spec.effort = static_cast<int>(params.beam);
  return spec;
}

}  // namespace

struct ResidualQuantizer::State {
  explicit State(const ResidualQuantizerParams& given)
      : params(given), codec(spec_of(given), given.seed, given.check_finite) {}

  const ResidualQuantizerParams params;
  TrainedCodec codec;
};

void ResidualQuantizerParams::validate() const {
  if (beam < 1 || beam > kMostBeam) {
    throw InvalidArgument(fmt::format("beam = {}; a beam search keeps 1 to {} sums", beam, kMostBeam));
  }
  spec_of(*this).validate();
}

ResidualQuantizer::ResidualQuantizer(ResidualQuantizerParams params) {
  params.validate();
  state_ = std::make_unique<State>(params);
}
ResidualQuantizer::~ResidualQuantizer() = default;
ResidualQuantizer::ResidualQuantizer(ResidualQuantizer&&) noexcept = default;
ResidualQuantizer& ResidualQuantizer::operator=(ResidualQuantizer&&) noexcept = default;

void ResidualQuantizer::train(const MatrixView& rows, const Resources& resources) {
  state_->codec.train(rows, resources);
}
void ResidualQuantizer::train(const VectorFile& rows, const Resources& resources) {
  state_->codec.train(rows, resources);
}

void ResidualQuantizer::set_values(const VectorView<const float>& codebooks) {
  state_->codec.set_values(columns_of_codebooks(params().codebooks, params().bits, codebooks), codebooks);
}

std::vector<float> ResidualQuantizer::values() const { return state_->codec.get()->values(); }
const ResidualQuantizerParams& ResidualQuantizer::params() const { return state_->params; }
bool ResidualQuantizer::trained() const { return state_->codec.find() != nullptr; }
int64_t ResidualQuantizer::cols() const {
  const std::shared_ptr<const Codec> codec = state_->codec.find();
  return codec == nullptr ? 0 : codec->format().cols;
}
int64_t ResidualQuantizer::code_bytes() const {
  return trained() ? additive_code_bytes(params().codebooks, params().bits) : 0;
}

void ResidualQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes,
                               const Resources& resources) const {
  state_->codec.encode(rows, codes, resources);
}
void ResidualQuantizer::decode(const MatrixView& codes, const MutableMatrixView& out,
                               const Resources& resources) const {
  state_->codec.decode(codes, out, resources);
}

}  // namespace kith
