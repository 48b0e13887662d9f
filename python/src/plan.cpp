// What a graph or an index will take.
#include "module.hpp"

#include <kith/work_plan.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

namespace kith::python {
namespace {

nb::dict dict_of(const PlanPhase& phase) {
  nb::dict told;
  told["name"] = phase.name;
  told["read_bytes"] = phase.read_bytes;
  told["written_bytes"] = phase.written_bytes;
  told["blocks"] = phase.blocks;
  told["host_bytes"] = phase.host_bytes;
  told["device_bytes"] = phase.device_bytes;
  told["disk_bytes"] = phase.disk_bytes;
  told["seconds"] = phase.seconds;
  told["bound"] = phase.bound;
  return told;
}

nb::dict plan(int64_t rows, int64_t cols, const std::string& dtype, const std::string& factory, int64_t k,
              const std::string& metric, double recall, double probes, bool ids_only, bool int32_ids,
              std::optional<int64_t> memory_limit, std::optional<int64_t> device_memory_limit, bool gpu, int threads,
              const std::string& instruction_set, double disk_read, double disk_write) {
  const PlanQuestion question{.rows = rows,
                              .cols = cols,
                              .dtype = parse_dtype(dtype),
                              .factory = factory,
                              .k = k,
                              .metric = parse_metric(metric),
                              .recall = recall,
                              .probes = probes,
                              .ids_only = ids_only,
                              .int32_ids = int32_ids,
                              .host_memory_limit = memory_limit.value_or(kNoLimit),
                              .device_memory_limit = device_memory_limit.value_or(kNoLimit),
                              .gpu = gpu,
                              .threads = threads,
                              .instruction_set = instruction_set,
                              .disk_read = disk_read,
                              .disk_write = disk_write};
  const WorkPlan made = plan_work(question);
  nb::list phases;
  for (const PlanPhase& phase : made.phases) phases.append(dict_of(phase));
  nb::dict told;
  told["method"] = made.method;
  told["from_disk"] = made.from_disk;
  told["result_bytes"] = made.result_bytes;
  told["phases"] = phases;
  told["advice"] = made.advice;
  told["seconds"] = made.seconds();
  told["host_bytes"] = made.host_bytes();
  told["device_bytes"] = made.device_bytes();
  told["disk_bytes"] = made.disk_bytes();
  return told;
}

}  // namespace

void bind_plan(nb::module_& module) {
  module.def("plan", &plan, nb::arg("rows"), nb::arg("cols"), nb::arg("dtype"), nb::arg("factory"), nb::arg("k"),
             nb::arg("metric"), nb::arg("recall"), nb::arg("probes"), nb::arg("ids_only"), nb::arg("int32_ids"),
             nb::arg("memory_limit").none(), nb::arg("device_memory_limit").none(), nb::arg("gpu"), nb::arg("threads"),
             nb::arg("instruction_set"), nb::arg("disk_read"), nb::arg("disk_write"),
             nb::sig("def plan(rows: int, cols: int, dtype: str, factory: str, k: int, metric: str, recall: float, "
                     "probes: float, ids_only: bool, int32_ids: bool, memory_limit: int | None, "
                     "device_memory_limit: int | None, gpu: bool, threads: int, "
                     "instruction_set: str, disk_read: float, disk_write: float) -> "
                     "dict[str, typing.Any]"));
}

}  // namespace kith::python
