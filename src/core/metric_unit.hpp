// Converts internal keys to the metric's own unit and back.
#pragma once

#include <kith/metric.hpp>

#include <limits>

namespace kith {

inline float distance_of(Metric metric, float key) {
  return larger_is_nearer(metric) ? 0.0f - key : key;  // never -0
}

inline float key_of(Metric metric, float distance) { return larger_is_nearer(metric) ? 0.0f - distance : distance; }

// The distance that stands beside id -1.
inline float distance_of_nothing(Metric metric) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return larger_is_nearer(metric) ? -infinity : infinity;
}

}  // namespace kith
