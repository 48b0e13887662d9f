#include "ivf/model/code_words.hpp"

#include "core/half.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// Rounds to nearest, ties to even.
uint16_t bf16_of(float value) {
  const uint32_t bits = bits_of_float(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

bool is_additive(const CodeFormat& format) { return format.adds_codewords(); }

// The number of columns of a codeword.
int64_t width_of(const CodeFormat& format) { return is_additive(format) ? format.cols : format.part_cols(); }

}  // namespace

const CodeWords::Forms& CodeWords::get(const Codec& codec, const Wanted& wanted, const Resources& resources) {
  const std::lock_guard hold(making_);
  if (forms_.squares.size() == 0) make_squares(codec, resources);
  if (wanted.columns && forms_.columns.size() == 0) make_columns(codec, resources);
  if (wanted.rounded && forms_.rounded.size() == 0) make_rounded(codec, resources);
  return forms_;
}

Footprint CodeWords::footprint(const CodeFormat& format, const Wanted& wanted) {
  if (!wanted.columns && !wanted.rounded) return {};
  const int64_t words = format.parts * format.codewords();
  return array_footprint<float>(words)
      .beside(array_footprint<float>(wanted.columns ? words : 0, width_of(format)))
      .beside(array_footprint<uint16_t>(wanted.rounded ? words : 0, width_of(format)));
}

int64_t CodeWords::bytes() const {
  const std::lock_guard hold(making_);
  return forms_.squares.bytes() + forms_.columns.bytes() + forms_.rounded.bytes();
}

void CodeWords::make_squares(const Codec& codec, const Resources& resources) {
  const CodeFormat& format = codec.format();
  const float* const values = codec.view().codewords;
  const int64_t width = width_of(format);
  HostArray<float> squares(format.parts * format.codewords(), "the codewords' squares", resources);
  double total = 0;
  for (int64_t p = 0; p < format.parts; ++p) {
    float largest = 0;
    for (int64_t w = p * format.codewords(); w < (p + 1) * format.codewords(); ++w) {
      double sum = 0;
      for (int64_t i = w * width; i < (w + 1) * width; ++i) sum += static_cast<double>(values[i]) * values[i];
      squares[w] = static_cast<float>(sum);
      largest = std::max(largest, squares[w]);
    }
    total += is_additive(format) ? std::sqrt(static_cast<double>(largest)) : static_cast<double>(largest);
  }
  forms_.largest = static_cast<float>((is_additive(format) ? total : std::sqrt(total)) * 1.001);
  forms_.squares = std::move(squares);
}

void CodeWords::make_rounded(const Codec& codec, const Resources& resources) {
  const CodeFormat& format = codec.format();
  const float* const values = codec.view().codewords;
  const int64_t width = width_of(format);
  HostArray<uint16_t> rounded(format.parts * format.codewords() * width, "rounded codewords", resources);
  double total = 0;
  for (int64_t p = 0; p < format.parts; ++p) {
    double largest = 0;
    for (int64_t w = p * format.codewords(); w < (p + 1) * format.codewords(); ++w) {
      double errors = 0;
      for (int64_t i = w * width; i < (w + 1) * width; ++i) {
        rounded[i] = bf16_of(values[i]);
        const float near = float_of_bits(static_cast<uint32_t>(rounded[i]) << 16);
        const double moved = static_cast<double>(values[i]) - static_cast<double>(near);
        errors += moved * moved;
      }
      largest = std::max(largest, errors);
    }
    total += largest;
  }
  forms_.moved_by = static_cast<float>(std::sqrt(total) * 1.001);
  forms_.rounded = std::move(rounded);
}

void CodeWords::make_columns(const Codec& codec, const Resources& resources) {
  const CodeFormat& format = codec.format();
  const int64_t width = width_of(format);
  const int64_t count = format.codewords();
  HostArray<float> columns(format.parts * count * width, "the codewords' columns", resources);
  const float* const values = codec.view().codewords;
  for (int64_t p = 0; p < format.parts; ++p) {
    const int64_t first = p * count * width;
    pack_units(reinterpret_cast<const uint32_t*>(values + first), width, count, width, count,
               reinterpret_cast<uint32_t*>(columns.data() + first));
  }
  forms_.columns = std::move(columns);
}

}  // namespace kith
