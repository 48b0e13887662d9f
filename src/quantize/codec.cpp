#include "quantize/codec.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "exact/knn_checks.hpp"
#include "io/dtype_conversion.hpp"
#include "quantize/product_nearest_cpu.hpp"
#include "quantize/product_training.hpp"
#include "quantize/scalar_code.hpp"
#include "quantize/scalar_codes_cpu.hpp"
#include "quantize/scalar_training.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace kith {
namespace {

constexpr int64_t kTaskRows = 512;

void check_bits(const CodeSpec& spec) {
  const bool scalar = spec.kind == CodeKind::scalar;
  const bool known = scalar ? spec.bits == 4 || spec.bits == 6 || spec.bits == 8 : spec.bits >= 4 && spec.bits <= 8;
  if (known) return;
  throw InvalidArgument(scalar ? fmt::format("bits = {}; a scalar code has 4, 6 or 8 bits a value", spec.bits)
                               : fmt::format("bits = {}; a product code has 4 to 8 bits a sub-vector", spec.bits));
}

// The divisors of cols on either side of what was asked for.
std::string near_divisors(int64_t cols, int64_t parts) {
  int64_t below = std::min(parts, cols);
  while (below > 1 && cols % below != 0) --below;
  int64_t above = std::clamp<int64_t>(parts, 1, cols);
  while (cols % above != 0) ++above;
  return below == above || below < 1 ? std::to_string(above) : fmt::format("{} or {}", below, above);
}

void check_parts(int64_t parts, int64_t cols) {
  if (parts >= 1 && parts <= cols && cols % parts == 0) return;
  throw InvalidArgument(
      fmt::format("{} sub-vectors do not divide {} columns; take {}, or a transform to other columns (OPQ, PCA)", parts,
                  cols, near_divisors(cols, parts)));
}

int64_t value_count(const CodeFormat& format) {
  switch (format.kind) {
    case CodeKind::stored: return 0;
    case CodeKind::scalar: return 2 * format.cols;
    default: return format.codewords() * format.cols;
  }
}

}  // namespace

void CodeSpec::validate() const {
  if (kind == CodeKind::stored) return;
  check_bits(*this);
  if (kind == CodeKind::product && parts < 1) {
    throw InvalidArgument(fmt::format("parts = {}; a vector has at least 1 sub-vector", parts));
  }
}

CodeFormat CodeSpec::format_for(int64_t cols) const {
  if (cols < 1) throw InvalidArgument("the rows have no columns");
  CodeFormat format;
  format.kind = kind;
  format.cols = cols;
  if (kind == CodeKind::stored) {
    format.dtype = dtype;
    return format;
  }
  check_bits(*this);
  format.bits = bits;
  if (kind == CodeKind::product) {
    check_parts(parts, cols);
    format.parts = parts;
  }
  return format;
}

struct Codec::State {
  CodeFormat format;
  std::vector<float> values;
  std::vector<float> bases;  // of scalar codes
  std::vector<float> steps;
  std::vector<NearestCodeword> nearest;  // of product codes: one for each part

  const float* leasts() const { return values.data(); }
  const float* spans() const { return values.data() + format.cols; }
  CodecView view() const {
    const bool product = format.kind == CodeKind::product;
    return {format, bases.data(), steps.data(), product ? values.data() : nullptr};
  }

  void encode_rows(const MatrixView& rows, uint8_t* codes, float* floats, uint8_t* bytes) const;
  void decode_rows(const uint8_t* codes, const MutableMatrixView& out, uint8_t* bytes) const;
  int64_t scratch_floats(DType dtype, int64_t rows) const;
};

