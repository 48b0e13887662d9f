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

// A step to apply, or to invert; it must have an inverse then.
struct TransformRun {
  const TransformParts* parts = nullptr;
  bool forward = true;
};

// The GPU whose memory holds one of them; nothing if both are in host memory. Throws InvalidArgument for two GPUs.
std::optional<int> device_of_rows(const MatrixView& rows, const MatrixView& out);

// Applies at least one step, in order. Either matrix may be in host memory. Complete when it returns.
void transform_cuda(const std::vector<TransformRun>& steps, const MatrixView& rows, const MutableMatrixView& out,
                    int device, const Resources& resources);

// InvalidArgument, naming the first row that holds a NaN or an infinity.
void refuse_not_finite_cuda(std::string_view what, const MatrixView& rows, const Resources& resources);

}  // namespace kith
