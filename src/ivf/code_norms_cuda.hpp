// The norms behind additive codes that were made on a GPU: of the vectors that they stand for, with their list's centre
// where codes are of residuals (kernels/codes/code_norm.hpp). The bytes are the CPU's.
#pragma once

#include "kernels/codes/code_format.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct CodeNormsTask {
  CodecView codec;
  const float* centres = nullptr;  // lists x cols, of residuals; else null
  const int32_t* lists = nullptr;  // of each code, where there are centres
  uint8_t* codes = nullptr;        // one after the other; the bits of their norms are written
  int64_t count = 0;
};

// Enqueues and returns.
void launch_code_norms(const CodeNormsTask& task, cudaStream_t stream);

}  // namespace kith
