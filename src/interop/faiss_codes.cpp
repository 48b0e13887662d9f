#include "interop/faiss_parts.hpp"

#include "core/divide.hpp"
#include "quantize/additive/code_norms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Checks a quantizer's own number of columns.
void expect_cols(FaissSource& source, std::string_view kind, int64_t cols) {
  const int64_t own = source.bounded(1, kMostFaissCols, fmt::format("the columns of {} quantizer", kind));
  if (own != cols) source.corrupt(fmt::format("{} quantizer of {} columns, not {}", kind, own, cols));
}

// Ranges of all columns, from one pair of values for all or one per column.
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

// FAISS's search types, which determine what follows the codes of a vector.
enum class FaissAdditiveSearch : int32_t {
  decompress = 0,
  lut_nonorm = 1,
  norm_from_lut = 2,
  norm_float = 3,
  norm_qint8 = 4,
  norm_qint4 = 5,
  norm_cqint8 = 6,
  norm_cqint4 = 7,
  norm_lsq2x4 = 8,
  norm_rq2x4 = 9
};

struct NormOfSearch {
  int bits;       // behind a code
  CodeNorm norm;  // as Kith has it; decoded where it lacks it
};

// In the order of the searches.
constexpr NormOfSearch kNorms[] = {
    {0, CodeNorm::decoded}, {0, CodeNorm::decoded}, {0, CodeNorm::decoded}, {32, CodeNorm::float32},
    {8, CodeNorm::qint8},   {4, CodeNorm::decoded}, {8, CodeNorm::cqint8},  {4, CodeNorm::decoded},
    {8, CodeNorm::decoded}, {8, CodeNorm::decoded},
};

const NormOfSearch& norm_of(FaissAdditiveSearch search) { return kNorms[static_cast<size_t>(search)]; }

// That which is written.
FaissAdditiveSearch search_of(CodeNorm norm) {
  if (norm == CodeNorm::none) return FaissAdditiveSearch::lut_nonorm;
  const auto* const found =
      std::find_if(std::begin(kNorms), std::end(kNorms), [&](const NormOfSearch& one) { return one.norm == norm; });
  return static_cast<FaissAdditiveSearch>(found - std::begin(kNorms));
}

// The values that levels are made from, behind those of the codebooks.
void take_levels(FaissSource& source, FaissAdditiveSearch search, CodecParts& codec) {
  const float least = source.number<float>("the range of norms");
  const float largest = source.number<float>("the range of norms");
  std::vector<float> levels;
  if (search == FaissAdditiveSearch::norm_qint8) {
    levels = {least, largest};
  } else if (search == FaissAdditiveSearch::norm_cqint8) {
    levels = source.floats(kNormLevels, "the levels of norms");
  } else if (search >= FaissAdditiveSearch::norm_cqint8) {
    source.skip_array(sizeof(float), "the levels of norms");
  }
  if (!std::all_of(levels.begin(), levels.end(), [](float level) { return std::isfinite(level); })) {
    source.corrupt("levels of norms that are not finite");
  }
  codec.values.insert(codec.values.end(), levels.begin(), levels.end());
}

}  // namespace

FaissCode read_product_quantizer(FaissSource& source, int64_t cols) {
  expect_cols(source, "a product", cols);
  const int64_t parts = source.bounded(1, static_cast<uint64_t>(cols), "the parts of a product quantizer");
  if (cols % parts != 0) source.corrupt(fmt::format("{} parts do not divide {} columns", parts, cols));
  const int64_t bits = source.bounded(1, 24, "the bits of a product quantizer");
  if (bits < 4 || bits > 8) {
    source.unsupported(fmt::format("a product quantizer of {} bits; Kith's have 4 to 8", bits));
  }
  CodecParts codec;
  codec.format = CodeFormat::of_parts(cols, static_cast<int>(bits), parts);
  codec.values = source.floats(cols << bits, "codewords");
  const int64_t bytes = codec.format.bytes();
  return {std::move(codec), bytes};
}

