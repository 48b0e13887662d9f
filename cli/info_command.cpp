#include "info_command.hpp"

#include <kith/device.hpp>
#include <kith/vector_file.hpp>
#include <kith/version.hpp>

#include "byte_size.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace kith::cli {
namespace {

struct FileFacts {
  std::string format;  // the ending without its point
  std::string content;
  std::string dtype;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t bytes = 0;
};

// IdFile gives int64 whatever is stored; an .npy says in its header, which opening has checked.
std::string stored_id_type(const std::string& path) {
  if (path.ends_with(".ibin")) return "i32";
  std::string header(128, '\0');
  std::ifstream(path, std::ios::binary).read(header.data(), static_cast<std::streamsize>(header.size()));
  return header.find("<i4") != std::string::npos ? "i32" : "i64";
}

FileFacts facts_of(const std::string& path) {
  FileFacts facts;
  if (content_of(path) == FileContent::ids) {
    const IdFile file(path);
    facts = {"", "ids", stored_id_type(path), file.rows(), file.cols(), 0};
  } else {
    const VectorFile file(path);
    facts = {"", "vectors", std::string(name_of(file.dtype())), file.rows(), file.cols(), 0};
  }
  facts.format = path.substr(path.rfind('.') + 1);
  facts.bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  return facts;
}

Report describe_files(const std::vector<std::string>& files) {
  Report report;
  std::vector<JsonObject> list;
  for (const std::string& path : files) {
    const FileFacts facts = facts_of(path);
    report.text += fmt::format("{}: {} ({}), {} x {} {}, {}\n", path, facts.format, facts.content, facts.rows,
                               facts.cols, facts.dtype, format_byte_size(facts.bytes));
    JsonObject& json = list.emplace_back();
    json.text("path", path).text("format", facts.format).text("content", facts.content).text("dtype", facts.dtype);
    json.number("rows", facts.rows).number("cols", facts.cols).number("bytes", facts.bytes);
  }
  JsonObject result;
  result.list("files", std::move(list));
  report.json.text("command", "info").object("result", std::move(result));
  return report;
}

std::string compute_capability(const DeviceInfo& device) {
  return fmt::format("{}.{}", device.compute_capability / 10, device.compute_capability % 10);
}

Report describe_machine() {
  const DeviceInfo cpu = cpu_info();
  const std::vector<DeviceInfo> gpus = cuda_devices();
  const std::string no_cuda = !built_with_cuda() ? "none: this build of Kith has no CUDA backend"
                              : gpus.empty()     ? "none: no usable CUDA device was found"
                                                 : "";
  Report report;
  report.text = fmt::format(
      "kith {}\n"
      "CPU       {}, {} threads\n"
      "kernels   {}\n"
      "memory    {}, {} free\n",
      version(), cpu.name, cpu.threads, cpu.instruction_set, format_byte_size(cpu.memory_total),
      format_byte_size(cpu.memory_free));
  if (!no_cuda.empty()) report.text += fmt::format("CUDA      {}\n", no_cuda);

  JsonObject cpu_json;
  cpu_json.text("name", cpu.name).number("threads", cpu.threads).text("instruction_set", cpu.instruction_set);
  cpu_json.number("memory_bytes", cpu.memory_total).number("memory_free_bytes", cpu.memory_free);
  std::vector<JsonObject> gpu_list;
  for (const DeviceInfo& gpu : gpus) {
    report.text += fmt::format("{:<9} {}, compute capability {}, {} multiprocessors, {}, {} free\n",
                               name_of(gpu.device), gpu.name, compute_capability(gpu), gpu.multiprocessors,
                               format_byte_size(gpu.memory_total), format_byte_size(gpu.memory_free));
    JsonObject& json = gpu_list.emplace_back();
    json.text("device", name_of(gpu.device)).text("name", gpu.name).text("compute_capability", compute_capability(gpu));
    json.number("multiprocessors", gpu.multiprocessors);
    json.number("memory_bytes", gpu.memory_total).number("memory_free_bytes", gpu.memory_free);
  }
  JsonObject cuda;
  cuda.flag("built", built_with_cuda()).list("devices", std::move(gpu_list));
  if (!no_cuda.empty()) cuda.text("why_none", no_cuda.substr(no_cuda.find(": ") + 2));
  JsonObject result;
  result.text("version", version()).object("cpu", std::move(cpu_json)).object("cuda", std::move(cuda));
  report.json.text("command", "info").object("result", std::move(result));
  return report;
}

}  // namespace

Report run_info(const InfoOptions& options) {
  return options.files.empty() ? describe_machine() : describe_files(options.files);
}

}  // namespace kith::cli
