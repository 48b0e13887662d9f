// The floating-point mode that Kith computes in: round to nearest, subnormals kept. A program may have set another one
// for its threads (flushing subnormals is common); results must not depend on that. The destructor restores the
// caller's mode.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kith {

class DefaultFloatMode {
 public:
  DefaultFloatMode() : saved_(get()) {
    if (saved_ != kDefault) set(kDefault);
  }
  ~DefaultFloatMode() {
    if (saved_ != kDefault) set(saved_);
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
#if defined(__x86_64__)
  // The low six bits record exceptions that happened; they are no mode.
  static constexpr uint64_t kDefault = 0x1F80;
  static uint64_t get() { return _mm_getcsr() & ~0x3Fu; }
  static void set(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;
  static uint64_t get() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr uint64_t kDefault = 0;
  static uint64_t get() { return 0; }
  static void set(uint64_t) {}
#endif

  uint64_t saved_;
};

}  // namespace kith
