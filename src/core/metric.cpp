#include <kith/metric.hpp>

#include <kith/error.hpp>

#include "core/name_table.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {
namespace {

constexpr NameTable<Metric, 8> kNames{{{{Metric::l2, "l2"},
                                        {Metric::sqeuclidean, "sqeuclidean"},
                                        {Metric::inner_product, "inner_product"},
                                        {Metric::cosine, "cosine"},
                                        {Metric::l1, "l1"},
                                        {Metric::linf, "linf"},
                                        {Metric::chi_square, "chi_square"},
                                        {Metric::hamming, "hamming"}}}};

// What other libraries call them, for the error alone: one metric has one name here.
constexpr std::pair<std::string_view, Metric> kElsewhere[] = {
    {"euclidean", Metric::l2},     {"L2", Metric::l2},
    {"manhattan", Metric::l1},     {"cityblock", Metric::l1},
    {"chebyshev", Metric::linf},   {"squared_euclidean", Metric::sqeuclidean},
    {"ip", Metric::inner_product}, {"dot", Metric::inner_product},
    {"angular", Metric::cosine},   {"chi2", Metric::chi_square},
};

}  // namespace

std::string_view name_of(Metric metric) { return kNames.name(metric); }

Metric parse_metric(std::string_view name) {
  try {
    return kNames.parse(name, "metric");
  } catch (const InvalidArgument& error) {
    for (const auto& [elsewhere, metric] : kElsewhere) {
      if (name == elsewhere)
        throw InvalidArgument(fmt::format("{}; it is called {} here", error.what(), name_of(metric)));
    }
    throw;
  }
}

}  // namespace kith
