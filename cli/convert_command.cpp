// Rows pass through one piece of memory, whatever the file's size. Values are never changed: u8 widens to f32, and f32
// becomes u8 only where every value is a whole number from 0 to 255.
#include "convert_command.hpp"

#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/vector_file.hpp>

#include "output_paths.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

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
    throw InvalidArgument(fmt::format("--first {} --count {} reach outside {}, which has {} rows", options.first, count,
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

void widen(const MatrixView& from, const MutableMatrixView& to) {
  const auto* source = static_cast<const uint8_t*>(from.data());
  std::copy(source, source + from.rows() * from.cols(), static_cast<float*>(to.data()));
}

void narrow(const MatrixView& from, const MutableMatrixView& to, int64_t first_row, const std::string& path) {
  const auto* source = static_cast<const float*>(from.data());
  auto* target = static_cast<uint8_t*>(to.data());
  for (int64_t i = 0; i < from.rows() * from.cols(); ++i) {
    const float value = source[i];
    // Outside 0..255, and for NaN, the cast would be undefined.
    const auto byte = value >= 0 && value <= 255 ? static_cast<uint8_t>(value) : uint8_t{0};
    if (static_cast<float>(byte) != value) {
      throw InvalidArgument(
          fmt::format("row {}, column {} of {} holds {}, which u8 cannot; only whole numbers from 0 to 255 fit",
                      first_row + i / from.cols(), i % from.cols(), path, value));
    }
    target[i] = byte;
  }
}

DType target_dtype(const std::string& output, DType source) {
  if (output.ends_with(".fbin")) return DType::f32;
  if (output.ends_with(".u8bin")) return DType::u8;
  return source;  // .npy holds either; what else there is, the writer refuses
}

Converted convert_vectors(const ConvertOptions& options, const RunOptions& run) {
  const VectorFile input(options.input);
  const Rows rows = checked_range(options, input.rows());
  const DType from = input.dtype();
  const DType to = target_dtype(options.output, from);
  const int64_t cols = input.cols();
  VectorFileWriter writer(options.output, to, rows.count, cols);
  with_resources(run, [&](const Resources& resources) {
    const int64_t row_bytes = cols * (size_of(from) + (from == to ? 0 : size_of(to)));
    const int64_t piece = rows_per_piece(rows.count, row_bytes, resources);
    MatrixBuffer source(from, piece, cols, "a piece of the rows to convert", resources);
    MatrixBuffer target(to, from == to ? 0 : piece, cols, "a piece of the converted rows", resources);
    for_each_piece(rows, piece, resources, [&](int64_t first, int64_t count) {
      const MutableMatrixView taken = source.mutable_view().slice(0, count);
      input.read(first, taken);
      if (from == to) return writer.append(taken);
      const MutableMatrixView made = target.mutable_view().slice(0, count);
      if (to == DType::f32) {
        widen(taken, made);
      } else {
        narrow(taken, made, first, options.input);
      }
      writer.append(made);
    });
    writer.commit();
  });
  return {rows, cols, std::string(name_of(from)), std::string(name_of(to))};
}

Converted convert_ids(const ConvertOptions& options, const RunOptions& run) {
  const IdFile input(options.input);
  const Rows rows = checked_range(options, input.rows());
  IdFileWriter writer(options.output, rows.count, input.cols());
  with_resources(run, [&](const Resources& resources) {
    const int64_t row_bytes = input.cols() * static_cast<int64_t>(sizeof(int64_t));
    const int64_t piece = rows_per_piece(rows.count, row_bytes, resources);
    const HostBuffer ids(piece * row_bytes, "a piece of the ids to convert", resources);
    for_each_piece(rows, piece, resources, [&](int64_t first, int64_t count) {
      input.read(first, count, ids.as<int64_t>());
      writer.append(ids.as<int64_t>(), count);
    });
    writer.commit();
  });
  return {rows, input.cols(), "ids", "ids"};
}

void check_contents(const ConvertOptions& options, FileContent content) {
  const std::string& output = options.output;
  if (content == FileContent::ids && (output.ends_with(".fbin") || output.ends_with(".u8bin"))) {
    throw InvalidArgument(
        fmt::format("{} holds ids and {} would hold vectors; write ids to .ibin or .npy", options.input, output));
  }
  if (content == FileContent::vectors && output.ends_with(".ibin")) {
    throw InvalidArgument(fmt::format("{} holds vectors and {} would hold ids; write vectors to .fbin, .u8bin or .npy",
                                      options.input, output));
  }
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

}  // namespace kith::cli
