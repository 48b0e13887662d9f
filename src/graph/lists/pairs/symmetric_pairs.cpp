#include "graph/lists/pairs/symmetric_pairs.hpp"

#include <kith/error.hpp>

#include "core/random.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kith {
namespace {

constexpr uint64_t kPairStream = 0x5133E7;

}  // namespace

std::pair<uint32_t, uint32_t> SymmetricPairs::pair(int64_t i) const {
  const CounterRng rng(seed_, kPairStream);
  const auto number = static_cast<uint64_t>(i);
  const auto count = static_cast<uint32_t>(rows_);
  return {rng.below(2 * number, count), rng.below(2 * number + 1, count)};
}

void SymmetricPairs::check(int64_t i, float there, float back) const {
  if (there == back || (std::isnan(there) && std::isnan(back))) return;
  const auto [a, b] = pair(i);
  throw InvalidArgument(
      fmt::format("the metric says that it is symmetric, and rows {} and {} are {} apart one way and {} "
                  "the other; make step() symmetric in its values, or search with knn_by",
                  a, b, there, back));
}

}  // namespace kith