FaissCode read_scalar_quantizer(FaissSource& source, int64_t cols) {
  const auto type = static_cast<FaissScalar>(source.number<int32_t>("the type of a scalar quantizer"));
  const CodeFormat format = scalar_format(source, type, cols);
  source.skip(sizeof(int32_t) + sizeof(float), "a scalar quantizer");  // how its ranges were found
  expect_cols(source, "a scalar", cols);
  source.exactly(format.bytes(), "the bytes of a code");
  const bool uniform = type == FaissScalar::bits8_uniform || type == FaissScalar::bits4_uniform;
  const int64_t trained = format.stores_values() ? 0 : uniform ? 2 : 2 * cols;
  return {{format, ranges(source.floats(trained, "the ranges of a scalar quantizer"), cols)},
          format.bytes(),
          type == FaissScalar::bits8_direct_signed};
}

FaissCode read_additive_quantizer(FaissSource& source, int64_t cols, const CodeEncoder* code) {
  expect_cols(source, "an additive", cols);
  const int64_t books = source.bounded(1, 1 << 16, "the codebooks of an additive quantizer");
  if (books > kMostCodebooks) {
    source.unsupported(
        fmt::format("an additive quantizer of {} codebooks; Kith's have up to {}", books, kMostCodebooks));
  }
  const HostArray<uint64_t> bits = source.array<uint64_t>(books, "the bits of codebooks");
  if (!std::all_of(bits.begin(), bits.end(), [&](uint64_t own) { return own == bits[0] && own >= 1 && own <= 8; })) {
    source.unsupported("codebooks of different sizes or of more than 8 bits, which Kith lacks");
  }
  if (!source.flag("whether the quantizer is trained")) source.unsupported("an additive quantizer without training");
  FaissCode result;
  CodeFormat& format = result.codec.format;
  format = CodeFormat::of_books(cols, static_cast<int>(bits[0]), books);
  result.codec.code = code;
  result.codec.values = source.floats((books << format.bits) * cols, "codebooks");
  const auto search = static_cast<FaissAdditiveSearch>(source.number<int32_t>("how the index is searched"));
  if (search < FaissAdditiveSearch::decompress || search > FaissAdditiveSearch::norm_rq2x4) {
    source.corrupt(fmt::format("an additive quantizer that is searched in the way {}", static_cast<int>(search)));
  }
  format.norm = norm_of(search).norm;
  take_levels(source, search, result.codec);
  if (search >= FaissAdditiveSearch::norm_lsq2x4) source.skip_array(sizeof(float), "the tables of norms");
  result.code_bytes = divide_up(books * format.bits + norm_of(search).bits, int64_t{8});
  if (code == kResidualCode) {
    source.skip(sizeof(int32_t), "how the quantizer was trained");
    const auto beam = source.number<int32_t>("the beam of a residual quantizer");
    if (beam < 1) source.corrupt(fmt::format("a beam of {} paths", beam));
    result.codec.effort = std::min(beam, kMostBeam);
  } else {
    // K, train_iters, encode_ils_iters, train_ils_iters, icm_iters; p, lambda; chunk_size; random_seed; nperts;
    // update_codebooks_with_double
    source.skip(2 * sizeof(uint64_t), "how the quantizer was trained");
    result.codec.effort = static_cast<int>(source.bounded(0, 1 << 20, "the rounds of local search"));
    source.skip(2 * sizeof(uint64_t) + 2 * sizeof(float) + sizeof(uint64_t) + sizeof(int32_t) + sizeof(uint64_t) + 1,
                "how the quantizer was trained");
  }
  return result;
}

HostArray<uint8_t> FaissCode::known(HostArray<uint8_t> codes, int64_t rows, const Resources& resources) const {
  for (int64_t i = 0; offset_bytes && i < codes.size(); ++i) codes[i] ^= 0x80;
  const CodeFormat& format = codec.format;
  if (!format.adds_codewords()) return codes;
  const int64_t bytes = format.bytes();
  HostArray<uint8_t> kept(rows * bytes, "the codes", resources);
  const int used = static_cast<int>((format.parts * format.bits + format.norm_bits()) % 8);
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(codes.data() + i * code_bytes, bytes, kept.data() + i * bytes);
    if (used != 0) kept[(i + 1) * bytes - 1] &= static_cast<uint8_t>((1 << used) - 1);
  }
  return kept;
}

