// A code of one bit a column: whether a value lies above its column's mean, decoded to the mean more or less the mean
// distance from it. A toy: it shows what a code brings to the library (ARCHITECTURE.md, "How the next parts will fit"),
// and takes the format and the readers of scalar codes.
#pragma once

#include <kith/error.hpp>

#include "io/container/words.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "quantize/encode_blocks.hpp"
#include "quantize/name_part.hpp"

#include <cmath>

namespace kith {

class SignEncoder final : public CodeEncoder {
 public:
  constexpr SignEncoder() : CodeEncoder(CodeKind::scalar) {}

  std::string_view names() const override { return "Sign"; }
  bool parse(NamePart& part, CodeRecipe&) const override { return part.take("Sign"); }
  std::string name(const CodeRecipe&) const override { return "Sign"; }
  std::string text(const CodeRecipe&, int64_t cols) const override { return fmt::format("sign {}", cols); }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe&, int64_t& cols) const override {
    if (kind == "sign") cols = words.number<int64_t>();
    return kind == "sign";
  }

  void validate(const CodeRecipe&) const override {}
  CodeFormat format(const CodeRecipe&, int64_t cols) const override {
    return {.kind = kind(), .cols = cols, .bits = 1};
  }
  std::vector<int64_t> shape(const CodeFormat& format) const override { return {2, format.cols}; }
  void make_tables(CodecTables& tables) const override {
    for (int64_t c = 0; c < tables.format.cols; ++c) {
      tables.bases.push_back(tables.leasts()[c] - tables.spans()[c]);
      tables.steps.push_back(2 * tables.spans()[c]);
    }
  }

  // The means, then the mean distances from them.
  void train(const CodeRecipe&, RowSource& rows, uint64_t, TrainedValues& trained,
             const Resources& resources) const override {
    rows.open(rows.rows(), resources);
    const MatrixView all = rows.fetch(0, rows.rows());
    const auto cols = static_cast<size_t>(all.cols());
    std::vector<float> row(cols);
    std::vector<double> sums(2 * cols);
    for (const bool second : {false, true}) {
      for (int64_t i = 0; i < all.rows(); ++i) {
        widen_row(all, i, row.data());
        for (size_t c = 0; c < cols; ++c) {
          sums[c + (second ? cols : 0)] += second ? std::abs(double{row[c]} - sums[c]) : double{row[c]};
        }
      }
      for (size_t c = 0; c < cols; ++c) sums[c + (second ? cols : 0)] /= static_cast<double>(all.rows());
    }
    trained.values.assign(sums.begin(), sums.end());
  }

  void encode(const EncodeTask& task, const Resources& resources) const override {
    const CodeFormat& format = task.codec.format;
    const auto use = [&](const float* rows, int64_t stride, int64_t count, uint8_t* codes, float*, uint8_t* bits) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t c = 0; c < format.cols; ++c) bits[c] = rows[i * stride + c] > task.codec.leasts()[c] ? 1 : 0;
        pack_sub_codes(bits, format.cols, 1, codes + i * format.bytes());
      }
    };
    encode_blocks(task, 0, resources, use);
  }
  Footprint cpu_encoding_footprint(const CodeRecipe&, const CodeFormat& format, const RowsInfo& rows,
                                   const Resources& resources) const override {
    return footprint_of<BlockMemory>(resources, format, rows, 0);
  }
};

inline constexpr SignEncoder kSignEncoder;

}  // namespace kith
