// The norms behind additive codes (code_norms.hpp) on a GPU, with the same bytes.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Centres to add to decoded vectors: that of lists[i] for code i. Null: none.
struct CodeCentres {
  const float* centres = nullptr;
  const int32_t* lists = nullptr;
};

// Enqueues. `codec`: of device memory.
void launch_write_code_norms(const CodecView& codec, uint8_t* codes, int64_t count, const CodeCentres& centres,
                             cudaStream_t stream);

}  // namespace kith
