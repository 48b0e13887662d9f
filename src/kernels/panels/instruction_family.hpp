// Shared by the files of raw intrinsics, each of which is named after its instruction family. They are compiled for
// that family whatever the build's flags, and called only if core/cpu_target.hpp says that the processor has it.
#pragma once

#if defined(__x86_64__)
#define KITH_X86 1
#define KITH_FOR(features) __attribute__((target(features)))
#elif defined(__aarch64__)
#define KITH_ARM 1
#endif
