// Additive codes, found by local search (LSQ) or beam search (RQ).
#include <kith/quantizer.hpp>

#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "io/container/words.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/additive_training.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/codec.hpp"
#include "quantize/name_part.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

Codebooks books_of(const CodeFormat& format, const float* values = nullptr) {
  return {values, format.parts, format.bits, format.cols};
}

// Appends norms to finished codes, after setting the bytes behind the sub-codes to zero.
void write_norms(const CodecTables& codec, const MutableMatrixView& codes, const Resources& resources) {
  constexpr int64_t kTaskRows = 512;
  const CodeFormat& format = codec.format;
  const CodecView view = codec.view();
  const auto write_some = [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      auto* const code = typed_row<uint8_t>(codes, i);
      std::fill(code + (format.parts * format.bits + 7) / 8, code + format.bytes(), uint8_t{0});
      write_code_norms(view, code, 1, nullptr);
    }
  };
  for_row_blocks("norms", codes.rows(), resources.with_progress({}), write_some, kTaskRows);
}

class AdditiveEncoder : public CodeEncoder {
 public:
  constexpr AdditiveEncoder(std::string_view prefix, std::string_view names, std::string_view search)
      : CodeEncoder(CodeKind::additive), prefix_(prefix), names_(names), search_(search) {}

  std::string_view names() const final { return names_; }
  // Number of codebooks, their bits, and how codes store the norm: "LSQ8x8", "RQ16x4", "LSQ7x8_Ncqint8".
  bool parse(NamePart& part, CodeRecipe& recipe) const override {
    if (!part.take(prefix_)) return false;
    recipe.parts = part.number();
    if (part.take("x")) recipe.bits = static_cast<int>(part.number());
    if (recipe.parts < 1 || recipe.parts > kMostCodebooks || recipe.bits < 1 || recipe.bits > 8) {
      part.refuse(fmt::format("asks for {} codebooks of {} bits; there are 1 to {} of 1 to 8 bits", recipe.parts,
                              recipe.bits, kMostCodebooks));
    }
    if (!part.take("_N")) return true;
    for (const auto& [norm, name] : kNormNames.entries) {
      NamePart rest = part;
      if (!rest.take(name) || !rest.done()) continue;
      recipe.norm = norm;
      part = rest;
      return true;
    }
    part.refuse(
        "asks for norms that are not known; known are _Ncqint8, _Nqint8, _Nfloat, and _Nnone for inner_product");
  }
  std::string name(const CodeRecipe& recipe) const final {
    return fmt::format("{}{}x{}{}", prefix_, recipe.parts, recipe.bits, norm_suffix(recipe.norm));
  }
  std::string text(const CodeRecipe& recipe, int64_t cols) const final {
    return fmt::format("additive {} {} {} {} {}{}", cols, recipe.bits, recipe.parts, search_, recipe.effort,
                       recipe.norm == CodeNorm::decoded ? "" : fmt::format(" {}", kNormNames.name(recipe.norm)));
  }
  bool parse_text(std::string_view kind, Words& words, CodeRecipe& recipe, int64_t& cols) const final {
    if (kind != "additive") return false;
    cols = words.number<int64_t>();
    recipe.bits = words.number<int>();
    recipe.parts = words.number<int64_t>();
    if (words.next() != search_) return false;
    recipe.effort = words.number<int>();
    if (!words.done()) recipe.norm = kNormNames.parse(words.next(), "norm");
    return true;
  }

  void validate(const CodeRecipe& recipe) const override {
    if (recipe.bits < 1 || recipe.bits > 8) {
      throw InvalidArgument(fmt::format("bits = {}; an additive code has 1 to 8 bits a codebook", recipe.bits));
    }
    if (recipe.parts < 1 || recipe.parts > kMostCodebooks) {
      throw InvalidArgument(fmt::format("{} codebooks; an additive code has 1 to {}", recipe.parts, kMostCodebooks));
    }
  }
  CodeFormat format(const CodeRecipe& recipe, int64_t cols) const final {
    if (cols < 1) throw InvalidArgument("the rows have no columns");
    validate(recipe);
    return CodeFormat::of_books(cols, recipe.bits, recipe.parts, recipe.norm);
  }
  std::vector<int64_t> shape(const CodeFormat& format) const final {
    return {format.parts, format.codewords(), format.cols};
  }
  void make_tables(CodecTables& tables) const final { tables.levels = norm_levels(tables.format, tables.values); }

