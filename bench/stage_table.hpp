// The stages of a search of lists in the manner of the paper's Table 1: each one's share of the time, and how much of an
// H200's peak it uses of matrix arithmetic, of device memory and of shared memory. What the work is follows from the
// shapes; what limits a stage is what it uses most of, and latency where that is below a third.
#pragma once

#include "floor.hpp"
#include "table.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

struct StageWork {
  const char* name;
  double milliseconds;
  double flops;         // of matrix products
  double bytes;         // of device memory
  double shared_bytes;  // that matrix units and lookups read
};

inline constexpr double kSharedBytesASecond = 132 * 128 * 1.755e9;

inline void print_stages(const Table& table, const std::vector<StageWork>& stages) {
  double total = 0;
  for (const StageWork& stage : stages) total += stage.milliseconds;
  table.line("  % of time  stage    products %   memory %   shared %   limit");
  for (const StageWork& stage : stages) {
    const double seconds = stage.milliseconds * 1e-3;
    const double flops = 100 * stage.flops / seconds / kHalfFlops;
    const double bytes = 100 * stage.bytes / seconds / kReadBytes;
    const double shared = 100 * stage.shared_bytes / seconds / kSharedBytesASecond;
    const double most = std::max({flops, bytes, shared});
    const char* const limit = most < 33        ? "latency"
                              : most == flops  ? "products"
                              : most == shared ? "shared memory"
                                               : "memory";
    char text[160];
    std::snprintf(text, sizeof text, "  %9.1f  %-8s %10.1f %10.1f %10.1f   %s", 100 * stage.milliseconds / total,
                  stage.name, flops, bytes, shared, limit);
    table.line(text);
  }
}
