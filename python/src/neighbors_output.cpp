#include "neighbors_output.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include <fmt/format.h>

namespace kith::python {
namespace {

// Where the caller's array begins, and in which memory.
template <typename T, typename Array>
std::pair<T*, MemorySpace> begin_of(const std::variant<DeviceArray, Array>& given, const char* name,
                                    const NeighborsView& wanted) {
  if (const auto* on_device = std::get_if<DeviceArray>(&given)) {
    return {on_device->template writable<T>(name, wanted.queries, wanted.k), on_device->space()};
  }
  const Array& array = std::get<Array>(given);
  const auto rows = static_cast<int64_t>(array.shape(0));
  const auto cols = static_cast<int64_t>(array.shape(1));
  if (rows != wanted.queries || cols != wanted.k) {
    throw InvalidArgument(fmt::format("out: {} hold {} x {} values, but {} queries with k = {} need {} x {}", name,
                                      rows, cols, wanted.queries, wanted.k, wanted.queries, wanted.k));
  }
  return {array.data(), MemorySpace::host()};
}

}  // namespace

NeighborsOutput::NeighborsOutput(int64_t queries, int64_t k, const GivenOutput& given, const Resources& resources)
    : given_(given.has_value()), view_{nullptr, nullptr, queries, k, {}} {
  check_result_size(queries, k);
  if (given_) {
    const auto [ids, ids_space] = begin_of<int64_t>(given->first, "ids", view_);
    const auto [distances, distances_space] = begin_of<float>(given->second, "distances", view_);
    if (ids_space != distances_space) {
      throw InvalidArgument("out: ids and distances lie in different memories; give both on the host or on one device");
    }
    view_.ids = ids;
    view_.distances = distances;
    view_.space = ids_space;
    return;
  }
  const int64_t values = queries * k;
  ids_ = HostBuffer(values * static_cast<int64_t>(sizeof(int64_t)), "the neighbours' ids", resources);
  distances_ = HostBuffer(values * static_cast<int64_t>(sizeof(float)), "the neighbours' distances", resources);
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
