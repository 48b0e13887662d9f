// Gaussian clusters: centres with deviation 1, rows with deviation 0.5 around them. A row depends only on the seed and
// its number; centres are the same for all seeds, so that files of several seeds come from one distribution: --seed 1
// makes queries for the rows of --seed 0.
#include "sample_command.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "output_paths.hpp"
#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace kith::cli {
namespace {

// A pseudo-random number from three numbers, by the finaliser of SplitMix64.
uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = a * 0x9E3779B97F4A7C15ULL + b * 0xD1B54A32D192ED03ULL + c * 0x8CB92BA72F3D8DD7ULL + 0x632BE59BD9B4E019ULL;
  for (int i = 0; i < 2; ++i) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
  }
  return x;
}

// A nearly normal value: the sum of four uniform numbers, with the same rounding on every platform.
float normal(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t bits = mixed(a, b, c);
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xFFFF) / 65536.0;
  return static_cast<float>((sum - 2.0) * std::sqrt(3.0));
}

void fill(float* row, int64_t number, const SampleOptions& options) {
  constexpr uint64_t kCentres = ~uint64_t{0};  // the seed of all files' centres
  const auto at = static_cast<uint64_t>(number);
  const uint64_t cluster = mixed(options.seed, at, ~uint64_t{0}) % static_cast<uint64_t>(options.clusters);
  for (int64_t i = 0; i < options.cols; ++i) {
    const auto column = static_cast<uint64_t>(i);
    row[i] = normal(kCentres, cluster, column) + 0.5F * normal(options.seed, at, column);
  }
}

}  // namespace

Report run_sample(const SampleOptions& options, const RunOptions& run) {
  const Stopwatch total;
  if (options.rows < 1 || options.cols < 1 || options.clusters < 1) {
    throw InvalidArgument(fmt::format("--rows {} --cols {} --clusters {}: each must be at least 1", options.rows,
                                      options.cols, options.clusters));
  }
  VectorFileWriter writer(options.output, DType::f32, options.rows, options.cols);
  with_resources(run, [&](const Resources& resources) {
    const int64_t piece = rows_per_piece(options.rows, options.cols * size_of(DType::f32), resources);
    MatrixBuffer rows(DType::f32, piece, options.cols, "a piece of the sample", resources);
    for (int64_t first = 0; first < options.rows; first += piece) {
      const MutableMatrixView part = rows.mutable_view().slice(0, std::min(piece, options.rows - first));
      for (int64_t i = 0; i < part.rows(); ++i) fill(reinterpret_cast<float*>(part.row(i)), first + i, options);
      writer.append(part);
      resources.report({"sample", first + part.rows(), options.rows});
      resources.check_cancelled();
    }
    writer.commit();
  });
  Report report;
  report.text = fmt::format("wrote {}: {} made-up vectors of {} values (f32) in {} clusters\n", options.output, options.rows,
                            options.cols, options.clusters);
  JsonObject result;
  result.text("output", options.output).number("rows", options.rows).number("cols", options.cols);
  result.number("clusters", options.clusters).number("seed", static_cast<int64_t>(options.seed));
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "sample").object("result", std::move(result)).object("timings", std::move(timings));
  return report;
}

void offer_sample(Commands& commands) {
  const auto options = std::make_shared<SampleOptions>();
  OfferedCommand command = commands.offer("sample", "Write made-up vectors in clusters, to try commands with",
                                          [options](const RunOptions& run) { return run_sample(*options, run); });
  command.file("OUT", options->output, "File to write: base.fbin, for instance").required();
  command.number("--rows", options->rows, "Vectors");
  command.number("--cols", options->cols, "Values of each");
  command.number("--clusters", options->clusters, "Clusters that they lie in, the same ones for every seed");
  command.count("--seed", options->seed, "Seed: 0 for a base, 1 for queries like it");
  command.memory_limit();
  command.output();
}

}  // namespace kith::cli
