#include <kith/scalar_quantizer.hpp>

#include <kith/error.hpp>

#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

std::unique_ptr<TrainedCodec> codec_of(const ScalarQuantizerParams& params) {
  params.validate();
  const bool halves = params.bits == 16;
  const CodeRecipe recipe =
      halves ? CodeRecipe{kStoredCode, DType::f16} : CodeRecipe{kScalarCode, DType::f32, params.bits};
  return std::make_unique<TrainedCodec>(recipe, /*seed=*/0, params.check_finite);
}

}  // namespace

void ScalarQuantizerParams::validate() const {
  if (bits == 4 || bits == 6 || bits == 8 || bits == 16) return;
  throw InvalidArgument(fmt::format("bits = {}; it must be 4, 6, 8, or 16 for f16", bits));
}

ScalarQuantizer::ScalarQuantizer(ScalarQuantizerParams params) : VectorQuantizer(codec_of(params)), params_(params) {}

}  // namespace kith
