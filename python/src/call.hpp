// One call from Python into the library: which resources it uses, and how Python's side reaches it while it runs.
//
// The work runs without the GIL. Now and then the library asks, on the calling thread, whether to stop: then Python's
// signal handlers run, so that Ctrl-C raises KeyboardInterrupt out of the call. An exception in a handler or in the
// progress callback is kept, stops the work, and leaves the call as it is. What the library warns of becomes a
// RuntimeWarning, or a PrecisionWarning of rounding, when the work is done.
#pragma once

#include "gil.hpp"

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith::python {

namespace nb = nanobind;

// The settings that a call has beside its arrays; none where one is no plain str or int. Of these there is neither a
// limit nor a sink.
struct PlainSettings {
  std::vector<DeviceParts> devices;
  int threads = 0;
};
std::optional<PlainSettings> plain_settings(nb::handle device, nb::handle threads);

struct CallOptions {
  std::vector<DeviceParts> devices;
  int threads = 0;
  std::optional<int64_t> memory_limit;
  std::vector<int64_t> device_memory_limits;  // none, one for all devices, or one for each
  nb::object progress;   // None, or called with (stage, done, total)
  uintptr_t stream = 0;  // a cudaStream_t of the caller's; 0: one of Kith's own
};

class Call {
 public:
  Call() : Call(CallOptions{{{Device::automatic()}}, 0, {}, {}, nb::none(), 0}) {}
  explicit Call(const CallOptions& options);
  explicit Call(const PlainSettings& settings) : Call({settings.devices, settings.threads, {}, {}, nb::none(), 0}) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Resources& resources() const { return *resources_; }

  // Between the steps of work that asks nobody itself, such as writing a file. Without the GIL.
  void check() const { resources_->check_cancelled(); }

  template <typename Work>
  void run(Work&& work) {
    try {
      WithoutGil released;
      std::forward<Work>(work)();
    } catch (...) {
      raise_kept_error();
      throw;
    }
    raise_kept_error();
    show_warnings();
  }

 private:
  bool interrupted();
  void report(const Progress& progress);
  void raise_kept_error();
  // What the library has warned of, as Python's warnings.
  void show_warnings();

  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  nb::object progress_;
  CancelToken cancel_;
  std::optional<Resources> resources_;
  std::optional<nb::python_error> error_;
  std::mutex warnings_mutex_;
  std::vector<std::pair<LogLevel, std::string>> warnings_;
};

}  // namespace kith::python
