// The distance of one pair of rows, in two plain forms that all else is compared with.
//
// Compiled once, optimised and without sanitizers in every build: nearly all time of a comparison with a reference is
// spent here. On x86-64 the canonical form is compiled twice and chosen at run time, since the architecture's baseline
// has no fused multiply-add, and a call of the C library for every element would take most of that time.
#pragma once

#include <kith/metric.hpp>

#include <cstdint>

namespace kith::reference {

// In float64, written down from its definition.
double distance(Metric metric, const float* q, const float* x, int64_t cols);

// The bits that Kith reports: kernels/distance/canonical.hpp.
float canonical(Metric metric, const float* q, const float* x, int64_t cols);

}  // namespace kith::reference
