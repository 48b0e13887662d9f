#include "capi/arguments.hpp"
#include "capi/status.hpp"

#include <kith/device.hpp>

#include <string>
#include <utility>

namespace kith::capi {
namespace {

ResourceOptions options_of(const kith_resource_options& given) {
  ResourceOptions options;
  if (given.device != nullptr) options.devices = parse_devices(given.device);
  options.threads = given.threads;
  if (given.host_memory_limit != 0) options.host_memory_limit = given.host_memory_limit;
  if (given.device_memory_limit != 0) options.device_memory_limit = given.device_memory_limit;
  options.stream = given.stream;
  void* const context = given.context;
  if (given.progress != nullptr) {
    options.progress = [call = given.progress, context](const Progress& progress) {
      call(std::string(progress.stage).c_str(), progress.done, progress.total, context);
    };
  }
  if (given.cancel != nullptr) options.interrupted = [call = given.cancel, context] { return call(context) != 0; };
  if (given.log != nullptr) {
    options.log = [call = given.log, context](LogLevel level, std::string_view text) {
      call(static_cast<int>(level), std::string(text).c_str(), context);
    };
  }
  return options;
}

}  // namespace

}  // namespace kith::capi

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_resources_new(const kith_resource_options* options, kith_resources** out) {
  return guarded([&] {
    kith_resources*& made = handle_place(out);
    made = new kith_resources{Resources(options_of(taken(options, "kith_resource_options")))};
  });
}

void kith_resources_free(kith_resources* resources) { delete resources; }

}  // extern "C"
