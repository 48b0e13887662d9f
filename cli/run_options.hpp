// How a command runs, whatever it does: the options that commands share, and the Resources made of them.
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
  Communicator* ranks = nullptr;  // those that the command is shared with (kith-mpi); null: it runs alone

  int rank_on_host = 0;  // among so many of them on this machine, which share its cores and GPUs
  int ranks_on_host = 1;

  bool first_rank() const;         // which writes files and prints
  std::string ranks_text() const;  // "4 ranks, ", or nothing
};

// Calls `work` with Resources that keep the limits, show progress and stop at Ctrl-C. The library's share of the memory
// limit is measured here: open files and make tables first. An OutOfMemory is completed with what --memory-limit would
// do. Returns what the library logged, such as the device it chose for `auto`; where there is no GPU, `auto` is the
// CPU.
std::vector<std::string> with_resources(const RunOptions& options, const std::function<void(const Resources&)>& work);

}  // namespace kith::cli
