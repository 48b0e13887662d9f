#include "core/cpu_target.hpp"

#include "core/cpu_detect.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace kith {
namespace {

// A Highway target is a bit, the better the lower. What the build lacks would never be dispatched to.
int64_t usable_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

// Kernels that use extensions expect the others to have AVX-512 too, whose panels are as large.
CpuExtensions usable_extensions() {
#if HWY_ARCH_X86
  constexpr bool kHasAvx512 = (HWY_TARGETS & (2 * HWY_AVX3 - 1)) != 0;  // AVX3 or better
  if (!kHasAvx512) return {};
#endif
  return detect_cpu_extensions();
}

struct Target {
  std::string name;
  int64_t highway = 0;
  CpuExtensions extensions;
};

// Best first.
std::vector<Target> usable() {
  std::vector<Target> targets;
  const CpuExtensions machine = usable_extensions();
  for (int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) {
    const int64_t highway = rest & -rest;
    if (targets.empty()) {  // extensions belong to the best
      if (machine.amx) targets.push_back({"AMX", highway, machine});
      if (machine.vnni) targets.push_back({"VNNI", highway, {machine.dotprod, true, false, machine.vpopcnt}});
      if (machine.mmla) targets.push_back({"MMLA", highway, machine});
      if (machine.dotprod) targets.push_back({"DOTPROD", highway, {true, false, false}});
    }
    targets.push_back({hwy::TargetName(highway), highway, {}});
  }
  return targets;
}

// The extensions that force_cpu_target() left, one bit each.
std::atomic<unsigned> allowed_extensions{~0u};

}  // namespace

CpuExtensions cpu_extensions() {
  const CpuExtensions machine = usable_extensions();
  const unsigned allowed = allowed_extensions.load(std::memory_order_relaxed);
  const bool vnni = machine.vnni && (allowed & 2u);
  return {machine.dotprod && (allowed & 1u), vnni,
          machine.amx && (allowed & 4u),     vnni && machine.vbmi,
          vnni && machine.vpopcnt,           machine.mmla && (allowed & 8u)};
}

std::string cpu_target_name() {
  const CpuExtensions extensions = cpu_extensions();
  if (extensions.amx) return "AMX";
  if (extensions.vnni) return "VNNI";
  if (extensions.mmla) return "MMLA";
  if (extensions.dotprod) return "DOTPROD";
  const int64_t targets = usable_targets();
  return hwy::TargetName(targets & -targets);
}

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names;
  for (const Target& target : usable()) names.push_back(target.name);
  return names;
}

std::vector<std::string> built_cpu_targets() {
#if HWY_ARCH_X86
  std::vector<std::string> names = {"AMX", "VNNI"};
#elif HWY_ARCH_ARM
  std::vector<std::string> names = {"MMLA", "DOTPROD"};
#else
  std::vector<std::string> names;
#endif
  for (int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1) names.emplace_back(hwy::TargetName(rest & -rest));
  return names;
}

void force_cpu_target(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);  // 0: detect again
  allowed_extensions = ~0u;
  if (!name.empty()) {
    const std::vector<Target> targets = usable();
    const auto chosen = std::find_if(targets.begin(), targets.end(), [&](const Target& t) { return t.name == name; });
    if (chosen == targets.end()) {
      throw InvalidArgument(
          fmt::format("this machine or build has no CPU target '{}'; it has {}", name, fmt::join(cpu_targets(), ", ")));
    }
    hwy::SetSupportedTargetsForTest(chosen->highway);
    const CpuExtensions& extensions = chosen->extensions;
    allowed_extensions = (extensions.dotprod ? 1u : 0u) | (extensions.vnni ? 2u : 0u) | (extensions.amx ? 4u : 0u) |
                         (extensions.mmla ? 8u : 0u);
  }
  hwy::GetChosenTarget().DeInit();
}

void require_cpu_target(const std::vector<std::string>& usable) {
  if (!usable.empty()) return;
#if HWY_ARCH_X86
  throw Unsupported("this processor is too old: Kith needs SSE4.2, AES and PCLMULQDQ (x86-64 processors since 2011)");
#else
  throw Unsupported("this processor has none of the instruction sets that this build of Kith holds");
#endif
}

void apply_cpu_target_from_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    require_cpu_target(cpu_targets());
    const char* const name = std::getenv("KITH_CPU_TARGET");
    if (name != nullptr && *name != '\0') force_cpu_target(name);
  });
}

}  // namespace kith