Codec::Codec(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Codec::~Codec() = default;

std::shared_ptr<const Codec> Codec::from_parts(const CodeFormat& given, std::vector<float> values) {
  const CodeFormat format = CodeSpec{given.kind, given.dtype, given.bits, given.parts}.format_for(given.cols);
  const int64_t wanted = value_count(format);
  if (static_cast<int64_t>(values.size()) != wanted) {
    throw InvalidArgument(
        fmt::format("{} trained values; codes of {} columns need {}", values.size(), format.cols, wanted));
  }
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    throw InvalidArgument(fmt::format("trained value {} is {}; it must be finite", bad - values.begin(), *bad));
  }
  auto state = std::make_unique<State>();
  state->format = format;
  state->values = std::move(values);
  if (format.kind == CodeKind::scalar) {
    for (int64_t c = 0; c < format.cols; ++c) {
      state->bases.push_back(scalar_base(state->leasts()[c], state->spans()[c], format.bits));
      state->steps.push_back(scalar_step(state->spans()[c], format.bits));
    }
  } else if (format.kind == CodeKind::product) {
    state->nearest.resize(static_cast<size_t>(format.parts));
    for (int64_t p = 0; p < format.parts; ++p) {
      state->nearest[static_cast<size_t>(p)].set(state->values.data() + p * format.codewords() * format.part_cols(),
                                                 format.codewords(), format.part_cols());
    }
  }
  return std::shared_ptr<const Codec>(new Codec(std::move(state)));
}

std::shared_ptr<const Codec> Codec::train(const CodeSpec& spec, RowSource& rows, uint64_t seed,
                                          const Resources& resources) {
  const DefaultFloatMode mode;
  const CodeFormat format = spec.format_for(rows.info().cols);
  switch (format.kind) {
    case CodeKind::stored: return from_parts(format, {});
    case CodeKind::scalar: return from_parts(format, train_scalar(rows, resources));
    default: return from_parts(format, train_product(format, rows, seed, resources));
  }
}

std::shared_ptr<const Codec> Codec::train(const CodeSpec& spec, const MatrixView& rows, uint64_t seed,
                                          const Resources& resources) {
  ViewSource source(rows);
  return train(spec, source, seed, resources);
}

const CodeFormat& Codec::format() const { return state_->format; }
const std::vector<float>& Codec::values() const { return state_->values; }
CodecView Codec::view() const { return state_->view(); }

int64_t Codec::bytes() const {
  int64_t total = array_bytes<float>(static_cast<int64_t>(state_->values.size() + 2 * state_->bases.size()));
  for (const NearestCodeword& nearest : state_->nearest) total += nearest.bytes();
  return total;
}

int64_t Codec::State::scratch_floats(DType dtype, int64_t rows) const {
  const int64_t widened = dtype == DType::f32 || format.kind == CodeKind::stored ? 0 : rows * format.cols;
  return widened + (format.kind == CodeKind::product ? NearestCodeword::scratch_floats(format.part_cols()) : 0);
}

// Up to kTaskRows rows. `bytes`: one for each sub-code of these.
void Codec::State::encode_rows(const MatrixView& rows, uint8_t* codes, float* floats, uint8_t* bytes) const {
  const auto* from = static_cast<const float*>(rows.data());
  int64_t stride = rows.row_stride();
  if (rows.dtype() != DType::f32) {
    for (int64_t i = 0; i < rows.rows(); ++i) widen_row(rows, i, floats + i * format.cols);
    from = floats;
    stride = format.cols;
    floats += rows.rows() * format.cols;
  }
  if (format.kind == CodeKind::scalar) {
    return encode_scalar_cpu(format, leasts(), spans(), from, stride, rows.rows(), codes, bytes);
  }
  const bool whole_bytes = format.bits == 8;
  uint8_t* const labels = whole_bytes ? codes : bytes;
  for (int64_t p = 0; p < format.parts; ++p) {
    nearest[static_cast<size_t>(p)].nearest(from + p * format.part_cols(), stride, rows.rows(), labels + p,
                                            format.parts, floats);
  }
  for (int64_t i = 0; !whole_bytes && i < rows.rows(); ++i) {
    pack_sub_codes(bytes + i * format.parts, format.parts, format.bits, codes + i * format.bytes());
  }
}

void Codec::encode(const MatrixView& rows, uint8_t* codes, const Resources& resources) const {
  encode(rows, MutableMatrixView(codes, rows.rows(), format().bytes()), resources);
}

void Codec::decode(const uint8_t* codes, int64_t count, const MutableMatrixView& out,
                   const Resources& resources) const {
  decode(MatrixView(codes, count, format().bytes()), out, resources);
}

