// What every sub-code adds to the distance of a query and a code: the tables of asymmetric distances (Jegou et al.,
// 2011, section III), canonical values rounded once to f32.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/codec.hpp"

namespace kith {

// Entries of a query: parts or columns, times 2^bits. Unsupported where values are stored, which have no few codes.
int64_t lookup_entries(const CodeFormat& format);

// f32, queries x lookup_entries, in host memory. Squared distances or inner products; InvalidArgument for other
// metrics, which are no sums. Unsupported for squared distances of additive codes, which are none either.
void fill_lookup_table(const Codec& codec, const MatrixView& queries, Metric metric, const MutableMatrixView& out,
                       const Resources& resources);

}  // namespace kith
