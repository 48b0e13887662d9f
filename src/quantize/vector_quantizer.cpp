#include <kith/vector_quantizer.hpp>

#include "quantize/trained_codec.hpp"
#include "rows/narrowed_rows.hpp"

#include <utility>

namespace kith {

VectorQuantizer::VectorQuantizer(std::unique_ptr<TrainedCodec> codec) : codec_(std::move(codec)) {}
VectorQuantizer::~VectorQuantizer() = default;
VectorQuantizer::VectorQuantizer(VectorQuantizer&&) noexcept = default;
VectorQuantizer& VectorQuantizer::operator=(VectorQuantizer&&) noexcept = default;

void VectorQuantizer::train(const MatrixView& rows, const Resources& resources) {
  codec_->train(NarrowedRows("x", rows, nullptr, OfRounding::warns, resources).view(), resources);
}
void VectorQuantizer::train(const VectorFile& rows, const Resources& resources) { codec_->train(rows, resources); }

void VectorQuantizer::set_values(int64_t cols, const VectorView<const float>& values) {
  codec_->set_values(cols, values);
}

bool VectorQuantizer::trained() const { return codec_->find() != nullptr; }
std::vector<float> VectorQuantizer::values() const { return codec_->get()->codec->values(); }

int64_t VectorQuantizer::cols() const {
  const auto trained = codec_->find();
  return trained == nullptr ? 0 : trained->codec->format().cols;
}
int64_t VectorQuantizer::code_bytes() const {
  const auto trained = codec_->find();
  return trained == nullptr ? 0 : trained->codec->format().bytes();
}

void VectorQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const {
  codec_->encode(NarrowedRows("x", rows, nullptr, OfRounding::warns, resources).view(), codes, resources);
}
void VectorQuantizer::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  codec_->decode(codes, out, resources);
}
int64_t VectorQuantizer::encoding_bytes(int64_t rows, DType dtype, int threads) const {
  return codec_->get()->codec->encoding_bytes(rows, dtype, threads);
}
int64_t VectorQuantizer::decoding_bytes(int) const { return 0; }
void VectorQuantizer::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                   const Resources& resources) const {
  const NarrowedRows narrowed("queries", queries, nullptr, OfRounding::silent, resources);
  codec_->lookup_table(narrowed.view(), metric, out, resources);
}

}  // namespace kith
