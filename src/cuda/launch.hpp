// The one way to launch a kernel: computes the grid, leaves out empty work and work that is only counted, checks.
// Memory is filled in the same way.
//
//   launch(fill_kernel, Grid::over(count, kThreads), stream, values, count);
//
// A chained kernel follows the one before it in the stream without a pause. From compute capability 9.0 on its blocks
// can be scheduled while the last blocks of the kernel before are still running. Such a kernel calls
// ptx::wait_for_kernel_before() before it reads what that kernel wrote, or writes what that kernel reads. Since the
// next one may start only after that, whatever was written two kernels ago or earlier can be read even before the call.
// Saves one to three microseconds a launch.
#pragma once

#include "core/divide.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

namespace kith {

struct Grid {
  dim3 blocks = dim3(0);
  dim3 threads = dim3(0);  // of a block
  int64_t shared_bytes = 0;
  bool is_chained = false;

  // At least one thread for each of `count`.
  static Grid over(int64_t count, int64_t threads) { return of(divide_up(count, threads), threads); }
  static Grid of(int64_t blocks, int64_t threads) { return of(blocks, 1, threads); }
  // Blocks (x, y) with x < across and y < down.
  static Grid of(int64_t across, int64_t down, int64_t threads) {
    return {dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)), dim3(static_cast<unsigned>(threads))};
  }

  Grid with_shared(int64_t bytes) const {
    Grid grid = *this;
    grid.shared_bytes = bytes;
    return grid;
  }
  Grid chained() const {
    Grid grid = *this;
    grid.is_chained = true;
    return grid;
  }
};

// Launches chained kernels as plain ones if the device, or the code for it, does not support chaining.
void launch_kernel(const void* kernel, void** arguments, const Grid& grid, cudaStream_t stream);

template <typename... Parameters>
void launch(void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream,
            std::type_identity_t<Parameters>... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  launch_kernel(reinterpret_cast<const void*>(kernel), pointers, grid, stream);
}

// Enqueues setting every byte to `byte`.
void fill_bytes(void* memory, int byte, int64_t bytes, cudaStream_t stream);

}  // namespace kith
