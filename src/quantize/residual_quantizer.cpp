#include <kith/residual_quantizer.hpp>

#include <kith/error.hpp>

#include "quantize/additive/packed_codes.hpp"
#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

#include <memory>

namespace kith {
namespace {

CodeRecipe recipe_of_params(const ResidualQuantizerParams& params) {
  return {kResidualCode, DType::f32, params.bits, params.codebooks, static_cast<int>(params.beam)};
}

std::unique_ptr<TrainedCodec> codec_of(const ResidualQuantizerParams& params) {
  params.validate();
  return std::make_unique<TrainedCodec>(recipe_of_params(params), params.seed, params.check_finite);
}

}  // namespace

void ResidualQuantizerParams::validate() const {
  if (beam < 1 || beam > kMostBeam) {
    throw InvalidArgument(fmt::format("beam = {}; a beam search keeps 1 to {} sums", beam, kMostBeam));
  }
  recipe_of_params(*this).validate();
}

ResidualQuantizer::ResidualQuantizer(ResidualQuantizerParams params)
    : VectorQuantizer(codec_of(params)), params_(params) {}

void ResidualQuantizer::set_values(const VectorView<const float>& codebooks) {
  VectorQuantizer::set_values(columns_of_codebooks(params_.codebooks, params_.bits, codebooks), codebooks);
}

}  // namespace kith
