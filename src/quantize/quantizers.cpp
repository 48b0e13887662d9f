#include <kith/quantizer.hpp>

#include <kith/error.hpp>

#include "core/name_table.hpp"
#include "quantize/trained_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace kith {
namespace {

// Names of choices, in the program and the Python package.
constexpr NameTable<AdditiveStart, 3> kTrainStarts{
    {{{AdditiveStart::opq, "opq"}, {AdditiveStart::residual, "residual"}, {AdditiveStart::random, "random"}}}};
constexpr NameTable<CodeStart, 3> kCodeStarts{
    {{{CodeStart::greedy, "greedy"}, {CodeStart::random, "random"}, {CodeStart::given, "given"}}}};
constexpr NameTable<SweepOrder, 2> kOrders{{{{SweepOrder::fixed, "fixed"}, {SweepOrder::random, "random"}}}};

void check_at_least(const char* name, int64_t value, int64_t least) {
  if (value >= least) return;
  throw InvalidArgument(fmt::format("{} = {}; give {} or more", name, value, least));
}

CodeRecipe recipe_of_params(const ProductQuantizerParams& params) {
  return {kProductCode, DType::f32, params.bits, params.parts};
}
CodeRecipe recipe_of_params(const ResidualQuantizerParams& params) {
  return {kResidualCode, DType::f32, params.bits, params.codebooks, static_cast<int>(params.beam)};
}
CodeRecipe recipe_of_params(const LocalSearchParams& params) {
  CodeRecipe recipe{kLocalSearchCode, DType::f32, params.bits, params.codebooks};
  recipe.local = params;
  recipe.draws_by_content = false;
  return recipe;
}
CodeRecipe recipe_of_params(const ScalarQuantizerParams& params) {
  if (params.bits == 16) return {kStoredCode, DType::f16};
  return {kScalarCode, DType::f32, params.bits};
}

// The columns of codebooks given as values. InvalidArgument for a number of values that fits no columns, or for values
// that are not finite.
int64_t columns_of_codebooks(int64_t books, int bits, const VectorView<const float>& values) {
  const int64_t words = books << bits;
  if (values.size == 0 || values.size % words != 0) {
    throw InvalidArgument(fmt::format("{} values of codebooks; {} codebooks of {} codewords have a multiple of {}",
                                      values.size, books, int64_t{1} << bits, words));
  }
  const float* const end = values.data + values.size;
  const float* const bad = std::find_if_not(values.data, end, [](float value) { return std::isfinite(value); });
  if (bad != end) {
    throw InvalidArgument(fmt::format("value {} of the codebooks is {}; it must be finite", bad - values.data, *bad));
  }
  return values.size / words;
}

template <typename Params>
std::unique_ptr<TrainedCodec> codec_of(const Params& params, uint64_t seed) {
  params.validate();
  return std::make_unique<TrainedCodec>(recipe_of_params(params), seed, params.check_finite);
}

}  // namespace

// --- scalar and product codes

void ScalarQuantizerParams::validate() const {
  if (bits == 4 || bits == 6 || bits == 8 || bits == 16) return;
  throw InvalidArgument(fmt::format("bits = {}; it must be 4, 6, 8, or 16 for f16", bits));
}

ScalarQuantizer::ScalarQuantizer(ScalarQuantizerParams params)
    : VectorQuantizer(codec_of(params, 0)), params_(params) {}

void ProductQuantizerParams::validate() const { recipe_of_params(*this).validate(); }

ProductQuantizer::ProductQuantizer(ProductQuantizerParams params)
    : VectorQuantizer(codec_of(params, params.seed)), params_(params) {}

void ProductQuantizer::set_values(const VectorView<const float>& codewords) {
  const int64_t each = int64_t{1} << params().bits;  // values per column
  if (codewords.size == 0 || codewords.size % (each * params().parts) != 0) {
    throw InvalidArgument(fmt::format("{} values of codewords; {} parts of {} codewords have a multiple of {}",
                                      codewords.size, params().parts, each, each * params().parts));
  }
  VectorQuantizer::set_values(codewords.size / each, codewords);
}

// --- additive codes

void ResidualQuantizerParams::validate() const {
  if (beam < 1 || beam > kMostBeam) {
    throw InvalidArgument(fmt::format("beam = {}; a beam search keeps 1 to {} sums", beam, kMostBeam));
  }
  recipe_of_params(*this).validate();
}

ResidualQuantizer::ResidualQuantizer(ResidualQuantizerParams params)
    : VectorQuantizer(codec_of(params, params.seed)), params_(params) {}

void ResidualQuantizer::set_values(const VectorView<const float>& codebooks) {
  VectorQuantizer::set_values(columns_of_codebooks(params_.codebooks, params_.bits, codebooks), codebooks);
}

std::string_view name_of(AdditiveStart start) { return kTrainStarts.name(start); }
AdditiveStart parse_additive_start(std::string_view name) { return kTrainStarts.parse(name, "start of training"); }
std::string_view name_of(CodeStart start) { return kCodeStarts.name(start); }
CodeStart parse_code_start(std::string_view name) { return kCodeStarts.parse(name, "start of encoding"); }
std::string_view name_of(SweepOrder order) { return kOrders.name(order); }
SweepOrder parse_sweep_order(std::string_view name) { return kOrders.parse(name, "order of codebooks"); }

void LocalSearchParams::validate() const {
  if (codebooks < 1 || codebooks > kMostCodebooks) {
    throw InvalidArgument(fmt::format("codebooks = {}; an additive code has 1 to {}", codebooks, kMostCodebooks));
  }
  if (bits < 1 || bits > 8) {
    throw InvalidArgument(fmt::format("bits = {}; an additive code has 1 to 8 bits a codebook", bits));
  }
  check_at_least("rounds", rounds, 1);
  check_at_least("train_search_rounds", train_search_rounds, 1);
  check_at_least("sweeps", sweeps, 1);
  check_at_least("perturbed", perturbed, 0);
  if (perturbed > codebooks) {
    throw InvalidArgument(fmt::format("perturbed = {} of {} codes; perturb at most as many as there are codebooks",
                                      perturbed, codebooks));
  }
  if (!(regularization > 0) || !(regularization < 1e300)) {
    throw InvalidArgument(fmt::format("regularization = {}; it must be above 0 (10 is usual)", regularization));
  }
  if (!(anneal >= 0) || !(anneal < 1e300)) {
    throw InvalidArgument(fmt::format("anneal = {}; it must be a finite number from 0 on (0.35 is usual)", anneal));
  }
}

void LocalSearchEncoding::validate() const {
  check_at_least("rounds", rounds, 0);
  check_at_least("from_round", from_round, 0);
  check_at_least("first_row", first_row, 0);
}

LocalSearchQuantizer::LocalSearchQuantizer(LocalSearchParams params)
    : VectorQuantizer(codec_of(params, params.seed)), params_(params) {}

void LocalSearchQuantizer::set_values(const VectorView<const float>& codebooks) {
  VectorQuantizer::set_values(columns_of_codebooks(params_.codebooks, params_.bits, codebooks), codebooks);
}

std::vector<double> LocalSearchQuantizer::history() const { return trained_codec().trained.get()->history; }

void LocalSearchQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes,
                                  const LocalSearchEncoding& encoding, const Resources& resources) const {
  encoding.validate();
  trained_codec().encode(rows, codes, resources, &encoding);
}

}  // namespace kith
