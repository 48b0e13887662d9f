#include <kith/product_quantizer.hpp>

#include <kith/error.hpp>

#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

CodeSpec spec_of(const ProductQuantizerParams& params) {
  return {CodeKind::product, DType::f32, params.bits, params.parts};
}

}  // namespace

struct ProductQuantizer::State {
  explicit State(const ProductQuantizerParams& given)
      : params(given), codec(spec_of(given), given.seed, given.check_finite) {}

  const ProductQuantizerParams params;
  TrainedCodec codec;
};

void ProductQuantizerParams::validate() const { spec_of(*this).validate(); }

ProductQuantizer::ProductQuantizer(ProductQuantizerParams params) {
  params.validate();
  state_ = std::make_unique<State>(params);
}
ProductQuantizer::~ProductQuantizer() = default;
ProductQuantizer::ProductQuantizer(ProductQuantizer&&) noexcept = default;
ProductQuantizer& ProductQuantizer::operator=(ProductQuantizer&&) noexcept = default;

void ProductQuantizer::train(const MatrixView& rows, const Resources& resources) {
  state_->codec.train(rows, resources);
}
void ProductQuantizer::train(const VectorFile& rows, const Resources& resources) {
  state_->codec.train(rows, resources);
}

void ProductQuantizer::set_values(const VectorView<const float>& codewords) {
  const int64_t each = int64_t{1} << params().bits;  // values for each column
  if (codewords.size == 0 || codewords.size % (each * params().parts) != 0) {
    throw InvalidArgument(fmt::format("{} values of codewords; {} parts of {} codewords have a multiple of {}",
                                      codewords.size, params().parts, each, each * params().parts));
  }
  state_->codec.set_values(codewords.size / each, codewords);
}

std::vector<float> ProductQuantizer::values() const { return state_->codec.get()->values(); }

const ProductQuantizerParams& ProductQuantizer::params() const { return state_->params; }
bool ProductQuantizer::trained() const { return state_->codec.find() != nullptr; }
int64_t ProductQuantizer::cols() const {
  const std::shared_ptr<const Codec> codec = state_->codec.find();
  return codec == nullptr ? 0 : codec->format().cols;
}
int64_t ProductQuantizer::code_bytes() const {
  const std::shared_ptr<const Codec> codec = state_->codec.find();
  return codec == nullptr ? 0 : codec->format().bytes();
}

void ProductQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes,
                              const Resources& resources) const {
  state_->codec.encode(rows, codes, resources);
}
void ProductQuantizer::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  state_->codec.decode(codes, out, resources);
}
void ProductQuantizer::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                    const Resources& resources) const {
  state_->codec.lookup_table(queries, metric, out, resources);
}

}  // namespace kith
