// Which instruction set the CPU kernels run with; they are compiled for several and chosen at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kith {

// "AVX3", "AVX2", "NEON", ...
std::string cpu_target_name();

// The sets that this build holds and this machine has, best first.
std::vector<std::string> cpu_targets();

// Makes every kernel of this process run with the named set; "" gives the choice back. For tests and benchmarks, while
// no other thread searches.
void force_cpu_target(std::string_view name);

}  // namespace kith
