// Options of kith train for LSQ and RQ only: how they are trained, and how codes are searched.
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

// The quantizer with the given options. InvalidArgument that names an option which this quantizer does not have.
Quantizer with_options(Quantizer quantizer, const AdditiveOptions& options);

}  // namespace kith::cli
