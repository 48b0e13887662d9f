// Rows pass through one piece of memory, whatever the file's size. Values keep their meaning: VectorFile::read converts
// them exactly or rounds to nearest, and refuses what the other dtype cannot hold.
#include "convert_command.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "core/host_array.hpp"
#include "output_paths.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

namespace kith::cli {
namespace {

struct Rows {
  int64_t first;
  int64_t count;
};

struct Converted {
  Rows rows{0, 0};
  int64_t cols = 0;
  std::string from;  // dtypes, or "ids"
  std::string to;
};

Rows checked_range(const ConvertOptions& options, int64_t rows) {
  const int64_t count = options.count == -1 ? std::max<int64_t>(rows - options.first, 0) : options.count;
  if (options.first < 0 || options.count < -1 || options.first > rows || count > rows - options.first) {
    throw InvalidArgument(fmt::format("--first {} --count {} is out of range: {} has {} rows", options.first, count,
                                      options.input, rows));
  }
  return {options.first, count};
}

void for_each_piece(Rows rows, int64_t piece, const Resources& resources,
                    const std::function<void(int64_t, int64_t)>& body) {
  for (int64_t done = 0; done < rows.count; done += piece) {
    resources.check_cancelled();
    resources.report({"convert", done, rows.count});
    body(rows.first + done, std::min(piece, rows.count - done));
  }
  resources.check_cancelled();
  resources.report({"convert", rows.count, rows.count});
}

Converted convert_vectors(const ConvertOptions& options, const RunOptions& run) {
  const VectorFile input(options.input);
  const Rows rows = checked_range(options, input.rows());
  const DType to = options.dtype.value_or(dtype_in(options.output, input.dtype()));
  const int64_t cols = input.cols();
  VectorFileWriter writer(options.output, to, rows.count, cols);
  with_resources(run, [&](const Resources& resources) {
    const ReadMemory memory = input.reserve_memory(resources);
    const int64_t piece = rows_per_piece(rows.count, cols * size_of(to), resources);
    MatrixBuffer converted(to, piece, cols, "a piece of the rows to convert", resources);
    for_each_piece(rows, piece, resources, [&](int64_t first, int64_t count) {
      const MutableMatrixView part = converted.mutable_view().slice(0, count);
      input.read(first, part);
      writer.append(part);
    });
    writer.commit();
  });
  return {rows, cols, std::string(name_of(input.dtype())), std::string(name_of(to))};
}

Converted convert_ids(const ConvertOptions& options, const RunOptions& run) {
  const IdFile input(options.input);
  const Rows rows = checked_range(options, input.rows());
  IdFileWriter writer(options.output, rows.count, input.cols());
  with_resources(run, [&](const Resources& resources) {
    const ReadMemory memory = input.reserve_memory(resources);
    const int64_t piece = rows_per_piece(rows.count, array_bytes<int64_t>(input.cols()), resources);
    const HostArray<int64_t> ids(piece * input.cols(), "a piece of the ids to convert", resources);
    for_each_piece(rows, piece, resources, [&](int64_t first, int64_t count) {
      input.read(first, count, ids.data());
      writer.append(ids.data(), count);
    });
    writer.commit();
  });
  return {rows, input.cols(), "ids", "ids"};
}

void check_contents(const ConvertOptions& options, FileContent content) {
  if (content == FileContent::ids && options.dtype) {
    throw InvalidArgument(
        fmt::format("--dtype {} is for vectors, and {} holds ids", name_of(*options.dtype), options.input));
  }
  // Without a file of that name yet, its ending may say what it would hold.
  const std::optional<FileContent> target = content_by_extension(options.output);
  if (!target || *target == content) return;
  throw InvalidArgument(content == FileContent::ids
                            ? fmt::format("{} holds ids and {} would hold vectors; write ids to .ibin, .ivecs, .npy or "
                                          ".hdf5",
                                          options.input, options.output)
                            : fmt::format("{} holds vectors and {} would hold ids; write vectors to .fbin, .npy or "
                                          "another extension for vectors",
                                          options.input, options.output));
}

}  // namespace

Report run_convert(const ConvertOptions& options, const RunOptions& run) {
  const Stopwatch total;
  check_outputs({{"OUT", options.output}}, {{"IN", options.input}});
  const FileContent content = content_of(options.input);
  check_contents(options, content);
  const Converted done = content == FileContent::ids ? convert_ids(options, run) : convert_vectors(options, run);
  const double seconds = total.seconds();

  Report report;
  report.text = fmt::format("wrote {}: {} rows of {} {} ({}) in {:.3f} s\n", options.output, done.rows.count, done.cols,
                            content == FileContent::ids ? "ids" : "values", done.to, seconds);
  JsonObject result;
  result.text("input", options.input).text("output", options.output);
  result.text("content", content == FileContent::ids ? "ids" : "vectors").text("from", done.from).text("to", done.to);
  result.number("first", done.rows.first).number("rows", done.rows.count).number("cols", done.cols);
  JsonObject timings;
  timings.real("total_seconds", seconds);
  report.json.text("command", "convert").object("result", std::move(result)).object("timings", std::move(timings));
  return report;
}

void offer_convert(Commands& commands) {
  const auto options = std::make_shared<ConvertOptions>();
  OfferedCommand command = commands.offer(
      "convert",
      "Write vectors or ids in another format or dtype, or some of their rows; file extensions determine the formats",
      [options](const RunOptions& run) { return run_convert(*options, run); });
  command
      .file("IN", options->input,
            "File to read: .fvecs .bvecs .ivecs .fbin .f16bin .bf16bin .u8bin .i8bin .ibin .npy .hdf5 .h5 "
            "-idx3-ubyte[.gz]; FILE.hdf5::NAME is another dataset than train")
      .required();
  command.file("OUT", options->output, "File to write: any of these but IDX").required();
  command
      .word("--dtype", options->dtype, parse_dtype, "",
            "Of the vectors to write: f32, f16, bf16, u8 or i8 (default: what OUT's extension says, else IN's)")
      .without_default();
  command.number("--first", options->first, "First row to take");
  command.number("--count", options->count, "Rows to take; -1: up to the end");
  command.memory_limit();
  command.output();
}

}  // namespace kith::cli
