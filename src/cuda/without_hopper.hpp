// What kernels for Hopper GPUs alone say in builds for other GPUs, where nobody should get to them.
#pragma once

#include <kith/error.hpp>

namespace kith {

[[noreturn]] inline void throw_no_hopper() {
  throw Unsupported("this build has no code for GPUs of compute capability 9.0; build with CMAKE_CUDA_ARCHITECTURES=90");
}

}  // namespace kith
