#include "call.hpp"

#include "module.hpp"
#include "plain_array.hpp"
#include "shared_resources.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <string>

namespace kith::python {
namespace {

CallOptions make_options(const std::string& device, int64_t threads, std::optional<int64_t> memory_limit,
                         std::vector<int64_t> device_memory_limits, nb::object progress, uintptr_t stream) {
  if (threads < 0 || threads > std::numeric_limits<int>::max()) {
    throw InvalidArgument(fmt::format("threads = {}; give 0 (all) or the number of threads", threads));
  }
  return {parse_devices(device),           static_cast<int>(threads), memory_limit,
          std::move(device_memory_limits), std::move(progress),       stream};
}

}  // namespace

namespace {

// Without a GPU "auto" is the CPU: a search need not estimate its work to choose, nor log the choice.
std::vector<DeviceParts> plain_devices(std::string_view name) {
  static const bool has_gpu = !cuda_devices().empty();
  if (name == "auto" && !has_gpu) return {{Device::cpu()}};
  return parse_devices(name);
}

}  // namespace

std::optional<PlainSettings> plain_settings(nb::handle device, nb::handle threads) {
  const std::optional<std::string_view> name = plain_text(device);
  const std::optional<int64_t> count = plain_number(threads);
  if (!name || !count || *count < 0 || *count > std::numeric_limits<int>::max()) return std::nullopt;
  return PlainSettings{plain_devices(*name), static_cast<int>(*count)};
}

Call::Call(const CallOptions& options) : progress_(options.progress) {
  const auto stop_asked = [this] { return interrupted(); };
  auto* const stream = reinterpret_cast<void*>(options.stream);
  ProgressSink sink;
  if (!progress_.is_none()) sink = [this](const Progress& progress) { report(progress); };

  const LogSink log = [this](LogLevel level, std::string_view text) {
    if (level != LogLevel::warning && level != LogLevel::precision) return;
    const std::lock_guard lock(warnings_mutex_);
    warnings_.emplace_back(level, text);
  };

  if (options.memory_limit || !options.device_memory_limits.empty()) {
    // A limit is this call's own, and so are the threads that share it.
    ResourceOptions limited;
    limited.devices = options.devices;
    limited.threads = options.threads;
    limited.host_memory_limit = options.memory_limit.value_or(kNoLimit);
    if (options.device_memory_limits.size() == 1) {
      limited.device_memory_limit = options.device_memory_limits.front();
    } else {
      limited.device_memory_limits = options.device_memory_limits;
    }
    limited.stream = stream;
    limited.log = log;
    limited.progress = std::move(sink);
    limited.cancel = cancel_;
    limited.interrupted = stop_asked;
    resources_.emplace(std::move(limited));
    return;
  }
  Resources shared = shared_resources(options.threads, options.devices).with_log(log).with_cancel(cancel_, stop_asked);
  if (stream != nullptr) shared = shared.with_stream(stream);
  resources_.emplace(sink ? shared.with_progress(std::move(sink)) : std::move(shared));
}

bool Call::interrupted() {
  // Python runs its handlers by itself right after a short call, which need not wait for the GIL once more.
  constexpr std::chrono::milliseconds kShort{5};
  if (std::chrono::steady_clock::now() - begun_ < kShort) return false;
  WithGil gil;
  if (error_) return true;
  if (PyErr_CheckSignals() == 0) return false;
  error_.emplace();
  return true;
}

void Call::report(const Progress& progress) {
  WithGil gil;
  if (error_) return;
  try {
    progress_(nb::str(progress.stage.data(), progress.stage.size()), progress.done, progress.total);
  } catch (nb::python_error& error) {
    error_.emplace(std::move(error));
    cancel_.request();
  }
}

void Call::raise_kept_error() {
  if (!error_) return;
  nb::python_error error = std::move(*error_);
  error_.reset();
  throw error;
}

void Call::show_warnings() {
  if (warnings_.empty()) return;
  const int caller = nb::cast<int>(nb::module_::import_("kith._caller").attr("levels_to_the_caller")());
  for (const auto& [level, text] : warnings_) {
    const nb::object category = level == LogLevel::precision
                                    ? nb::object(nb::module_::import_("kith._errors").attr("PrecisionWarning"))
                                    : nb::borrow(PyExc_RuntimeWarning);
    if (PyErr_WarnEx(category.ptr(), text.c_str(), caller) != 0) throw nb::python_error();
  }
  warnings_.clear();
}

void bind_call(nb::module_& module) {
  nb::class_<CallOptions>(module, "CallOptions", "What a call may use, and whom it tells how far it is.")
      .def(nb::new_(&make_options), nb::arg("device") = "auto", nb::arg("threads") = 0,
           nb::arg("memory_limit") = nb::none(), nb::arg("device_memory_limits") = nb::list(),
           nb::arg("progress") = nb::none(), nb::arg("stream") = 0)
      .def_ro("stream", &CallOptions::stream, "The cudaStream_t on which GPU work is enqueued; 0: Kith's own.");
}

}  // namespace kith::python
