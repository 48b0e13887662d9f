// Which instruction set the CPU kernels run with; they are compiled for several and chosen at run time.
//
// A target is one of Highway's, which most kernels are written for, or such a target with extensions that a few kernels
// use through intrinsics of their own. The lowest of x86-64 is SSE4; built with KITH_X86_BASELINE it is SSE2, which every
// such processor has, or EMU128, plain C++, where Highway is too old to know SSE2.
//
// The extensions:
//
//   DOTPROD   NEON with dot products of bytes
//   MMLA      DOTPROD with matrix products of bytes and of bf16
//   VNNI      AVX3 with dot products of bytes, and counts of bits where the processor has them
//   AMX       VNNI with tiles: matrix products of bytes and of bf16
#pragma once

#include "core/cpu_extensions.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kith {

// The extensions of the target in use.
CpuExtensions cpu_extensions();

// "AMX", "AVX3", "AVX2", "NEON", ...
std::string cpu_target_name();

// The sets that this build holds and this machine has, best first.
std::vector<std::string> cpu_targets();

// All sets that this build holds, best first, on whatever machine.
std::vector<std::string> built_cpu_targets();

// Makes every kernel of this process use the named instruction set; "" restores the automatic choice. For tests and
// benchmarks, while no other thread searches.
void force_cpu_target(std::string_view name);

// Throws Unsupported if `usable`, from cpu_targets(), is empty: the processor is older than every compiled target.
void require_cpu_target(const std::vector<std::string>& usable);

// Checks the processor, as require_cpu_target() does, before any kernel runs. The first call also reads a target's name
// from the environment variable KITH_CPU_TARGET, for users who must avoid an instruction set or compare several. Throws
// InvalidArgument for an unknown name.
void apply_cpu_target_from_environment();

}  // namespace kith
