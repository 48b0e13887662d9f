#include "info_command.hpp"

#include <kith/byte_size.hpp>
#include <kith/device.hpp>
#include <kith/error.hpp>
#include <kith/faiss_file.hpp>
#include <kith/file_info.hpp>
#include <kith/version.hpp>

#include "exit_codes.hpp"
#include "index_files.hpp"
#include "other_input.hpp"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

namespace kith::cli {
namespace {

bool is_known_extension(const std::string& path) {
  try {
    static_cast<void>(content_by_extension(path));
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

// Describes an index of Kith's or FAISS's like `kith index inspect`, and other files by their kind.
void describe_other_file(const std::string& path, Report& report, JsonObject& json) {
  std::error_code failed;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, failed));
  if (failed) throw IoError(fmt::format("cannot open '{}': {}", path, failed.message()), path, failed.value());
  json.number("bytes", bytes);
  if (is_kith_file(path) || is_faiss_file(path)) {
    const IndexInfo info = open_index(path, Resources(), {.mmap = is_kith_file(path)}).info();
    report.text += fmt::format("{}: index, {}\n{}", path, format_bytes(bytes), index_text(info, false));
    json.text("format", is_kith_file(path) ? "kith" : "faiss").text("content", "index").object("index", index_json(info));
    return;
  }
  const FileKind kind = file_kind(path);
  if (kind.name.empty()) {
    static_cast<void>(file_info(path));  // which refuses it
  }
  report.text += fmt::format("{}: {}, {}; {}\n", path, kind.name, format_bytes(bytes), kind.hint);
  json.text("content", kind.name);
}

// Describes a folder: a collection, a k-NN graph, or the files in it.
void describe_folder(const std::string& path, Report& report, JsonObject& json) {
  const std::filesystem::path folder(path);
  std::error_code ignored;
  const auto holds = [&](const char* name) { return std::filesystem::is_regular_file(folder / name, ignored); };
  if (holds("collection.sqlite")) {
    report.text += fmt::format("{}: a collection; kith collection info {} tells of it\n", path, path);
    json.text("content", "collection");
  } else if (holds("ids.npy") && holds("distances.npy")) {
    report.text += fmt::format("{}: a k-NN graph; kith graph info --graph {} tells of it\n", path, path);
    json.text("content", "graph");
  } else {
    throw IoError(
        fmt::format("'{}' is a directory, of no collection and no k-NN graph; name files in it, as in {}/*", path, path),
        path, EISDIR);
  }
}

void describe_file(const std::string& path, Report& report, JsonObject& json) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return describe_folder(path, report, json);
  if (!is_known_extension(path)) return describe_other_file(path, report, json);
  if (path.ends_with(".npy") && is_other_input(path)) {
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
    report.text += fmt::format("{}: {}, {}; kith convert makes .fbin of it, which all commands read\n", path,
                               describe_other_input(path), format_bytes(bytes));
    json.text("format", "npy").text("content", "vectors").number("bytes", bytes);
    return;
  }
  const FileInfo info = file_info(path);
  const std::string_view content = info.content == FileContent::ids ? "ids" : "vectors";
  report.text += fmt::format("{}: {} ({}), {} x {} {}, {}\n", path, info.format, content, info.rows, info.cols,
                             info.dtype, format_bytes(info.file_bytes));
  json.text("format", info.format).text("content", content).text("dtype", info.dtype);
  json.number("rows", info.rows).number("cols", info.cols).number("bytes", info.file_bytes);
}

JsonObject describe_error(const std::exception_ptr& error) {
  const Failure failure = describe(error);
  JsonObject json;
  json.text("type", failure.type).text("message", failure.message);
  return json;
}

// Reports all files even if one cannot be read.
Report describe_files(const std::vector<std::string>& files) {
  Report report;
  std::vector<JsonObject> list;
  for (const std::string& path : files) {
    JsonObject& json = list.emplace_back();
    json.text("path", path);
    try {
      describe_file(path, report, json);
    } catch (...) {
      report.failures.push_back(std::current_exception());
      json.object("error", describe_error(report.failures.back()));
    }
  }
  JsonObject result;
  result.list("files", std::move(list));
  report.json.text("command", "info").object("result", std::move(result));
  if (!report.failures.empty()) report.json.object("error", describe_error(report.failures.front()));
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
      version(), cpu.name, cpu.threads, cpu.instruction_set, format_bytes(cpu.memory_total),
      format_bytes(cpu.memory_free));
  if (!no_cuda.empty()) report.text += fmt::format("CUDA      {}\n", no_cuda);

  JsonObject cpu_json;
  cpu_json.text("name", cpu.name).number("threads", cpu.threads).text("instruction_set", cpu.instruction_set);
  cpu_json.number("memory_bytes", cpu.memory_total).number("memory_free_bytes", cpu.memory_free);
  std::vector<JsonObject> gpu_list;
  for (const DeviceInfo& gpu : gpus) {
    report.text += fmt::format("{:<9} {}, compute capability {}, {} multiprocessors, {}, {} free\n",
                               name_of(gpu.device), gpu.name, compute_capability(gpu), gpu.multiprocessors,
                               format_bytes(gpu.memory_total), format_bytes(gpu.memory_free));
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

void offer_info(Commands& commands) {
  const auto options = std::make_shared<InfoOptions>();
  OfferedCommand command = commands.offer("info", "Show this program and machine, or what files hold",
                                          [options](const RunOptions&) { return run_info(*options); });
  command.files("files", options->files, "Files of vectors or ids, or indexes");
  command.output();
}

}  // namespace kith::cli
