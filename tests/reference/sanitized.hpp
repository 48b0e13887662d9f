// What tests do less of under a sanitizer, which makes the library's inner loops some thirty times as slow. Every path
// is taken there too: by fewer rows, or by one case of several; the build without a sanitizer tries them all.
#pragma once

#include <cstdint>

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __tsan_init();
}

namespace kith::reference {

// Whether this program runs with a sanitizer. It is looked up at run time: the same objects of the tests are linked
// with a library that has one and with a library that has none.
inline bool is_sanitized() { return &__asan_init != nullptr || &__tsan_init != nullptr; }

inline int64_t fewer_if_sanitized(int64_t plain, int64_t sanitized) { return is_sanitized() ? sanitized : plain; }

// Whether a case is left to the plain build: under a sanitizer one case in n is tried, the others are not.
inline bool left_to_plain(int64_t number, int64_t n) { return is_sanitized() && number % n != 0; }

}  // namespace kith::reference
