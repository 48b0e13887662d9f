#include "quantize/codec.hpp"

#include <kith/error.hpp>

#include "core/float_mode.hpp"
#include "core/named_limit.hpp"
#include "cuda/resolve_device.hpp"
#include "quantize/additive/local_search_training.hpp"
#include "quantize/additive/residual_training.hpp"
#include "quantize/codec_cpu.hpp"
#include "quantize/codec_cuda.hpp"
#include "quantize/product_training.hpp"
#include "quantize/scalar_training.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// Where rows are encoded or codes decoded: two matrices, of which one is small.
Device resolve_codec_device(const CodeFormat& format, const MatrixView& rows, MemorySpace other,
                            const Resources& resources) {
  DeviceRequest request;
  request.job = "a codec";
  request.spaces = {rows.space(), other};
  request.work.bytes = static_cast<double>(rows.rows() * rows.cols() * size_of(rows.dtype()));
  request.work.flops = 2.0 * static_cast<double>(rows.rows() * format.cols) * compared_codewords(format);
  request.work.gpu_flops = 2e13;
  request.fits = [](Device) { return true; };
  request.description = [&] { return fmt::format("codes of {} x {} vectors", rows.rows(), format.cols); };
  return resolve_device(request, resources);
}

ResidualQuantizerParams residual_params(const CodeFormat& format, uint64_t seed) {
  return {format.parts, format.bits, format.effort, seed, true};
}

LocalSearchParams local_search_params(const CodeFormat& format, uint64_t seed) {
  LocalSearchParams params;
  params.codebooks = format.parts;
  params.bits = format.bits;
  params.seed = seed;
  return params;
}

int64_t additive_training_bytes(const CodeFormat& format, const RowsInfo& rows, int threads) {
  return format.search == AdditiveSearch::beam
             ? residual_training_bytes(residual_params(format, 0), rows.rows, rows.cols, threads)
             : local_search_training_bytes(local_search_params(format, 0), rows.rows, rows.cols, threads);
}

std::vector<float> train_additive(const CodeFormat& format, RowSource& rows, uint64_t seed,
                                  const Resources& resources) {
  if (format.search == AdditiveSearch::beam) return train_residual(residual_params(format, seed), rows, resources);
  std::vector<float> values;
  const auto take = [&](TrainingRound round) { values = std::move(round.codebooks); };
  train_local_search(local_search_params(format, seed), rows, take, resources);
  return values;
}

}  // namespace

std::shared_ptr<const Codec> Codec::from_parts(const CodeFormat& format, std::vector<float> values,
                                               const Resources& resources) {
  return std::make_shared<const Codec>(format, std::move(values), resources);
}

std::shared_ptr<const Codec> Codec::train(const CodeSpec& spec, RowSource& rows, uint64_t seed,
                                          const Resources& resources) {
  const DefaultFloatMode mode;
  const CodeFormat format = spec.format_for(rows.info().cols);
  if (format.has_levels()) throw InvalidArgument("levels of norms are trained with the lists of an index");
  const auto needed = [&] { return training_bytes(spec, rows.info(), resources.threads()); };
  const auto values = [&]() -> std::vector<float> {
    switch (format.kind) {
      case CodeKind::stored: return {};
      case CodeKind::scalar: return train_scalar(rows, resources);
      case CodeKind::additive: return train_additive(format, rows, seed, resources);
      default: return train_product(format, rows, seed, resources);
    }
  };
  return naming_host_limit(needed, resources, [&] { return from_parts(format, values(), resources); });
}

int64_t Codec::training_bytes(const CodeSpec& spec, const RowsInfo& rows, int threads) {
  const CodeFormat format = spec.format_for(rows.cols);
  const int64_t made = CodecTables::bytes_for(format);
  switch (format.kind) {
    case CodeKind::stored: return made;
    case CodeKind::additive: return std::max(made, additive_training_bytes(format, rows, threads));
    case CodeKind::scalar: return std::max(made, scalar_training_bytes(rows, threads));
    default: return std::max(made, product_training_bytes(format, rows, threads));
  }
}

std::shared_ptr<const Codec> Codec::train(const CodeSpec& spec, const MatrixView& rows, uint64_t seed,
                                          const Resources& resources) {
  ViewSource source(rows);
  return train(spec, source, seed, resources);
}

int64_t Codec::encoding_bytes(int64_t rows, DType dtype, int threads) const {
  return encode_cpu_bytes(format(), rows, dtype, threads);
}

int64_t Codec::decoding_bytes(int threads) const { return decode_cpu_bytes(format(), threads); }

void Codec::encode(const MatrixView& rows, uint8_t* codes, const Resources& resources) const {
  encode(rows, MutableMatrixView(codes, rows.rows(), format().bytes()), resources);
}

void Codec::decode(const uint8_t* codes, int64_t count, const MutableMatrixView& out,
                   const Resources& resources) const {
  decode(MatrixView(codes, count, format().bytes()), out, resources);
}

void Codec::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const {
  const DefaultFloatMode mode;
  if (rows.cols() != format().cols) {
    throw InvalidArgument(fmt::format("the rows have {} columns; the code is of {}", rows.cols(), format().cols));
  }
  if (rows.rows() == 0) return;
  dispatch(
      resolve_codec_device(format(), rows, codes.space(), resources),
      [&] { encode_cpu(tables_, rows, codes, resources); },
      [&](int device) { encode_cuda(tables_, rows, codes, device, resources); });
}

void Codec::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  const DefaultFloatMode mode;
  if (out.dtype() != DType::f32 || out.rows() != codes.rows() || out.cols() != format().cols) {
    throw InvalidArgument(fmt::format("the output is {} x {} {}; it must be {} x {} f32", out.rows(), out.cols(),
                                      name_of(out.dtype()), codes.rows(), format().cols));
  }
  if (codes.rows() == 0) return;
  // To decode is to copy: no GPU is woken for it.
  const bool on_host = out.space().host_readable() && codes.space().host_readable();
  const bool chosen = resources.device().kind != DeviceKind::automatic;
  const Device device =
      on_host && !chosen ? Device::cpu() : resolve_codec_device(format(), out, codes.space(), resources);
  dispatch(
      device, [&] { decode_cpu(tables_, codes, out, resources); },
      [&](int index) { decode_cuda(tables_, codes, out, index, resources); });
}

bool same_code(const Codec& a, const Codec& b) {
  const CodeFormat& x = a.format();
  const CodeFormat& y = b.format();
  if (x.kind != y.kind || x.cols != y.cols) return false;
  if (x.kind == CodeKind::stored) return x.dtype == y.dtype;
  const bool same_parts = x.kind != CodeKind::product || x.parts == y.parts;
  return x.bits == y.bits && x.norm == y.norm && same_parts && a.values() == b.values();
}

}  // namespace kith
