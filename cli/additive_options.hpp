// What kith train takes for LSQ and RQ alone: how they are trained and how their codes are searched for.
#pragma once

#include <kith/quantizer.hpp>

#include "commands.hpp"

#include <cstdint>
#include <optional>

namespace kith::cli {

struct AdditiveOptions {
  // LSQ
  std::optional<int64_t> rounds;
  std::optional<int64_t> search_rounds;
  std::optional<AdditiveStart> start;
  std::optional<double> regularization;
  std::optional<double> anneal;
  std::optional<int64_t> sweeps;
  std::optional<int64_t> perturbed;
  std::optional<SweepOrder> order;
  // RQ
  std::optional<int64_t> beam;
};

void offer_additive(OfferedCommand& command, AdditiveOptions& options);

// The quantizer with what was given. Throws InvalidArgument, naming the option, for what such a quantizer does not
// take.
Quantizer with_options(Quantizer quantizer, const AdditiveOptions& options);

}  // namespace kith::cli
