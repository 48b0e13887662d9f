#include <kith/metric.hpp>

#include <kith/error.hpp>
#include <kith/nearest_name.hpp>

#include "core/name_table.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr NameTable<Metric, 8> kMetricNames{{{{Metric::l2, "l2"},
                                              {Metric::sqeuclidean, "sqeuclidean"},
                                              {Metric::inner_product, "inner_product"},
                                              {Metric::cosine, "cosine"},
                                              {Metric::l1, "l1"},
                                              {Metric::linf, "linf"},
                                              {Metric::chi_square, "chi_square"},
                                              {Metric::hamming, "hamming"}}}};

// Names that other libraries use, where they can mean one thing only.
constexpr std::pair<std::string_view, Metric> kAliases[] = {
    {"euclidean", Metric::l2},     {"manhattan", Metric::l1},
    {"cityblock", Metric::l1},     {"chebyshev", Metric::linf},
    {"ip", Metric::inner_product}, {"dot", Metric::inner_product},
    {"l2sq", Metric::sqeuclidean},
};

// Names that mean something else elsewhere, or nearly what Kith has.
constexpr std::pair<std::string_view, std::string_view> kHints[] = {
    {"L2", "FAISS's L2 is sqeuclidean, the square; l2 is its root"},
    {"L1", "FAISS's L1 is l1"},
    {"Linf", "FAISS's Linf is linf"},
    {"IP", "it is called inner_product"},
    {"squared_euclidean", "it is called sqeuclidean"},
    {"angular", "the angle itself is not offered; cosine, 1 - cos of it, gives the same neighbours"},
    {"cos", "it is called cosine"},
    {"cosine_similarity", "cosine is 1 - cos: the nearest have the largest similarity"},
    {"dot_product", "it is called inner_product"},
    {"jaccard", "sets are not offered; hamming counts the differing bits of u8 rows"},
    {"mahalanobis", "transform the vectors, then search by l2"},
    {"correlation", "subtract each row's mean, then search by cosine"},
    {"chi2", "it is called chi_square"},
    {"minkowski", "it is l1, l2 or linf for p = 1, 2 or infinity; other p are not offered"},
};

// A hint for an unknown name; empty if there is none.
std::string hint_for(std::string_view name) {
  for (const auto& [elsewhere, hint] : kHints) {
    if (name == elsewhere) return std::string(hint);
  }
  std::vector<std::string_view> known;
  for (const auto& entry : kMetricNames.entries) known.push_back(entry.second);
  for (const auto& entry : kAliases) known.push_back(entry.first);
  const std::string_view nearest = nearest_name(name, known);
  return nearest.empty() ? "" : fmt::format("did you mean {}?", nearest);
}

}  // namespace

std::string_view name_of(Metric metric) { return kMetricNames.name(metric); }

Metric parse_metric(std::string_view name) {
  for (const auto& [alias, metric] : kAliases) {
    if (name == alias) return metric;
  }
  try {
    return kMetricNames.parse(name, "metric");
  } catch (const InvalidArgument& error) {
    const std::string hint = hint_for(name);
    if (hint.empty()) throw;
    throw InvalidArgument(fmt::format("{}; {}", error.what(), hint));
  }
}

}  // namespace kith
