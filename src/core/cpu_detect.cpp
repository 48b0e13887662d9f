#include "core/cpu_detect.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cstdint>

namespace kith {
namespace {

#if defined(__x86_64__)

bool has_bit(uint32_t word, int bit) { return (word >> bit & 1u) != 0; }

// Which registers the system saves for a process (XCR0); what it does not save must not be used.
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

}  // namespace

CpuExtensions detect_cpu_extensions() {
  static const CpuExtensions found = detect();
  return found;
}

}  // namespace kith
