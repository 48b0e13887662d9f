#include "interop/faiss_codes.hpp"

#include "interop/faiss_header.hpp"
#include "quantize/additive/code_norms.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// One pair of values for all columns, or one for each.
std::vector<float> ranges(const std::vector<float>& trained, int64_t cols) {
  if (trained.size() != 2 || cols == 1) return trained;
  std::vector<float> values(static_cast<size_t>(2 * cols), trained[0]);
  std::fill(values.begin() + cols, values.end(), trained[1]);
  return values;
}

CodeFormat scalar_format(FaissSource& source, FaissScalar type, int64_t cols) {
  const auto of_bits = [&](int bits) { return CodeRecipe{.code = kScalarCode, .bits = bits}.format_for(cols); };
  switch (type) {
    case FaissScalar::bits8:
    case FaissScalar::bits8_uniform: return of_bits(8);
    case FaissScalar::bits6: return of_bits(6);
    case FaissScalar::bits4:
    case FaissScalar::bits4_uniform: return of_bits(4);
    case FaissScalar::fp16: return {.cols = cols, .dtype = DType::f16};
    case FaissScalar::bf16: return {.cols = cols, .dtype = DType::bf16};
    case FaissScalar::bits8_direct: return {.cols = cols, .dtype = DType::u8};
    case FaissScalar::bits8_direct_signed: return {.cols = cols, .dtype = DType::i8};
  }
  source.unsupported(fmt::format("a scalar quantizer of FAISS's type {}, which Kith lacks", static_cast<int>(type)));
}

}  // namespace

CodecParts read_product_quantizer(FaissSource& source, int64_t cols) {
  const int64_t own_cols = source.bounded(1, kMostFaissCols, "the columns of a product quantizer");
  if (own_cols != cols) source.corrupt(fmt::format("a product quantizer of {} columns, not {}", own_cols, cols));
  const int64_t parts = source.bounded(1, static_cast<uint64_t>(cols), "the parts of a product quantizer");
  if (cols % parts != 0) source.corrupt(fmt::format("{} parts do not divide {} columns", parts, cols));
  const int64_t bits = source.bounded(1, 24, "the bits of a product quantizer");
  if (bits < 4 || bits > 8) {
    source.unsupported(fmt::format("a product quantizer of {} bits; Kith's have 4 to 8", bits));
  }
  CodecParts codec;
  codec.format = CodeFormat::of_parts(cols, static_cast<int>(bits), parts);
  codec.values = source.floats(cols << bits, "codewords");
  return codec;
}

FaissScalarCodec read_scalar_quantizer(FaissSource& source, int64_t cols) {
  const auto type = static_cast<FaissScalar>(source.number<int32_t>("the type of a scalar quantizer"));
  const CodeFormat format = scalar_format(source, type, cols);
  source.skip(sizeof(int32_t) + sizeof(float), "a scalar quantizer");  // how its ranges were found
  const int64_t own_cols = source.bounded(1, kMostFaissCols, "the columns of a scalar quantizer");
  if (own_cols != cols) source.corrupt(fmt::format("a scalar quantizer of {} columns, not {}", own_cols, cols));
  const auto bytes = static_cast<uint64_t>(format.bytes());
  source.bounded(bytes, bytes, "the bytes of a code");
  const bool uniform = type == FaissScalar::bits8_uniform || type == FaissScalar::bits4_uniform;
  const int64_t trained = format.stores_values() ? 0 : uniform ? 2 : 2 * cols;
  FaissScalarCodec result;
  result.codec = {format, ranges(source.floats(trained, "the ranges of a scalar quantizer"), cols)};
  result.offset_bytes = type == FaissScalar::bits8_direct_signed;
  return result;
}

std::string code_name(const CodecParts& codec) {
  const CodeRecipe recipe = codec.recipe();
  return recipe.code->name(recipe);
}

namespace {

constexpr int64_t kGroup = 32;
constexpr int64_t kHalf = 16;

}  // namespace

void unpack_fast_scan(const FastScanLayout& layout, const uint8_t* blocks, int64_t rows, uint8_t* codes) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_block = row % layout.block_rows;
    const int64_t in_group = in_block % kGroup;
    const int64_t low = in_group % kHalf;
    const int64_t byte = low < kHalf / 2 ? 2 * low : 2 * (low - kHalf / 2) + 1;
    const int shift = in_group < kHalf ? 0 : 4;
    const uint8_t* from = blocks + row / layout.block_rows * layout.block_bytes() + in_block / kGroup * kGroup + byte;
    uint8_t* const code = codes + row * layout.code_bytes();
    for (int64_t pair = 0; pair < layout.pairs(); ++pair, from += layout.block_rows) {
      const int first = from[0] >> shift & 15;
      const int second = 2 * pair + 1 < layout.parts ? from[kHalf] >> shift & 15 : 0;
      code[pair] = static_cast<uint8_t>(first | second << 4);
    }
  }
}

}  // namespace kith
