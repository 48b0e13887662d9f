// x86-64's intrinsics, for the files of its instruction families.
#pragma once

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // false ones, from g++'s own intrinsics
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
