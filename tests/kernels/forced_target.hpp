// Runs the kernels with one instruction set for as long as it lives.
#pragma once

#include "core/cpu_target.hpp"

#include <string>

namespace kith {

class ForcedTarget {
 public:
  explicit ForcedTarget(const std::string& name) { force_cpu_target(name); }
  ~ForcedTarget() { force_cpu_target(""); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
};

}  // namespace kith
