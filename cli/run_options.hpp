// Options that commands share, and the Resources made from them.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kith {
class Communicator;
}

namespace kith::cli {

struct RunOptions {
  std::vector<DeviceParts> devices = {{Device::automatic()}};
  int threads = 0;  // 0: one per hardware thread
  std::optional<int64_t> memory_limit;
  std::vector<int64_t> device_memory_limits;  // none, one for all devices, or one for each
  bool json = false;
  bool quiet = false;
  Communicator* ranks = nullptr;  // the ranks of kith-mpi; null: it runs alone

  int rank_on_host = 0;  // among so many of them on this machine, which share its cores and GPUs
  int ranks_on_host = 1;

  bool first_rank() const;         // which writes files and prints
  std::string ranks_text() const;  // "4 ranks, ", or nothing
};

// Calls `work` with Resources that enforce the limits, show progress and stop at Ctrl-C. Measures here how much of the
// memory limit is left for the library, so open files and make tables first. Adds a sufficient --memory-limit to an
// OutOfMemory. Returns what the library logged, such as the device it chose for `auto`; without a GPU, `auto` is the
// CPU.
std::vector<std::string> with_resources(const RunOptions& options, const std::function<void(const Resources&)>& work);

}  // namespace kith::cli
