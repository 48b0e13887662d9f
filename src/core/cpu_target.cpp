#include "core/cpu_target.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>
#include <hwy/highway.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace kith {
namespace {

#if defined(__x86_64__)

bool has_bit(uint32_t word, int bit) { return (word >> bit & 1u) != 0; }

// Registers that the system saves for a process (XCR0). Registers that it does not save must not be used.
uint64_t saved_registers() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux makes a process ask before it uses tiles, which take 8 KiB of every thread's saved state.
bool ask_for_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuExtensions detect() {
  CpuExtensions found;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !has_bit(c, 27)) return found;  // OSXSAVE
  const uint64_t saved = saved_registers();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  constexpr uint64_t kAvx512State = 0xE6;
  constexpr uint64_t kTileState = 0x60000;
  const bool avx512 = (saved & kAvx512State) == kAvx512State && has_bit(b, 16) && has_bit(b, 17) && has_bit(b, 30) &&
                      has_bit(b, 31);  // F, DQ, BW, VL
  found.vnni = avx512 && has_bit(c, 11);
  found.vbmi = found.vnni && has_bit(c, 1);
  found.vpopcnt = found.vnni && has_bit(c, 14);
  const bool tiles = has_bit(d, 24) && has_bit(d, 25) && has_bit(d, 22);  // AMX-TILE, AMX-INT8, AMX-BF16
  found.amx = found.vnni && tiles && (saved & kTileState) == kTileState && ask_for_tiles();
  return found;
}

#elif defined(__aarch64__) && defined(__linux__)

CpuExtensions detect() {
  constexpr unsigned long kDotProduct = 1ul << 20;                  // HWCAP_ASIMDDP
  constexpr unsigned long kMatrixProducts = 1ul << 13 | 1ul << 14;  // HWCAP2_I8MM, HWCAP2_BF16
  CpuExtensions found;
  found.dotprod = (getauxval(AT_HWCAP) & kDotProduct) != 0;
  found.mmla = found.dotprod && (getauxval(AT_HWCAP2) & kMatrixProducts) == kMatrixProducts;
  return found;
}

#else

CpuExtensions detect() { return {}; }

#endif

// The extensions of this machine beyond Highway's targets, whatever target was forced. Detected once; AMX counts only
// if the system permits the use of its registers.
CpuExtensions detect_cpu_extensions() {
  static const CpuExtensions found = detect();
  return found;
}

// A Highway target is one bit; better targets have lower bits. Targets that were not compiled are left out. The lowest
// one of x86-64, which every such processor runs, is added: a libhwy that was built with another fallback does not
// report it.
int64_t find_usable_targets() {
  const int64_t found = hwy::SupportedTargets() & HWY_TARGETS;
#if HWY_ARCH_X86 && HWY_STATIC_TARGET > HWY_SSE4
  return found | HWY_STATIC_TARGET;
#else
  return found;
#endif
}
// Detected once, before a target is forced, which hides the others from Highway.
int64_t usable_targets() {
  static const int64_t found = find_usable_targets();
  return found;
}

bool has_avx2([[maybe_unused]] int64_t highway) {
#if HWY_ARCH_X86
  return (highway & (2 * HWY_AVX2 - 1)) != 0;  // or better
#else
  return false;
#endif
}

// Kernels with extensions share panels with plain ones, so both must have AVX-512 and the same panel size.
CpuExtensions find_usable_extensions() {
  CpuExtensions found;
#if HWY_ARCH_X86
  constexpr bool kHasAvx512 = (HWY_TARGETS & (2 * HWY_AVX3 - 1)) != 0;  // AVX3 or better
  if (kHasAvx512) found = detect_cpu_extensions();
#else
  found = detect_cpu_extensions();
#endif
  found.avx2 = has_avx2(usable_targets());
  return found;
}
// Detected once, before a target is forced: Highway runs cpuid every time, which is slow in virtual machines.
CpuExtensions usable_extensions() {
  static const CpuExtensions found = find_usable_extensions();
  return found;
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
      if (machine.vnni) {
        CpuExtensions without_tiles = machine;
        without_tiles.amx = false;
        targets.push_back({"VNNI", highway, without_tiles});
      }
      if (machine.mmla) targets.push_back({"MMLA", highway, machine});
      if (machine.dotprod) targets.push_back({"DOTPROD", highway, {true, false, false}});
    }
    CpuExtensions of_highway;
    of_highway.avx2 = has_avx2(highway);
    targets.push_back({hwy::TargetName(highway), highway, of_highway});
  }
  return targets;
}

// The target in use.
struct InUse {
  CpuExtensions extensions;
  std::string name;
};

InUse best_of(const std::vector<Target>& targets) {  // nothing on a processor that is too old for this build
  return targets.empty() ? InUse() : InUse{targets.front().extensions, targets.front().name};
}

// The best target, until one is forced. Detected once: a search of one query asks for it many times.
InUse& in_use() {
  static InUse target = best_of(usable());
  return target;
}

}  // namespace

CpuExtensions cpu_extensions() { return in_use().extensions; }

std::string cpu_target_name() { return in_use().name; }

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
  const std::vector<Target> targets = usable();
  in_use() = best_of(targets);
  if (!name.empty()) {
    const auto chosen = std::find_if(targets.begin(), targets.end(), [&](const Target& t) { return t.name == name; });
    if (chosen == targets.end()) {
      throw InvalidArgument(
          fmt::format("this machine or build has no CPU target '{}'; it has {}", name, fmt::join(cpu_targets(), ", ")));
    }
    hwy::SetSupportedTargetsForTest(chosen->highway);
    in_use() = {chosen->extensions, chosen->name};
  }
  hwy::GetChosenTarget().DeInit();
}

void require_cpu_target(const std::vector<std::string>& usable) {
  if (!usable.empty()) return;
#if HWY_ARCH_X86
  throw Unsupported(
      "this processor is too old: this build of Kith needs SSE4.2, AES and PCLMULQDQ (x86-64 processors since 2011); one "
      "configured with KITH_X86_BASELINE=ON runs on every x86-64 processor");
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