void write_additive_quantizer(FaissSink& sink, const CodecParts& codec) {
  const CodeFormat& format = codec.format;
  sink.number(static_cast<uint64_t>(format.cols));
  sink.number(static_cast<uint64_t>(format.parts));
  const std::vector<uint64_t> bits(static_cast<size_t>(format.parts), static_cast<uint64_t>(format.bits));
  sink.values<uint64_t>(bits);
  sink.flag(true);
  const std::span<const float> values(codec.values);
  const auto count = static_cast<size_t>(norm_value_count(format.norm));
  const std::span<const float> levels = values.last(count);
  sink.values<float>(values.first(values.size() - count));
  sink.number(static_cast<int32_t>(search_of(format.norm)));
  const bool has_range = format.norm == CodeNorm::qint8;
  sink.number(has_range ? levels[0] : NAN);
  sink.number(has_range ? levels[1] : NAN);
  if (format.norm == CodeNorm::cqint8) sink.values<float>(levels);
  if (codec.code == kResidualCode) {
    constexpr int32_t kProgressive = 1;
    sink.number(kProgressive);
    sink.number(static_cast<int32_t>(codec.effort));
    return;
  }
  sink.number(static_cast<uint64_t>(format.codewords()));
  for (const uint64_t value : {uint64_t{25}, static_cast<uint64_t>(codec.effort), uint64_t{8}, uint64_t{4}}) {
    sink.number(value);
  }
  sink.number(0.5F);
  sink.number(1e-4F);
  sink.number(uint64_t{10000});
  sink.number(int32_t{0});
  sink.number(static_cast<uint64_t>(std::min<int64_t>(4, format.parts)));  // codes perturbed
  sink.flag(true);
}

CodecParts without_norms(const CodecParts& codec) {
  CodecParts plain = codec;
  plain.values.resize(codec.values.size() - static_cast<size_t>(norm_value_count(codec.format.norm)));
  plain.format.norm = CodeNorm::decoded;
  return plain;
}

void copy_books(const CodeFormat& from, const uint8_t* code, uint8_t* out) {
  const int64_t bits = from.parts * from.bits;
  std::copy_n(code, divide_up(bits, int64_t{8}), out);
  if (bits % 8 != 0) out[bits / 8] &= static_cast<uint8_t>((1 << bits % 8) - 1);
}

std::string code_name(const CodecParts& codec) {
  const CodeRecipe recipe = codec.recipe();
  return recipe.code->name(recipe);
}

constexpr int64_t kFastScanGroup = 32;

FastScanLayout fast_scan_layout(FaissSource& source, const CodeFormat& format, int32_t block_rows) {
  constexpr int32_t kMostBlockRows = 1 << 16;
  if (format.bits != 4) source.corrupt(fmt::format("fast-scan codes of {} bits", format.bits));
  if (block_rows < kFastScanGroup || block_rows > kMostBlockRows || block_rows % kFastScanGroup != 0) {
    source.corrupt(fmt::format("blocks of {} vectors", block_rows));
  }
  return {format.parts, block_rows};
}

void unpack_fast_scan(const FastScanLayout& layout, const uint8_t* blocks, int64_t rows, uint8_t* codes) {
  constexpr int64_t kHalf = kFastScanGroup / 2;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_block = row % layout.block_rows;
    const int64_t in_group = in_block % kFastScanGroup;
    const int64_t low = in_group % kHalf;
    const int64_t byte = low < kHalf / 2 ? 2 * low : 2 * (low - kHalf / 2) + 1;
    const int shift = in_group < kHalf ? 0 : 4;
    const uint8_t* from =
        blocks + row / layout.block_rows * layout.block_bytes() + in_block / kFastScanGroup * kFastScanGroup + byte;
    uint8_t* const code = codes + row * layout.code_bytes();
    for (int64_t pair = 0; pair < layout.pairs(); ++pair, from += layout.block_rows) {
      const int first = from[0] >> shift & 15;
      const int second = 2 * pair + 1 < layout.parts ? from[kHalf] >> shift & 15 : 0;
      code[pair] = static_cast<uint8_t>(first | second << 4);
    }
  }
}

}  // namespace kith
