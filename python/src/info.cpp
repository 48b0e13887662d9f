// What this copy of Kith is and what it can use.
#include "module.hpp"

#include <kith/device.hpp>
#include <kith/metric.hpp>
#include <kith/version.hpp>

#include <nanobind/stl/string.h>

#include <string>

namespace kith::python {
namespace {

nb::str text(std::string_view value) { return nb::str(value.data(), value.size()); }

nb::dict describe_cuda(const DeviceInfo& device) {
  nb::dict entry;
  entry["device"] = text(name_of(device.device));
  entry["name"] = text(device.name);
  entry["memory"] = device.memory_total;
  entry["memory_free"] = device.memory_free;
  entry["multiprocessors"] = device.multiprocessors;
  entry["compute_capability"] = nb::make_tuple(device.compute_capability / 10, device.compute_capability % 10);
  return entry;
}

nb::dict info() {
  const DeviceInfo cpu = cpu_info();
  nb::list devices;
  for (const DeviceInfo& device : cuda_devices()) devices.append(describe_cuda(device));
  nb::dict result;
  result["version"] = text(version());
  result["cpu"] = text(cpu.name);
  result["instruction_set"] = text(cpu.instruction_set);
  result["threads"] = cpu.threads;
  result["memory"] = cpu.memory_total;
  result["memory_free"] = cpu.memory_free;
  result["built_with_cuda"] = built_with_cuda();
  result["cuda_devices"] = devices;
  return result;
}

}  // namespace

void bind_info(nb::module_& module) {
  module.def("info", &info, nb::sig("def info() -> dict[str, object]"));
  module.def("version", [] { return text(version()); });
  module.def(
      "metric_name", [](const std::string& name) { return text(name_of(parse_metric(name))); }, nb::arg("name"),
      "Kith's own name of a metric, given by that or by another library's.");
}

}  // namespace kith::python
