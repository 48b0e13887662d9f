// What refine_gpu.hpp hides from code that is compiled without CUDA.
#pragma once

#include "index/refine_gpu.hpp"
#include "kernels/codes/code_format.hpp"

namespace kith {

// A view of device memory.
CodecView codec_view(const CodecOnDevice& codec);

}  // namespace kith
