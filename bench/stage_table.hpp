// The stages of a search of lists in the manner of the paper's Table 1: each one's share of the time, and how much of
// an H200's peak it uses of matrix arithmetic, of device memory and of shared memory. What the work is follows from the
// shapes; what limits a stage is what it uses most of, and latency where that is below a third.
#pragma once

#include "driver/report.hpp"
#include "floor.hpp"

#include <algorithm>
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

// A row for each stage of `title`.
inline void add_stages(kith::bench::Report& report, const std::string& title, const std::vector<StageWork>& stages) {
  double total = 0;
  for (const StageWork& stage : stages) total += stage.milliseconds;
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
    report.row({.name = title + ", stage " + stage.name,
                .median_ms = stage.milliseconds,
                .clock = "cuda",
                .figures = {{"percent_of_time", 100 * stage.milliseconds / total},
                            {"products_percent", flops},
                            {"memory_percent", bytes},
                            {"shared_percent", shared}},
                .labels = {{"limit", limit}}});
  }
}
