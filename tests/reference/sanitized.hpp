// What tests do less of under a sanitizer, which makes the library's inner loops some thirty times as slow. Every path is
// taken there too: by fewer rows, or by one case of several; the build without a sanitizer tries them all.
#pragma once

#include <cstdint>

namespace kith::reference {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr int64_t fewer_if_sanitized(int64_t plain, int64_t sanitized) { return kSanitized ? sanitized : plain; }

// Whether a case is left to the plain build: under a sanitizer one case in n is tried, the others are not.
constexpr bool left_to_plain(int64_t number, int64_t n) { return kSanitized && number % n != 0; }

}  // namespace kith::reference
