// Runs the kernels with one instruction set for as long as it lives.
#pragma once

#include "core/cpu_target.hpp"
#include "reference/sanitized.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace kith {

class ForcedTarget {
 public:
  explicit ForcedTarget(const std::string& name) { force_cpu_target(name); }
  ~ForcedTarget() { force_cpu_target(""); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
};

// The instruction sets to try the next of many cases with: every one of this machine; under a sanitizer, which makes
// each ten times as slow, one of them in turn, so that all sets are tried, each with other cases.
inline std::vector<std::string> targets_for_next_case() {
  std::vector<std::string> targets = cpu_targets();
  if (!reference::is_sanitized()) return targets;
  static size_t turn = 0;
  return {targets[turn++ % targets.size()]};
}

}  // namespace kith
