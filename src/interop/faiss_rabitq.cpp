// RaBitQ codes of one bit a column in FAISS's files (Ixrq, Iwrq). Bits and numbers lie where Kith has them
// (kernels/codes/sign_code.hpp), but FAISS holds |r|^2, and m times the root of the number of columns.
#include "interop/faiss_rabitq.hpp"

#include "interop/faiss_own_code.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/codes/sign_code.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/codec.hpp"
#include "quantize/rabitq_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kith {
namespace {

double root_of_cols(const CodeFormat& format) { return std::sqrt(static_cast<double>(format.cols)); }

// Bits behind the last column are nobody's.
void clear_unused(const CodeFormat& format, uint8_t* code) {
  const auto used = static_cast<int>(format.cols % 8);
  if (used != 0) code[format.cols / 8] &= static_cast<uint8_t>((1 << used) - 1);
}

constexpr uint8_t kQueryBits = 0;  // of queries that FAISS compares with codes; 0: as they are

FaissCode read_quantizer(FaissSource& source, int64_t cols) {
  source.exactly(cols, "the columns of a RaBitQ quantizer");
  CodecParts codec;
  codec.format = CodeRecipe{.code = kSignCode}.format_for(cols);
  codec.values.assign(static_cast<size_t>(cols), 0.0F);
  source.exactly(codec.format.bytes(), "the bytes of a code");
  const auto metric = static_cast<FaissMetric>(source.number<int32_t>("the metric of a RaBitQ quantizer"));
  if (metric != FaissMetric::l2) {
    source.unsupported("RaBitQ codes of a metric other than L2: Kith's hold no correction of inner products");
  }
  const int64_t bytes = codec.format.bytes();
  return {std::move(codec), bytes};
}

// False where a number in a code is not finite.
bool take_codes(const CodecParts& parts, const float* centre, int64_t count, uint8_t* codes) {
  const auto codec = Codec::from_parts(parts.format, parts.values);
  const CodeFormat& format = parts.format;
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* const code = codes + i * format.bytes();
    clear_unused(format, code);
    const auto step = static_cast<float>(sign_step(format, code) / root_of_cols(format));
    if (!std::isfinite(step)) return false;
    set_sign_step(format, step, code);
  }
  write_code_norms(codec->view(), codes, count, nullptr);
  if (centre != nullptr) write_code_norms(codec->view(), codes, count, centre);
  return true;
}

void give_code(const CodecView& codec, const float* centre, const uint8_t* code, uint8_t* out) {
  const CodeFormat& format = codec.format;
  std::copy_n(code, format.bytes(), out);
  const float step = sign_step(format, code);
  std::vector<float> vector(static_cast<size_t>(format.cols));
  decode_rows_cpu(codec, code, 1, centre, vector.data());
  const double moved = canonical_squared_norm_cpu(vector.data(), format.cols) - SignReader(codec, code).own_square();
  const double square = static_cast<double>(code_norm(codec, code)) - moved;
  set_norm_bits(format, norm_code(codec, static_cast<float>(std::max(square, 0.0))), out);
  set_sign_step(format, static_cast<float>(step * root_of_cols(format)), out);
}

class FaissSignCode final : public FaissOwnCode {
 public:
  constexpr FaissSignCode() : FaissOwnCode("Ixrq", "Iwrq") {}
  bool is_of(const CodeFormat& format) const override { return format.has_signs(); }

  FaissCode read(FaissSource& source, int64_t cols) const override { return read_quantizer(source, cols); }
  bool read_list_settings(FaissSource& source, const FaissCode& code) const override {
    source.exactly(code.code_bytes, "the bytes of a code");
    if (!source.flag("whether codes are residual")) {
      source.unsupported("RaBitQ codes in lists that are not of residuals");
    }
    source.skip(sizeof(uint8_t), "how the index is searched");
    return true;
  }
  void read_end(FaissSource& source, FaissCode& code) const override {
    std::vector<float>& centre = code.codec.values;
    centre = source.floats(code.codec.format.cols, "the centre");
    source.skip(sizeof(uint8_t), "how the index is searched");
    if (!std::all_of(centre.begin(), centre.end(), [](float value) { return std::isfinite(value); })) {
      source.corrupt("a centre that is not finite");
    }
  }
  void convert(FaissSource& source, const CodecParts& codec, const float* centre, int64_t count,
               uint8_t* codes) const override {
    if (!take_codes(codec, centre, count, codes)) source.corrupt("a code whose step is not finite");
  }

  std::string refusal(const ListParts& lists, FaissMetric metric) const override {
    if (metric != FaissMetric::l2) {
      return "its RaBitQ codes serve inner products by the decoded vectors, FAISS's by a correction of their own";
    }
    const std::vector<float>& centre = lists.codec.values;
    const bool centred = std::any_of(centre.begin(), centre.end(), [](float value) { return value != 0; });
    if (lists.centres.rows() > 0 && (!lists.residual || centred)) {
      return "its RaBitQ codes in lists are not of residuals alone";
    }
    return "";
  }
  void write(FaissSink& sink, const CodeFormat& format) const override {
    sink.number(static_cast<uint64_t>(format.cols));
    sink.number(static_cast<uint64_t>(format.bytes()));
    sink.number(static_cast<int32_t>(FaissMetric::l2));
  }
  void write_list_settings(FaissSink& sink, const CodeFormat& format, bool residual) const override {
    sink.number(static_cast<uint64_t>(format.bytes()));
    sink.flag(residual);
    sink.number(kQueryBits);
  }
  void write_end(FaissSink& sink, const CodecParts& codec) const override {
    sink.values<float>(codec.values);
    sink.number(kQueryBits);
  }
  void convert_back(const CodecView& codec, const float* centre, const uint8_t* code, uint8_t* out) const override {
    give_code(codec, centre, code, out);
  }
};

constexpr FaissSignCode kCode;

}  // namespace

const FaissOwnCode* const kFaissSignCode = &kCode;

}  // namespace kith
