// How much memory the machine has available, so that a call that needs more can say so: Linux overcommits, and kills a
// process that uses memory that is not there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

// Available bytes, with swap and caches that can be dropped, within the limits of the process's control groups;
// INT64_MAX if the system does not tell. `root` is put before the paths that are read.
int64_t free_host_memory(const std::string& root = "");

// Smaller allocations are not checked.
inline constexpr int64_t kAskMachineFrom = int64_t{256} << 20;

// Why an allocation failed, as the end of a sentence: the machine has less memory, or the process has a limit.
std::string refused_memory(int64_t bytes, int64_t free);

// Throws OutOfMemory if `bytes` more are not available. `held`: what the caller's limit counts, these bytes included.
// Parts of it may not have been touched yet, and still count as available.
void check_machine_has(int64_t bytes, int64_t held, std::string_view purpose);

// The text of a system file (/proc, /sys).
//
// Read by system calls: streams parse numbers through facets of a locale, and where a process has two copies of the C++
// library, one of them linked into a module, those of the other copy may answer.

// Empty where it cannot be read.
std::string system_text(const std::string& path);

}  // namespace kith
