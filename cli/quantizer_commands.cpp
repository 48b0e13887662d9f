#include "quantizer_commands.hpp"

#include <kith/error.hpp>
#include <kith/quantizer.hpp>
#include <kith/refused_row.hpp>
#include <kith/vector_file.hpp>

#include "file_report.hpp"
#include "output_paths.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace kith::cli {
namespace {

struct Described {
  std::string name;
  int64_t dimension = 0;
  int64_t code_bytes = 0;
};

Described described(const Quantizer& quantizer) {
  Described what;
  what.name = name_of(quantizer);
  std::visit(
      [&](const auto& made) {
        what.dimension = made.dimension();
        what.code_bytes = made.code_bytes();
      },
      quantizer);
  return what;
}

JsonObject json_of(const Described& what) {
  JsonObject json;
  json.text("name", what.name).number("dimension", what.dimension).number("code_bytes", what.code_bytes);
  return json;
}

// Reads codes piece by piece, and writes the vectors that `decode` makes.
template <typename Decode>
void decode_to(const VectorFile& in, VectorFileWriter& out, int64_t cols, const Resources& resources,
               const Decode& decode) {
  const ReadMemory memory = in.reserve_memory(resources);
  const int64_t row_bytes = 2 * (in.cols() + cols * size_of(DType::f32));
  const int64_t piece = rows_per_piece(in.rows(), row_bytes, resources);
  MatrixBuffer from(DType::u8, piece, in.cols(), "a piece of the codes", resources);
  MatrixBuffer to(DType::f32, piece, cols, "their vectors", resources);
  for (int64_t done = 0; done < in.rows(); done += piece) {
    const int64_t count = std::min(piece, in.rows() - done);
    const MutableMatrixView codes = from.mutable_view().slice(0, count);
    const MutableMatrixView vectors = to.mutable_view().slice(0, count);
    resources.check_cancelled();
    in.read(done, codes);
    naming_files({{"data", in}}, [&] { naming_rows("data", [&] { decode(codes, vectors); }, done); });
    out.append(vectors);
    resources.report({"decode", done + count, in.rows()});
  }
  out.commit();
}

Report report_of(std::string_view command, const VectorFile& in, const std::string& out, const Described& what,
                 double seconds, const std::vector<std::string>& log) {
  Report report;
  report.text = fmt::format("{}: {} rows, {} of {} values in {} bytes: {:.3f} s\nwrote {}\n", command, in.rows(),
                            what.name, what.dimension, what.code_bytes, seconds, out);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.object("input", describe_vectors(in)).object("quantizer", json_of(what)).text("out", out);
  JsonObject timings;
  timings.real("total_seconds", seconds);
  report.json.text("command", command).object("result", std::move(result)).object("timings", std::move(timings));
  report.json.texts("log", log);
  return report;
}

template <typename Made>
void encode_rows(const Made& quantizer, const VectorFile& rows, const CodesSink& out, const CodeOptions&,
                 const Resources& resources) {
  quantizer.encode(rows, out, resources);
}
void encode_rows(const LocalSearchQuantizer& quantizer, const VectorFile& rows, const CodesSink& out,
                 const CodeOptions& options, const Resources& resources) {
  LocalSearchEncoding encoding;
  encoding.rounds = options.rounds;
  quantizer.encode(rows, out, encoding, resources);
}

// Reads the quantizer's small file before the memory that is left for the library is measured.
Quantizer quantizer_in(const CodeOptions& options, const char* in_name) {
  check_outputs({{"--out", options.out}}, {{"--quantizer", options.quantizer}, {in_name, options.in}});
  return load_quantizer(options.quantizer);
}

}  // namespace

Report run_train(const TrainOptions& options, const RunOptions& run) {
  const Stopwatch total;
  check_outputs({{"--out", options.out}}, {{"--data", options.data}});
  Quantizer quantizer =
      with_options(make_quantizer(options.quantizer, options.seed, options.check_finite), options.additive);
  const VectorFile data(options.data);
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    std::visit(
        [&](auto& made) {
          made.train(data, resources);
          save_quantizer(made, options.out, resources);
        },
        quantizer);
  });
  return report_of("train", data, options.out, described(quantizer), total.seconds(), log);
}