  void encode(const EncodeTask& task, const Resources& resources) const final {
    const Codebooks books = books_of(task.codec.format, task.codec.values.data());
    through_whole_codes(books, task, resources, [&](uint8_t* whole) { find(books, task, whole, resources); });
    if (task.codec.format.has_norm()) write_norms(task.codec, task.codes, resources);
  }
  bool on_gpus() const final { return true; }

 protected:
  ~AdditiveEncoder() = default;

  // Finds codes on the CPU, one byte per row and book; `whole` also holds a given start.
  virtual void find(const Codebooks& books, const EncodeTask& task, uint8_t* whole,
                    const Resources& resources) const = 0;

  // Calls find(whole codes) in host memory, then packs them. With counting resources there are no codes.
  template <typename Find>
  static void through_whole_codes(const Codebooks& books, const EncodeTask& task, const Resources& resources,
                                  const Find& find) {
    const HostArray<uint8_t> whole(task.codes.rows() * books.books, "codes", resources);
    const int64_t there = counts_only(resources) ? 0 : task.codes.rows();
    if (task.how != nullptr && task.how->start == CodeStart::given) {
      refuse_unused_bits(task.codes, task.codec.format, resources);
      for (int64_t i = 0; i < there; ++i) {
        unpack_sub_codes(typed_row<uint8_t>(task.codes, i), books.books, books.bits, whole.data() + i * books.books);
      }
    }
    find(whole.data());
    for (int64_t i = 0; i < there; ++i) {
      pack_sub_codes(whole.data() + i * books.books, books.books, books.bits, typed_row<uint8_t>(task.codes, i));
    }
  }

 private:
  const std::string_view prefix_;
  const std::string_view names_;
  const std::string_view search_;
};

// --- local search

LocalSearchParams params_of(const CodeRecipe& recipe, uint64_t seed) {
  LocalSearchParams params = recipe.local;
  params.codebooks = recipe.parts;
  params.bits = recipe.bits;
  params.seed = seed;
  return params;
}

class LocalSearchEncoder final : public AdditiveEncoder {
 public:
  constexpr LocalSearchEncoder() : AdditiveEncoder("LSQ", "LSQm, LSQmxb", "local") {}

  std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t seed, bool check_finite) const override {
    LocalSearchParams params = params_of(recipe, seed);
    params.check_finite = check_finite;
    return LocalSearchQuantizer(params);
  }
  void validate(const CodeRecipe& recipe) const override {
    AdditiveEncoder::validate(recipe);
    if (recipe.effort >= 0) return;
    throw InvalidArgument(fmt::format("{} rounds of local search; give 0 or more", recipe.effort));
  }

  void train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed, TrainedValues& trained,
             const Resources& resources) const override {
    train_local_search(params_of(recipe, seed), rows, trained.values, trained.history, resources);
  }
  Footprint training_footprint(const CodeRecipe& recipe, const RowsInfo& rows,
                               const Resources& resources) const override {
    return local_search_training_footprint(params_of(recipe, 0), rows, resources);
  }

  double compared_codewords(const CodeRecipe& recipe) const override {
    return static_cast<double>(recipe.parts << recipe.bits) *
           static_cast<double>(recipe.effort * recipe.local.sweeps + 1);
  }
  bool codes_apart() const override { return true; }
  void encode_on_gpu(const EncodeTask& task, int device, const Resources& resources) const override {
    const CodeFormat& format = task.codec.format;
    const MutableMatrixView& codes = task.codes;
    const bool whole_bytes = format.bits == 8 && !format.has_norm();
    // The device packs sub-codes and computes norms.
    if (!whole_bytes && task.how == nullptr && codes.row_stride() == codes.cols()) {
      return encode_cuda(task, device, resources);
    }
    const Codebooks books = books_of(format, task.codec.values.data());
    const auto find = [&](uint8_t* whole) {
      encode_additive_cuda(books, encoding_of(task.codec.recipe, task.how), task.rows, whole, nullptr, device,
                           resources);
    };
    if (whole_bytes && codes.row_stride() == books.books) return find(static_cast<uint8_t*>(codes.data()));
    if (codes.space().host_readable()) return through_whole_codes(books, task, resources, find);
    const HostArray<uint8_t> packed(codes.rows() * codes.cols(), "codes", resources);
    const MutableMatrixView here(packed.data(), codes.rows(), codes.cols());
    if (task.how != nullptr && task.how->start == CodeStart::given) copy_codes_cuda(codes, here, device, resources);
    through_whole_codes(books, {task.codec, task.rows, here, task.how}, resources, find);
    copy_codes_cuda(here, codes, device, resources);
  }
  Footprint cpu_encoding_footprint(const CodeRecipe&, const CodeFormat& format, const RowsInfo& rows,
                                   const Resources& resources) const override {
    return array_footprint<uint8_t>(rows.rows, format.parts)
        .beside(additive_encoding_footprint(books_of(format), SearchForm::products, 1, resources));
  }

 protected:
  void find(const Codebooks& books, const EncodeTask& task, uint8_t* whole, const Resources& resources) const override {
    encode_additive(books, encoding_of(task.codec.recipe, task.how), task.rows, whole, nullptr, resources);
  }
};

