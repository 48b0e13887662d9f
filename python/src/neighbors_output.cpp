#include "neighbors_output.hpp"

#include "core/byte_size.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

namespace kith::python {
namespace {

template <typename Array>
void check_shape(const Array& array, const char* name, int64_t queries, int64_t k) {
  const auto rows = static_cast<int64_t>(array.shape(0));
  const auto cols = static_cast<int64_t>(array.shape(1));
  if (rows == queries && cols == k) return;
  throw InvalidArgument(fmt::format("out: {} hold {} x {} values, but {} queries with k = {} need {} x {}", name, rows,
                                    cols, queries, k, queries, k));
}

}  // namespace

NeighborsOutput::NeighborsOutput(int64_t queries, int64_t k, const GivenOutput& given, const Resources& resources)
    : given_(given.has_value()), view_{nullptr, nullptr, queries, k} {
  if (given_) {
    check_shape(given->first, "ids", queries, k);
    check_shape(given->second, "distances", queries, k);
    view_.ids = given->first.data();
    view_.distances = given->second.data();
    return;
  }
  const int64_t values = saturating_multiply(queries, k);
  ids_ = HostBuffer(saturating_multiply(values, sizeof(int64_t)), "the neighbours' ids", resources);
  distances_ = HostBuffer(saturating_multiply(values, sizeof(float)), "the neighbours' distances", resources);
  view_.ids = ids_.as<int64_t>();
  view_.distances = distances_.as<float>();
}

std::optional<std::pair<nb::object, nb::object>> NeighborsOutput::take() {
  if (given_) return std::nullopt;
  nb::object ids = ids_array(std::move(ids_), view_.queries, view_.k);
  nb::object distances = distances_array(std::move(distances_), view_.queries, view_.k);
  return std::pair{std::move(ids), std::move(distances)};
}

}  // namespace kith::python
