// Converts a file piece by piece, in constant memory. VectorFile::read converts values exactly or rounds to nearest,
// and refuses those that the other dtype cannot hold.
#include "convert_command.hpp"

#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/vector_file.hpp>

#include "exit_codes.hpp"
#include "other_input.hpp"
#include "output_paths.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
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
  std::string note;  // of a table
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

constexpr const char* kPipe = "-";  // stdin or stdout

// Output of vectors to a file, or to stdout as .npy.
class VectorOutput {
 public:
  VectorOutput(const std::string& path, DType dtype, int64_t rows, int64_t cols) {
    if (path != kPipe) {
      file_.emplace(path, dtype, rows, cols);
      return;
    }
    const char* const descr = dtype == DType::f32   ? "<f4"
                              : dtype == DType::f16 ? "<f2"
                              : dtype == DType::u8  ? "|u1"
                              : dtype == DType::i8  ? "|i1"
                                                    : nullptr;
    if (descr == nullptr) throw InvalidArgument("stdout takes .npy, which has no bf16: give --dtype f32");
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}", descr, rows, cols);
    text.append((128 - (10 + text.size() + 1) % 64) % 64, ' ');
    text += '\n';
    put("\x93NUMPY\x01", 7);
    const char length[] = {'\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
    put(length, 3);
    put(text.data(), text.size());
  }

  void append(const MatrixView& rows) {
    if (file_) return file_->append(rows);
    for (int64_t i = 0; i < rows.rows(); ++i) {
      put(rows.row(i), static_cast<size_t>(rows.cols() * size_of(rows.dtype())));
    }
  }
  void commit() {
    if (file_) return file_->commit();
    if (std::fflush(stdout) != 0) put(nullptr, 1);
  }

 private:
  static void put(const void* data, size_t bytes) {
    if (data == nullptr || std::fwrite(data, 1, bytes, stdout) != bytes) {
      throw IoError("cannot write to stdout", "stdout", 0);
    }
  }

  std::optional<VectorFileWriter> file_;
};

Converted convert_vectors(const ConvertOptions& options, const RunOptions& run) {
  std::string note;
  const VectorFile input = is_other_input(options.input) ? open_other_input(options.input, options.whole, &note)
                                                         : VectorFile(options.input);
  const Rows rows = checked_range(options, input.rows());
  const DType otherwise = options.output == kPipe ? input.dtype() : dtype_in(options.output, input.dtype());
  const DType to = options.dtype.value_or(otherwise);
  const int64_t cols = input.cols();
  VectorOutput writer(options.output, to, rows.count, cols);
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
  return {rows, cols, std::string(name_of(input.dtype())), std::string(name_of(to)), note};
}

Converted convert_ids(const ConvertOptions& options, const RunOptions& run) {
  const IdFile input(options.input);
  const Rows rows = checked_range(options, input.rows());
  IdFileWriter writer(options.output, rows.count, input.cols());
  with_resources(run, [&](const Resources& resources) {
    const ReadMemory memory = input.reserve_memory(resources);
    const int64_t piece = rows_per_piece(rows.count, bytes_of_ids(input.cols()), resources);
    const HostArray<int64_t> ids(piece * input.cols(), "a piece of the ids to convert", resources);
    for_each_piece(rows, piece, resources, [&](int64_t first, int64_t count) {
      input.read(first, count, ids.data());
      writer.append(ids.data(), count);
    });
    writer.commit();
  });
  return {rows, input.cols(), "ids", "ids", ""};
}

void check_contents(const ConvertOptions& options, FileContent content) {
  if (content == FileContent::ids && options.dtype) {
    throw InvalidArgument(
        fmt::format("--dtype {} is for vectors, and {} holds ids", name_of(*options.dtype), options.input));
  }
  if (options.output == kPipe) {
    if (content == FileContent::vectors) return;
    throw InvalidArgument(fmt::format("{} holds ids; stdout takes vectors", options.input));
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
  const bool to_pipe = options.output == kPipe;
  if (to_pipe && run.json) throw UsageError("--json and the vectors would both go to stdout; write them to a file");
  if (options.whole && !is_table(options.input)) {
    throw InvalidArgument(fmt::format("--whole is for tables (.csv, .tsv, .txt), and '{}' is none", options.input));
  }
  if (!to_pipe) check_outputs({{"OUT", options.output}}, {{"IN", options.input}});
  const FileContent content = is_other_input(options.input) ? FileContent::vectors : content_of(options.input);
  check_contents(options, content);
  const Converted done = content == FileContent::ids ? convert_ids(options, run) : convert_vectors(options, run);
  const double seconds = total.seconds();

  Report report;
  if (to_pipe) return report;
  report.text = fmt::format("wrote {}: {} rows of {} {} ({}) in {:.3f} s\n", options.output, done.rows.count, done.cols,
                            content == FileContent::ids ? "ids" : "values", done.to, seconds);
  if (!done.note.empty()) report.text += fmt::format("  {}\n", done.note);
  JsonObject result;
  if (!done.note.empty()) result.text("note", done.note);
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
            "-idx3-ubyte[.gz] .csv .tsv .txt, and by Python .npz .parquet; FILE.hdf5::NAME is another dataset than train, "
            "and so of .npz and .parquet; - is .npy from stdin")
      .required();
  command.file("OUT", options->output, "File to write: any of the first but IDX; - is .npy to stdout").required();
  command
      .word("--dtype", options->dtype, parse_dtype, "",
            "Of the vectors to write: f32, f16, bf16, u8 or i8 (default: what OUT's extension says, else IN's)")
      .without_default();
  command.flag("--whole", options->whole, "Of a table: take the first line, and the first column, for numbers too");
  command.number("--first", options->first, "First row to take");
  command.number("--count", options->count, "Rows to take; -1: up to the end");
  command.memory_limit();
  command.output();
}

}  // namespace kith::cli
