#include <kith/metric.hpp>

#include "core/name_table.hpp"

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

}  // namespace

std::string_view name_of(Metric metric) { return kNames.name(metric); }
Metric parse_metric(std::string_view name) { return kNames.parse(name, "metric"); }

}  // namespace kith