Report run_encode(const CodeOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const Quantizer quantizer = quantizer_in(options, "--data");
  const Described what = described(quantizer);
  const VectorFile data(options.in);
  if (data.cols() != what.dimension) {
    throw InvalidArgument(fmt::format("{} holds rows of {} values, and {} encodes {}", options.in, data.cols(),
                                      options.quantizer, what.dimension));
  }
  VectorFileWriter codes(options.out, DType::u8, data.rows(), what.code_bytes);
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    const auto write = [&](int64_t, const MatrixView& some) { codes.append(some); };
    std::visit([&](const auto& made) { encode_rows(made, data, write, options, resources); }, quantizer);
    codes.commit();
  });
  return report_of("encode", data, options.out, what, total.seconds(), log);
}

Report run_decode(const CodeOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const Quantizer quantizer = quantizer_in(options, "--codes");
  const Described what = described(quantizer);
  const VectorFile codes(options.in);
  if (codes.dtype() != DType::u8 || codes.cols() != what.code_bytes) {
    throw InvalidArgument(fmt::format("{} holds rows of {} {} values, and codes of {} are {} bytes", options.in,
                                      codes.cols(), name_of(codes.dtype()), options.quantizer, what.code_bytes));
  }
  VectorFileWriter vectors(options.out, DType::f32, codes.rows(), what.dimension);
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    decode_to(codes, vectors, what.dimension, resources, [&](const MatrixView& rows, const MutableMatrixView& out) {
      std::visit([&](const auto& made) { made.decode(rows, out, resources); }, quantizer);
    });
  });
  return report_of("decode", codes, options.out, what, total.seconds(), log);
}

namespace {

void offer_train(Commands& commands) {
  const auto options = std::make_shared<TrainOptions>();
  OfferedCommand command = commands.offer("train", "Train a quantizer on the vectors of a file",
                                          [options](const RunOptions& run) { return run_train(*options, run); });
  command.file("--data,--base", options->data, "Vectors, in any format; may be larger than memory").required();
  command
      .text("--quantizer", options->quantizer,
            "PQm, PQmxb, LSQmxb, RQmxb, SQ8, SQ6, SQ4 or SQfp16: PQ16, PQ32x4, LSQ8x8, ...", "NAME")
      .required();
  command.file("--out", options->out, "Where the quantizer goes: a .kith file").required();
  command.count("--seed", options->seed, "Seed of the random numbers");
  offer_additive(command, options->additive);
  command.check_finite(options->check_finite);
  command.run_options();
}

void offer_encode(Commands& commands) {
  const auto options = std::make_shared<CodeOptions>();
  OfferedCommand command = commands.offer("encode", "Write the codes of the vectors of a file",
                                          [options](const RunOptions& run) { return run_encode(*options, run); });
  command.file("--quantizer", options->quantizer, "File that train wrote").required();
  command.file("--data,--base", options->in, "Vectors to encode").required();
  command.file("--out", options->out, "Where the codes go: .u8bin, .bvecs or .npy").required();
  command.count("--rounds", options->rounds, "Rounds of local search, for LSQ; more lower the error");
  command.run_options();
}

void offer_decode(Commands& commands) {
  const auto options = std::make_shared<CodeOptions>();
  OfferedCommand command = commands.offer("decode", "Write the vectors that codes stand for",
                                          [options](const RunOptions& run) { return run_decode(*options, run); });
  command.file("--quantizer", options->quantizer, "File that train wrote").required();
  command.file("--codes", options->in, "Codes that encode wrote").required();
  command.file("--out", options->out, "Where the vectors go: .fbin, .fvecs, .npy or .hdf5").required();
  command.run_options();
}

}  // namespace

void offer_quantizers(Commands& commands) {
  offer_train(commands);
  offer_encode(commands);
  offer_decode(commands);
}

}  // namespace kith::cli
