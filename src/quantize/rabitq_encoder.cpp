// RaBitQ: the signs of a vector minus a centre, and two numbers that make distance estimates unbiased
// (kernels/codes/sign_code.hpp). Training only computes the mean of the rows, unless they are residuals of lists.
//
// The paper's guarantee assumes randomly rotated vectors: put RR before it if columns differ much.
// Cost: a few operations per value. Memory: a bit per column and 8 bytes.
#include "quantize/rabitq_encoder.hpp"

#include <kith/quantizer.hpp>

#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "io/container/words.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/codes/sign_code.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/encode_blocks.hpp"
#include "quantize/name_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

// Column sums for the mean, and a row. One thread adds the rows in order, so that the sums are always the same.
struct MeanMemory {
  MeanMemory(int64_t cols, const Resources& resources)
      : sums(cols, "the mean", resources), row(cols, "the mean", resources) {}

  HostArray<double> sums;
  HostArray<float> row;
};

std::vector<float> mean_of(RowSource& source, const Resources& resources) {
  constexpr int64_t kPieceBytes = int64_t{16} << 20;  // of a file, at a time
  constexpr int64_t kShare = 4;                       // of what the limit has left: there are two pieces
  const RowsInfo info = source.info();
  if (info.rows == 0) throw InvalidArgument("no rows to train on; give at least one");
  const MeanMemory memory(info.cols, resources);
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / kShare);
  const int64_t piece = info.in_memory ? info.rows : std::max<int64_t>(1, bytes / info.row_bytes());
  source.open(std::min(piece, info.rows), resources);
  std::fill(memory.sums.begin(), memory.sums.end(), 0.0);
  ProgressMeter meter("train the mean", info.rows, resources);
  for (int64_t first = 0; first < info.rows;) {
    const int64_t count = std::min({piece, info.rows - first, source.together(first)});
    const MatrixView rows = source.fetch(first, count);
    for (int64_t i = 0; i < count; ++i) {
      widen_row(rows, i, memory.row.data());
      for (int64_t c = 0; c < info.cols; ++c) memory.sums[c] += static_cast<double>(memory.row[c]);
    }
    first += count;
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  std::vector<float> mean(static_cast<size_t>(info.cols));
  for (int64_t c = 0; c < info.cols; ++c) {
    const auto value = static_cast<float>(memory.sums[c] / static_cast<double>(info.rows));
    if (!std::isfinite(value)) {
      throw InvalidArgument(fmt::format(
          "the mean of column {} is {}; scale the rows down, or leave out those that are not finite", c, value));
    }
    mean[static_cast<size_t>(c)] = value;
  }
  return mean;
}

constexpr OtherName kOtherNames[] = {
    {"LSH*", "Kith's code of one bit a column is RaBitQ"},
    {"ITQ*", "Kith's code of one bit a column, which brings its rotation, is RaBitQ"},
    {"RaBitQfs*", "how codes are scanned is not part of a name in Kith: RaBitQ"},
    {"RaBitQ#*", "RaBitQ codes have one bit a column in Kith: RaBitQ"},
};

class RaBitQEncoder final : public CodeEncoder {
 public:
  constexpr RaBitQEncoder() : CodeEncoder(CodeKind::signs) {}

  std::string_view names() const override { return "RaBitQ"; }
  bool parse(NamePart& part, CodeRecipe&) const override { return part.take("RaBitQ"); }
  std::string name(const CodeRecipe&) const override { return "RaBitQ"; }
  std::span<const OtherName> other_names() const override { return kOtherNames; }
  std::string text(const CodeRecipe&, int64_t cols) const override { return fmt::format("signs {}", cols); }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const override {
    if (kind != "signs") return false;
    cols = words.number<int64_t>();
    recipe.bits = 1;
    recipe.norm = CodeNorm::float32;
    return true;
  }

  void validate(const CodeRecipe&) const override {}
  bool has_norms(const CodeRecipe&) const override { return true; }
  CodeFormat format(const CodeRecipe&, int64_t cols) const override {
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    return {.kind = kind(), .cols = cols, .bits = 1, .norm = CodeNorm::float32};
  }
  std::vector<int64_t> shape(const CodeFormat& format) const override { return {format.cols}; }

  // Residuals have no mean to subtract.
  void train(const CodeRecipe& recipe, RowSource& rows, uint64_t, TrainedValues& trained,
             const Resources& resources) const override {
    trained.values = recipe.of_residuals ? std::vector<float>(static_cast<size_t>(rows.info().cols), 0.0f)
                                         : mean_of(rows, resources);
  }
  Footprint training_footprint(const CodeRecipe&, const RowsInfo& rows, const Resources& resources) const override {
    return footprint_of<MeanMemory>(resources, rows.cols).beside({rows.read_bytes(1)});
  }

  bool on_gpus() const override { return true; }
  void encode(const EncodeTask& task, const Resources& resources) const override {
    const CodeFormat& format = task.codec.format;
    const CodecView codec = task.codec.view();
    const int64_t cols = format.cols;
    const auto use = [&](const float* rows, int64_t stride, int64_t count, uint8_t* codes, float* own, uint8_t* bits) {
      float* const rest = own;
      float* const signs = own + cols;
      for (int64_t i = 0; i < count; ++i) {
        const float* const row = rows + i * stride;
        uint8_t* const code = codes + i * format.bytes();
        for (int64_t c = 0; c < cols; ++c) {
          rest[c] = row[c] - codec.codewords[c];
          bits[c] = rest[c] > 0 ? 1 : 0;
          signs[c] = rest[c] > 0 ? 1.0f : -1.0f;
        }
        const double squares = canonical_squared_norm_cpu(rest, cols);
        double absolutes = 0;
        canonical_products_cpu(rest, signs, 1, cols, &absolutes);
        pack_sub_codes(bits, cols, 1, code);
        set_norm_bits(format, norm_code(codec, static_cast<float>(squares)), code);
        set_sign_step(format, step_of_sums(squares, absolutes), code);
      }
      write_code_norms(codec, codes, count, nullptr);
    };
    encode_blocks(task, more_floats(format), resources, use);
  }
  Footprint cpu_encoding_footprint(const CodeRecipe&, const CodeFormat& format, const RowsInfo& rows,
                                   const Resources& resources) const override {
    return footprint_of<BlockMemory>(resources, format, rows, more_floats(format));
  }

 private:
  static int64_t more_floats(const CodeFormat& format) { return 2 * format.cols; }
};

constexpr RaBitQEncoder kRaBitQEncoder;

}  // namespace

const CodeEncoder* const kSignCode = &kRaBitQEncoder;

}  // namespace kith
