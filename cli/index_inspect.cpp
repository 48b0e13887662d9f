// kith index inspect and convert: the contents of an index file, and conversion to another format.
#include <kith/byte_size.hpp>
#include <kith/file_info.hpp>

#include "index_commands.hpp"
#include "index_files.hpp"
#include "output_paths.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace kith::cli {
namespace {

int64_t bytes_of_file(const std::string& path) { return static_cast<int64_t>(std::filesystem::file_size(path)); }

}  // namespace

Report run_index_inspect(const IndexInspectOptions& options, const RunOptions& run) {
  IndexInfo info;
  with_resources(run, [&](const Resources& resources) { info = open_index(options.index, resources).info(); });
  const int64_t bytes = bytes_of_file(options.index);
  Report report;
  report.text = fmt::format("{}, {}\n{}", options.index, format_bytes(bytes), index_text(info));
  JsonObject result;
  result.text("path", options.index).number("file_bytes", bytes).object("index", index_json(info));
  report.json.text("command", "index inspect").object("result", std::move(result));
  return report;
}

Report run_index_convert(const IndexConvertOptions& options, const RunOptions& run) {
  const Stopwatch total;
  check_outputs({{"OUT", options.output}}, {{"IN", options.input}});
  check_index_name(options.output);
  IndexInfo info;
  with_resources(run, [&](const Resources& resources) {
    const Index index = open_index(options.input, resources);
    info = index.info();
    write_index(index, options.output, resources);
  });
  const double seconds = total.seconds();
  Report report;
  report.text = fmt::format("wrote {}: {}, {} vectors of {} values, {} in {:.3f} s\n", options.output, info.factory,
                            info.size, info.dimension, format_bytes(bytes_of_file(options.output)), seconds);
  JsonObject result;
  result.text("input", options.input).text("output", options.output).object("index", index_json(info));
  JsonObject timings;
  timings.real("total_seconds", seconds);
  report.json.text("command", "index convert").object("result", std::move(result));
  report.json.object("timings", std::move(timings));
  return report;
}

}  // namespace kith::cli