void Codec::encode(const MatrixView& rows, const MutableMatrixView& codes, const Resources& resources) const {
  const DefaultFloatMode mode;
  const CodeFormat& format = state_->format;
  if (rows.cols() != format.cols) {
    throw InvalidArgument(fmt::format("the rows have {} columns; the code is of {}", rows.cols(), format.cols));
  }
  check_host_readable("rows", rows);
  check_host_readable("codes", codes);
  auto* const bytes_out = static_cast<uint8_t*>(codes.data());
  const int64_t floats = state_->scratch_floats(rows.dtype(), std::min(kTaskRows, rows.rows()));
  const int64_t bytes = std::min(kTaskRows, rows.rows()) * std::max(format.parts, format.cols);
  const HostArray<float> float_scratch(resources.threads() * floats, "a block of rows", resources);
  const HostArray<uint8_t> byte_scratch(format.bits == 8 ? 0 : resources.threads() * bytes, "a block of codes",
                                        resources);
  ProgressMeter meter("encode", rows.rows(), resources);
  parallel_for(divide_up(rows.rows(), kTaskRows), meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task * kTaskRows;
    const MatrixView some = rows.slice(first, std::min(kTaskRows, rows.rows() - first));
    uint8_t* const to = bytes_out + first * format.bytes();
    if (format.kind == CodeKind::stored) {
      const std::string name = "rows";
      for (int64_t i = 0; i < some.rows(); ++i) {
        convert_values(some.row(i), some.dtype(), to + i * format.bytes(), format.dtype, format.cols,
                       {name, (first + i) * format.cols, format.cols});
      }
    } else {
      state_->encode_rows(some, to, float_scratch.data() + slot * floats, byte_scratch.data() + slot * bytes);
    }
    meter.add(some.rows());
  });
  meter.finish();
}

void Codec::State::decode_rows(const uint8_t* codes, const MutableMatrixView& out, uint8_t* bytes) const {
  auto* const to = static_cast<float*>(out.data());
  if (format.kind == CodeKind::stored) {
    const MatrixView stored(codes, format.dtype, {out.rows(), format.cols, format.cols});
    for (int64_t i = 0; i < out.rows(); ++i) widen_row(stored, i, to + i * out.row_stride());
  } else if (format.kind == CodeKind::scalar) {
    decode_scalar_cpu(view(), codes, out.rows(), to, out.row_stride(), bytes);
  } else {
    const int64_t cols = format.part_cols();
    for (int64_t i = 0; i < out.rows(); ++i) {
      const uint8_t* const code = codes + i * format.bytes();
      float* row = to + i * out.row_stride();
      const float* words = values.data();
      for (int64_t p = 0; p < format.parts; ++p, row += cols, words += format.codewords() * cols) {
        std::copy_n(words + sub_code(code, p, format.bits) * cols, cols, row);
      }
    }
  }
}

void Codec::decode(const MatrixView& codes, const MutableMatrixView& out, const Resources& resources) const {
  const DefaultFloatMode mode;
  const CodeFormat& format = state_->format;
  const int64_t count = codes.rows();
  if (out.dtype() != DType::f32 || out.rows() != count || out.cols() != format.cols) {
    throw InvalidArgument(fmt::format("the output is {} x {} {}; it must be {} x {} f32", out.rows(), out.cols(),
                                      name_of(out.dtype()), count, format.cols));
  }
  check_host_readable("codes", codes);
  check_host_readable("outputs", out);
  const auto* const from = static_cast<const uint8_t*>(codes.data());
  const HostArray<uint8_t> scratch(format.bits == 8 ? 0 : resources.threads() * format.cols, "a code", resources);
  ProgressMeter meter("decode", count, resources);
  parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task * kTaskRows;
    const int64_t some = std::min(kTaskRows, count - first);
    uint8_t* const bytes = scratch.data() + slot * format.cols;
    if (codes.row_stride() == format.bytes()) {
      state_->decode_rows(from + first * format.bytes(), out.slice(first, some), bytes);
    } else {
      for (int64_t i = first; i < first + some; ++i) {
        state_->decode_rows(from + i * codes.row_stride(), out.slice(i, 1), bytes);
      }
    }
    meter.add(some);
  });
  meter.finish();
}

}  // namespace kith
