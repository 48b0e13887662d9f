// The canonical distance (kernels/distance/canonical.hpp) in its plain form, one pair of rows at a time.
//
// Compiled once, optimised and without sanitizers in every build: nearly all time of a comparison with a reference is
// spent here. On x86-64 it is compiled twice and chosen at run time, since the architecture's baseline has no fused
// multiply-add, and a call of the C library for every element would take most of that time.
#pragma once

#include <kith/metric.hpp>

#include <cstdint>

namespace kith::reference {

float canonical(Metric metric, const float* q, const float* x, int64_t cols);

}  // namespace kith::reference
