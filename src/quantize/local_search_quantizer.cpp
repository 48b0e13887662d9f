#include <kith/local_search_quantizer.hpp>

#include <kith/error.hpp>

#include "core/name_table.hpp"
#include "quantize/additive/packed_codes.hpp"
#include "quantize/trained_codec.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

// The words for choices, as the program and the package take them.
constexpr NameTable<AdditiveStart, 3> kTrainStarts{
    {{{AdditiveStart::opq, "opq"}, {AdditiveStart::residual, "residual"}, {AdditiveStart::random, "random"}}}};
constexpr NameTable<CodeStart, 3> kCodeStarts{
    {{{CodeStart::greedy, "greedy"}, {CodeStart::random, "random"}, {CodeStart::given, "given"}}}};
constexpr NameTable<SweepOrder, 2> kOrders{{{{SweepOrder::fixed, "fixed"}, {SweepOrder::random, "random"}}}};

void check_at_least(const char* name, int64_t value, int64_t least) {
  if (value >= least) return;
  throw InvalidArgument(fmt::format("{} = {}; give {} or more", name, value, least));
}

std::unique_ptr<TrainedCodec> codec_of(const LocalSearchParams& params) {
  params.validate();
  CodeRecipe recipe;
  recipe.code = kLocalSearchCode;
  recipe.bits = params.bits;
  recipe.parts = params.codebooks;
  recipe.local = params;
  recipe.draws_by_content = false;
  return std::make_unique<TrainedCodec>(recipe, params.seed, params.check_finite);
}

}  // namespace

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
    : VectorQuantizer(codec_of(params)), params_(params) {}

void LocalSearchQuantizer::set_values(const VectorView<const float>& codebooks) {
  VectorQuantizer::set_values(columns_of_codebooks(params_.codebooks, params_.bits, codebooks), codebooks);
}

std::vector<double> LocalSearchQuantizer::history() const { return trained_codec().get()->history; }

void LocalSearchQuantizer::encode(const MatrixView& rows, const MutableMatrixView& codes,
                                  const LocalSearchEncoding& encoding, const Resources& resources) const {
  encoding.validate();
  const NarrowedRows narrowed("x", rows, nullptr, OfRounding::warns, resources);
  trained_codec().encode(narrowed.view(), codes, resources, &encoding);
}

}  // namespace kith