// --- beam search

class ResidualEncoder final : public AdditiveEncoder {
 public:
  constexpr ResidualEncoder() : AdditiveEncoder("RQ", "RQm, RQmxb", "beam") {}

  bool parse(NamePart& part, CodeRecipe& recipe) const override {
    recipe.effort = static_cast<int>(ResidualQuantizerParams().beam);
    return AdditiveEncoder::parse(part, recipe);
  }
  std::optional<Quantizer> quantizer(const CodeRecipe& recipe, uint64_t seed, bool check_finite) const override {
    return ResidualQuantizer({recipe.parts, recipe.bits, recipe.effort, seed, check_finite});
  }
  void validate(const CodeRecipe& recipe) const override {
    AdditiveEncoder::validate(recipe);
    if (recipe.effort >= 1 && recipe.effort <= kMostBeam) return;
    throw InvalidArgument(fmt::format("a beam of {} paths; it has 1 to {}", recipe.effort, kMostBeam));
  }

  void train(const CodeRecipe& recipe, RowSource& rows, uint64_t seed, TrainedValues& trained,
             const Resources& resources) const override {
    trained.values = train_residual({recipe.parts, recipe.bits, recipe.effort, seed, true}, rows, resources);
  }
  Footprint training_footprint(const CodeRecipe& recipe, const RowsInfo& rows,
                               const Resources& resources) const override {
    return residual_training_footprint({recipe.parts, recipe.bits, recipe.effort, 0, true}, rows, resources);
  }

  double compared_codewords(const CodeRecipe& recipe) const override {
    return static_cast<double>(recipe.parts << recipe.bits) * static_cast<double>(recipe.effort);
  }
  Footprint cpu_encoding_footprint(const CodeRecipe& recipe, const CodeFormat& format, const RowsInfo& rows,
                                   const Resources& resources) const override {
    return array_footprint<uint8_t>(rows.rows, format.parts)
        .beside(beam_encoding_footprint(books_of(format), recipe.effort, rows.rows, resources));
  }

 protected:
  void find(const Codebooks& books, const EncodeTask& task, uint8_t* whole, const Resources& resources) const override {
    encode_beam(books, task.codec.recipe.effort, task.rows, whole, resources);
  }
};

constexpr LocalSearchEncoder kLocalSearchEncoder;
constexpr ResidualEncoder kResidualEncoder;

}  // namespace

const CodeEncoder* const kLocalSearchCode = &kLocalSearchEncoder;
const CodeEncoder* const kResidualCode = &kResidualEncoder;

AdditiveEncoding encoding_of(const CodeRecipe& recipe, const LocalSearchEncoding* how) {
  LocalSearchEncoding usual;
  usual.rounds = recipe.effort;
  const LocalSearchEncoding& chosen = how == nullptr ? usual : *how;
  AdditiveEncoding encoding;
  encoding.search = plan_of(params_of(recipe, chosen.seed), chosen.rounds, chosen.from_round);
  encoding.start = chosen.start;
  encoding.first_row = chosen.first_row;
  encoding.by_content = recipe.draws_by_content;
  return encoding;
}

}  // namespace kith
