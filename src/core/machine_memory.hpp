// How much memory the machine can still give, so that a call which wants more says so: Linux promises memory that it
// does not have, and ends the process that uses it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

// Bytes that the machine has left, caches that it can drop and swap included, within the limits of the control groups
// that the process is in; INT64_MAX where the system does not say. `root` is put before the paths that are read.
int64_t free_host_memory(const std::string& root = "");

// From so many bytes on it is worth asking.
inline constexpr int64_t kAskMachineFrom = int64_t{256} << 20;

// Why memory was refused, for the end of a sentence: the machine has less, or a limit of the process is in the way.
std::string refused_memory(int64_t bytes, int64_t free);

// Throws OutOfMemory where `bytes` more cannot be had. `held` is what the caller's limit counts, these bytes included:
// some of it may not have been touched yet, and is not missing from what is free.
void check_machine_has(int64_t bytes, int64_t held, std::string_view purpose);

// The text of a file by which the system tells of itself (/proc, /sys).
//
// Read by system calls: streams parse numbers through facets of a locale, and where a process has two copies of the C++
// library, one of them linked into a module, those of the other copy may answer.

// Empty where it cannot be read.
std::string system_text(const std::string& path);

}  // namespace kith
