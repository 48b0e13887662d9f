#include <kith/product_quantizer.hpp>

#include <kith/error.hpp>

#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

CodeRecipe recipe_of_params(const ProductQuantizerParams& params) {
  return {kProductCode, DType::f32, params.bits, params.parts};
}

std::unique_ptr<TrainedCodec> codec_of(const ProductQuantizerParams& params) {
  params.validate();
  return std::make_unique<TrainedCodec>(recipe_of_params(params), params.seed, params.check_finite);
}

}  // namespace

void ProductQuantizerParams::validate() const { recipe_of_params(*this).validate(); }

ProductQuantizer::ProductQuantizer(ProductQuantizerParams params)
    : VectorQuantizer(codec_of(params)), params_(params) {}

void ProductQuantizer::set_values(const VectorView<const float>& codewords) {
  const int64_t each = int64_t{1} << params().bits;  // values for each column
  if (codewords.size == 0 || codewords.size % (each * params().parts) != 0) {
    throw InvalidArgument(fmt::format("{} values of codewords; {} parts of {} codewords have a multiple of {}",
                                      codewords.size, params().parts, each, each * params().parts));
  }
  VectorQuantizer::set_values(codewords.size / each, codewords);
}

}  // namespace kith
