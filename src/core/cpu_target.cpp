#include "core/cpu_target.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>
#include <hwy/highway.h>

namespace kith {
namespace {

// A target is a bit, the better the lower. What the build lacks would never be dispatched to.
int64_t usable_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

}  // namespace

std::string cpu_target_name() {
  const int64_t targets = usable_targets();
  return hwy::TargetName(targets & -targets);
}

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names;
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) names.emplace_back(hwy::TargetName(rest & -rest));
  return names;
}

void force_cpu_target(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);  // 0: detect again
  if (!name.empty()) {
    int64_t chosen = 0;
    for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) {
      if (name == hwy::TargetName(rest & -rest)) chosen = rest & -rest;
    }
    if (chosen == 0) throw InvalidArgument(fmt::format("this machine or build has no CPU target '{}'", name));
    hwy::SetSupportedTargetsForTest(chosen);
  }
  hwy::GetChosenTarget().DeInit();
}

}  // namespace kith
