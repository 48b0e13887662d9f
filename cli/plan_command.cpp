#include "plan_command.hpp"

#include <kith/byte_size.hpp>
#include <kith/device.hpp>
#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace kith::cli {
namespace {

PlanQuestion question_of(const PlanOptions& options, const RunOptions& run) {
  PlanQuestion question = options.question;
  if (!options.data.empty()) {
    if (options.rows > 0 || question.cols > 0) throw InvalidArgument("give --data, or --rows and --cols");
    const VectorFile file(options.data);
    question.rows = file.rows();
    question.cols = file.cols();
    question.dtype = file.dtype();
  } else {
    constexpr double kMostRows = 1e15;
    if (!(options.rows >= 1) || options.rows > kMostRows || question.cols < 1) {
      throw InvalidArgument("kith plan wants --data, or --rows and --cols");
    }
    question.rows = std::llround(options.rows);
  }
  if (run.memory_limit) question.host_memory_limit = *run.memory_limit;
  if (!run.device_memory_limits.empty()) question.device_memory_limit = run.device_memory_limits.front();
  const DeviceInfo here = cpu_info();
  question.threads = run.threads > 0 ? run.threads : here.threads;
  if (question.instruction_set.empty()) question.instruction_set = here.instruction_set;
  return question;
}

std::string bytes_text(int64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

JsonObject phase_json(const PlanPhase& phase) {
  JsonObject json;
  json.text("name", phase.name).number("read_bytes", phase.read_bytes).number("written_bytes", phase.written_bytes);
  json.number("blocks", phase.blocks).number("host_bytes", phase.host_bytes);
  json.number("device_bytes", phase.device_bytes).number("disk_bytes", phase.disk_bytes);
  json.real("seconds", phase.seconds).text("bound", phase.bound);
  return json;
}

}  // namespace

Report run_plan(const PlanOptions& options, const RunOptions& run) {
  const PlanQuestion question = question_of(options, run);
  const WorkPlan plan = plan_work(question);
  Report report;
  report.text = fmt::format("{} of {} x {} {}{}: {}, {}\n", question.factory.empty() ? "a graph" : "an index",
                            question.rows, question.cols, name_of(question.dtype),
                            question.factory.empty() ? fmt::format(", k = {}", question.k) : std::string(), plan.method,
                            plan.from_disk ? "from disk" : "in memory");
  report.text += fmt::format("{:<16}{:>12}{:>12}{:>8}{:>12}{:>12}{:>12}{:>12}  {}\n", "phase", "reads", "writes",
                             "blocks", "memory", "GPU", "disk", "seconds", "bound by");
  JsonObject result;
  result.text("method", plan.method).flag("from_disk", plan.from_disk).number("rows", question.rows);
  result.number("cols", question.cols).text("dtype", name_of(question.dtype)).number("result_bytes", plan.result_bytes);
  result.number("threads", question.threads).text("instruction_set", question.instruction_set);
  std::vector<JsonObject> phases;
  for (const PlanPhase& phase : plan.phases) {
    report.text += fmt::format("{:<16}{:>12}{:>12}{:>8}{:>12}{:>12}{:>12}{:>12.3g}  {}\n", phase.name,
                               bytes_text(phase.read_bytes), bytes_text(phase.written_bytes), phase.blocks,
                               bytes_text(phase.host_bytes), bytes_text(phase.device_bytes),
                               bytes_text(phase.disk_bytes), phase.seconds, phase.bound);
    phases.push_back(phase_json(phase));
  }
  report.text +=
      fmt::format("in all {:.3g} s, memory {}, disk {}, results {}\n", plan.seconds(), bytes_text(plan.host_bytes()),
                  bytes_text(plan.disk_bytes()), format_bytes(plan.result_bytes));
  for (const std::string& line : plan.advice) report.text += line + "\n";
  result.list("phases", std::move(phases)).real("seconds", plan.seconds()).number("host_bytes", plan.host_bytes());
  result.number("device_bytes", plan.device_bytes()).number("disk_bytes", plan.disk_bytes());
  result.texts("advice", plan.advice);
  report.json.text("command", "plan").object("result", std::move(result));
  return report;
}

void offer_plan(Commands& commands) {
  const auto options = std::make_shared<PlanOptions>();
  OfferedCommand command = commands.offer("plan", "Tell what a graph or an index will take: memory, disk, time",
                                          [options](const RunOptions& run) { return run_plan(*options, run); });
  PlanQuestion& question = options->question;
  command.file("--data,--base", options->data, "Vectors, whose number, columns and dtype count");
  command.real("--rows", options->rows, "Vectors, where there is no --data: 1e9, 250000");
  command.number("--cols", question.cols, "Their columns");
  command.word("--dtype", question.dtype, parse_dtype, "f32", "Their dtype: f32, f16, bf16, u8, i8");
  command.text("--factory", question.factory, "Plan an index (IVF4096,PQ32) instead of a k-NN graph", "NAME");
  command.number("-k", question.k, "Neighbours in the graph");
  command.metric(question.metric);
  command.real("--recall", question.recall, "Of the graph; 1: exact");
  command.real("--probes", question.probes, "Of the graph's cells, as a run has reported them; 0: of data like SIFT");
  command.flag("--ids-only", question.ids_only, "A graph without distances");
  command.flag("--int32-ids", question.int32_ids, "Its ids as int32");
  command.flag("--gpu", question.gpu, "Plan for an H200 instead of the CPU");
  command.text("--instruction-set", question.instruction_set, "Of the CPU, as kith info tells it; otherwise this machine's", "NAME");
  command.real("--disk-read", question.disk_read, "What the disk reads, bytes a second");
  command.real("--disk-write", question.disk_write, "What it writes, bytes a second");
  command.threads();
  command.memory_limit();
  command.device_memory_limit();
  command.output();
}

}  // namespace kith::cli
