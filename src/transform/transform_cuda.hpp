// Transforms of rows in a GPU's memory: passes over their values and the exact engine's inner
// products, piece by piece, with the bits of the CPU.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "transform/transform_parts.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kith {

// A step to be applied, or undone, which it can be.
struct TransformRun {
  const TransformParts* parts = nullptr;
  bool forward = true;
};

// The GPU in whose memory one of them lies; nothing where both are the host's. InvalidArgument for two GPUs.
std::optional<int> device_of_rows(const MatrixView& rows, const MatrixView& out);

// One after the other; at least one. Either matrix may be the host's. Complete when it returns.
void transform_cuda(const std::vector<TransformRun>& steps, const MatrixView& rows, const MutableMatrixView& out,
                    int device, const Resources& resources);

// InvalidArgument, naming the first row that holds a NaN or an infinity.
void refuse_not_finite_cuda(std::string_view what, const MatrixView& rows, const Resources& resources);

}  // namespace kith
