// What a GPU keeps of a model, for all versions of an index that share it: the centres, laid out for searches, and the
// code's values. For code that is compiled with and without CUDA.
#pragma once

#include <cstdint>

namespace kith {

class GpuModel {
 public:
  virtual ~GpuModel() = default;
  virtual int64_t bytes() const = 0;  // on the device
};

}  // namespace kith
