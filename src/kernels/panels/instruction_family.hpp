// What the files of raw intrinsics share. Each is of one instruction family and named after it. They are compiled for
// their family whatever the build's flags, and called only where core/cpu_target.hpp says that the processor has it.
#pragma once

#if defined(__x86_64__)
#define KITH_X86 1
#define KITH_FOR(features) __attribute__((target(features)))
#elif defined(__aarch64__)
#define KITH_ARM 1
#endif
