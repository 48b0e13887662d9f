#include "quantize/trained_codec.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/named_limit.hpp"
#include "quantize/finite_rows.hpp"
#include "quantize/lookup_table.hpp"
#include "quantize/unused_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kith {
namespace {

void check_codes(const MatrixView& codes, int64_t rows, const CodeFormat& format) {
  if (codes.dtype() != DType::u8 || codes.rows() != rows || codes.cols() != format.bytes()) {
    throw InvalidArgument(fmt::format("the codes are {} x {} {}; they must be {} x {} u8", codes.rows(), codes.cols(),
                                      name_of(codes.dtype()), rows, format.bytes()));
  }
}

}  // namespace

void TrainedCodec::publish(std::shared_ptr<const Codec> codec) {
  const std::lock_guard lock(mutex_);
  codec_.swap(codec);
}

std::shared_ptr<const Codec> TrainedCodec::find() const {
  const std::lock_guard lock(mutex_);
  return codec_;
}

std::shared_ptr<const Codec> TrainedCodec::get() const {
  std::shared_ptr<const Codec> codec = find();
  if (codec == nullptr) throw InvalidState("the quantizer is not trained; call train first");
  return codec;
}

void TrainedCodec::train(const MatrixView& rows, const Resources& resources) {
  const DefaultFloatMode mode;
  (void)spec_.format_for(rows.cols());
  ViewSource source(rows);
  if (check_finite_) refuse_not_finite_rows(source, resources);
  publish(Codec::train(spec_, source, seed_, resources));
}

void TrainedCodec::train(const VectorFile& rows, const Resources& resources) {
  const DefaultFloatMode mode;
  (void)spec_.format_for(rows.cols());
  const ReadMemory memory = rows.reserve_memory(resources);
  if (check_finite_) {
    FileSource checked(rows);
    refuse_not_finite_rows(checked, resources);
  }
  FileSource source(rows);
  publish(Codec::train(spec_, source, seed_, resources));
}

void TrainedCodec::set_values(int64_t cols, const VectorView<const float>& values) {
  publish(Codec::from_parts(spec_.format_for(cols), {values.data, values.data + values.size}));
}

void TrainedCodec::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const Codec> codec = get();
  check_codes(codes, rows.rows(), codec->format());
  if (codes.row_stride() != codes.cols() && rows.rows() > 1) {
    throw InvalidArgument(fmt::format("codes lie {} bytes apart; they must follow each other, {} bytes each",
                                      codes.row_stride(), codes.cols()));
  }
  ViewSource source(rows);
  if (check_finite_) refuse_not_finite_rows(source, resources);
  const auto needed = [&] { return codec->encoding_bytes(rows.rows(), rows.dtype(), resources.threads()); };
  naming_host_limit(needed, resources, [&] { codec->encode(rows, codes, resources); });
}

void TrainedCodec::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  const std::shared_ptr<const Codec> codec = get();
  check_codes(codes, codes.rows(), codec->format());
  refuse_unused_bits(codes, codec->format(), resources);
  const auto needed = [&] { return codec->decoding_bytes(resources.threads()); };
  naming_host_limit(needed, resources, [&] { codec->decode(codes, out, resources); });
}

void TrainedCodec::lookup_table(const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                                const Resources& resources) const {
  const DefaultFloatMode mode;
  const std::shared_ptr<const Codec> codec = get();
  ViewSource source(queries);
  if (check_finite_) refuse_not_finite_rows(source, resources);
  fill_lookup_table(*codec, queries, metric, out, resources);
}

}  // namespace kith
