// Product codes: k-means trains the codewords of each sub-vector (product_training.hpp). A sub-vector is encoded as the
// number of its nearest codeword, by canonical squared distance, ties to the smaller number; with a NaN, as codeword 0.
// Cost of encoding: cols x 2^bits multiplications a row.
#include <kith/quantizer.hpp>

#include "io/container/words.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "quantize/encode_blocks.hpp"
#include "quantize/name_part.hpp"
#include "quantize/product/product_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kith {
namespace {

bool has_known_bits(int bits) { return bits >= 4 && bits <= 8; }

// The nearest divisors of cols below and above `parts`, for an error message.
std::string near_divisors(int64_t cols, int64_t parts) {
  int64_t below = std::min(parts, cols);
  while (below > 1 && cols % below != 0) --below;
  int64_t above = std::clamp<int64_t>(parts, 1, cols);
  while (cols % above != 0) ++above;
  return below == above || below < 1 ? std::to_string(above) : fmt::format("{} or {}", below, above);
}

class ProductEncoder final : public CodeEncoder {
 public:
  constexpr ProductEncoder() : CodeEncoder(CodeKind::product) {}

  std::string_view names() const override { return "PQm, PQmxb"; }
  bool parse(NamePart& part, CodeRecipe& recipe) const override {
    if (!part.take("PQ")) return false;
    recipe.parts = part.number();
    if (part.take("x")) recipe.bits = static_cast<int>(part.number());
    if (!has_known_bits(recipe.bits)) {
      part.refuse(fmt::format("asks for {} bits; codes have 4 to 8", recipe.bits));
    }
    if (!part.take("fsr") && !part.take("fs")) (void)part.take("np");  // FAISS's ways to search the same codes
    return true;
  }
  std::string name(const CodeRecipe& recipe) const override {
    return recipe.bits == 8 ? fmt::format("PQ{}", recipe.parts) : fmt::format("PQ{}x{}", recipe.parts, recipe.bits);
  }
  std::string text(const CodeRecipe& recipe, int64_t cols) const override {
    return fmt::format("product {} {} {}", cols, recipe.bits, recipe.parts);
  }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const override {
    if (kind != "product") return false;
    cols = words.number<int64_t>();
    recipe.bits = words.number<int>();
    recipe.parts = words.number<int64_t>();
    return true;
  }
  std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t seed, bool check_finite) const override {
    return ProductQuantizer({recipe.parts, recipe.bits, seed, check_finite});
  }

  void validate(const CodeRecipe& recipe) const override {
    check_bits(recipe);
    if (recipe.parts >= 1) return;
    throw InvalidArgument(fmt::format("parts = {}; a vector has at least 1 sub-vector", recipe.parts));
  }
  CodeFormat format(const CodeRecipe& recipe, int64_t cols) const override {
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    check_bits(recipe);
    if (recipe.parts < 1 || recipe.parts > cols || cols % recipe.parts != 0) {
      throw InvalidArgument(
          fmt::format("{} sub-vectors do not divide {} columns; take {}, or a transform to other columns (OPQ, PCA)",
                      recipe.parts, cols, near_divisors(cols, recipe.parts)));
    }
    return CodeFormat::of_parts(cols, recipe.bits, recipe.parts);
  }
  std::vector<int64_t> shape(const CodeFormat& format) const override {
    return {format.parts, format.codewords(), format.part_cols()};
  }
  void make_tables(CodecTables& tables) const override {
    const CodeFormat& format = tables.format;
    tables.nearest.resize(static_cast<size_t>(format.parts));
    const float* words = tables.values.data();
    for (NearestCodeword& part : tables.nearest) {
      part.set(words, format.codewords(), format.part_cols());
      words += format.codewords() * format.part_cols();
    }
  }
  Footprint tables_footprint(const CodeFormat& format) const override {
    return {array_bytes<float>(value_count(format)) +
            format.parts * NearestCodeword::bytes_for(format.codewords(), format.part_cols())};
  }

  void train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed, TrainedValues& trained,
             const Resources& resources) const override {
    trained.values = train_product(format(recipe, rows.info().cols), rows, seed, resources);
  }
  Footprint training_footprint(const CodeRecipe& recipe, const RowsInfo& rows,
                               const Resources& resources) const override {
    return product_training_footprint(format(recipe, rows.cols), rows, resources);
  }

  double compared_codewords(const CodeRecipe& recipe) const override {
    return static_cast<double>(int64_t{1} << recipe.bits);
  }
  bool on_gpus() const override { return true; }
  void encode(const EncodeTask& task, const Resources& resources) const override {
    const CodeFormat& format = task.codec.format;
    const bool packs = format.bits != 8;
    const auto encode_block = [&](const float* rows, int64_t stride, int64_t count, uint8_t* codes, float* floats,
                                  uint8_t* bytes) {
      uint8_t* const labels = packs ? bytes : codes;
      for (int64_t p = 0; p < format.parts; ++p) {
        task.codec.nearest[static_cast<size_t>(p)].nearest(rows + p * format.part_cols(), stride, count, labels + p,
                                                           format.parts, floats);
      }
      for (int64_t i = 0; packs && i < count; ++i) {
        pack_sub_codes(bytes + i * format.parts, format.parts, format.bits, codes + i * format.bytes());
      }
    };
    encode_blocks(task, NearestCodeword::scratch_floats(format.part_cols()), resources, encode_block);
  }
  Footprint cpu_encoding_footprint(const CodeRecipe&, const CodeFormat& format, const RowsInfo& rows,
                                   const Resources& resources) const override {
    return footprint_of<BlockMemory>(resources, format, rows, NearestCodeword::scratch_floats(format.part_cols()));
  }

 private:
  static void check_bits(const CodeRecipe& recipe) {
    if (has_known_bits(recipe.bits)) return;
    throw InvalidArgument(fmt::format("bits = {}; a product code has 4 to 8 bits a sub-vector", recipe.bits));
  }
};

constexpr ProductEncoder kProductEncoder;

}  // namespace

const CodeEncoder* const kProductCode = &kProductEncoder;

}  // namespace kith
