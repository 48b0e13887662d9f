#include "additive_options.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <variant>

namespace kith::cli {
namespace {

// The first given option of LSQ, or null.
const char* of_local_search(const AdditiveOptions& options) {
  if (options.rounds.has_value()) return "--rounds";
  if (options.search_rounds.has_value()) return "--search-rounds";
  if (options.start.has_value()) return "--start";
  if (options.regularization.has_value()) return "--regularization";
  if (options.anneal.has_value()) return "--anneal";
  if (options.sweeps.has_value()) return "--sweeps";
  if (options.perturbed.has_value()) return "--perturbed";
  if (options.order.has_value()) return "--order";
  return nullptr;
}

LocalSearchQuantizer with_options(const LocalSearchQuantizer& quantizer, const AdditiveOptions& options) {
  LocalSearchParams params = quantizer.params();
  params.rounds = options.rounds.value_or(params.rounds);
  params.train_search_rounds = options.search_rounds.value_or(params.train_search_rounds);
  params.train_start = options.start.value_or(params.train_start);
  params.regularization = options.regularization.value_or(params.regularization);
  params.anneal = options.anneal.value_or(params.anneal);
  params.sweeps = options.sweeps.value_or(params.sweeps);
  params.perturbed = options.perturbed.value_or(params.perturbed);
  params.order = options.order.value_or(params.order);
  return LocalSearchQuantizer(params);
}

}  // namespace

void offer_additive(OfferedCommand& command, AdditiveOptions& options) {
  command.number("--rounds", options.rounds, "Of LSQ: rounds of training; default 25");
  command.number("--search-rounds", options.search_rounds, "Of LSQ: rounds of local search in each of them; default 8");
  command.word("--start", options.start, parse_additive_start, "",
               "Of LSQ: where training begins: opq (default), residual or random");
  command.real("--regularization", options.regularization,
               "Of LSQ: keeps codewords that few vectors use near the mean; above 0; default 10");
  command.real("--anneal", options.anneal,
               "Of LSQ: how far codewords are moved at random while training; default 0.35, 0: not at all");
  command.number("--sweeps", options.sweeps, "Of LSQ: sweeps over the codebooks in a round of local search; default 4");
  command.number("--perturbed", options.perturbed,
                 "Of LSQ: codes drawn anew at the start of a round; default 4 of up to 10 codebooks, 2 of more");
  command.word("--order", options.order, parse_sweep_order, "",
               "Of LSQ: of the codebooks in a sweep: fixed (default) or random");
  command.number("--beam", options.beam, "Of RQ: sums that are kept after each codebook, 1 to 64; default 5");
}

Quantizer with_options(Quantizer quantizer, const AdditiveOptions& options) {
  const char* const local = of_local_search(options);
  const char* const beam = options.beam.has_value() ? "--beam" : nullptr;
  const auto refuse = [&](const char* option, const char* kind) {
    if (option == nullptr) return;
    throw InvalidArgument(fmt::format("{} is an option of {}, and {} was asked for", option, kind, name_of(quantizer)));
  };
  if (const auto* const lsq = std::get_if<LocalSearchQuantizer>(&quantizer)) {
    refuse(beam, "RQ");
    return with_options(*lsq, options);
  }
  refuse(local, "LSQ");
  if (const auto* const rq = std::get_if<ResidualQuantizer>(&quantizer)) {
    ResidualQuantizerParams params = rq->params();
    params.beam = options.beam.value_or(params.beam);
    return ResidualQuantizer(params);
  }
  refuse(beam, "RQ");
  return quantizer;
}

}  // namespace kith::cli
