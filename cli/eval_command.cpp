// Reads the files in pieces. The recall of each piece is turned back into a number of hits, so that the sum does not
// depend on the size of pieces.
#include "eval_command.hpp"

#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/recall.hpp>
#include <kith/vector_file.hpp>

#include "row_pieces.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace kith::cli {
namespace {

// The requested measures, checked against the shapes of both files.
struct Question {
  int64_t k;
  std::vector<int64_t> r;
};

struct Hits {
  int64_t k = 0;             // true neighbours found among rows * k
  std::vector<int64_t> one;  // per R: queries whose nearest was found
};

Question checked_question(const EvalOptions& options, const IdFile& found, const IdFile& truth) {
  if (found.rows() != truth.rows()) {
    throw InvalidArgument(
        fmt::format("{} has {} rows and {} has {}; both need one row for each query, in the same order", options.found,
                    found.rows(), options.truth, truth.rows()));
  }
  if (found.rows() == 0)
    throw InvalidArgument(fmt::format("{} and {} have no rows to compare", options.found, options.truth));
  if (found.cols() == 0 || truth.cols() == 0) {
    throw InvalidArgument(
        fmt::format("{} has no columns to compare", found.cols() == 0 ? options.found : options.truth));
  }
  const int64_t most = std::min(found.cols(), truth.cols());
  Question question{options.k.value_or(most), options.r};
  if (question.k < 1 || question.k > most) {
    throw InvalidArgument(fmt::format("-k {}; allowed are 1 to {}: {} has {} columns and {} has {}", question.k, most,
                                      options.found, found.cols(), options.truth, truth.cols()));
  }
  if (question.r.empty()) {
    for (const int64_t r : {1, 10, 100}) {
      if (r <= found.cols()) question.r.push_back(r);
    }
  }
  for (const int64_t r : question.r) {
    if (r < 1 || r > found.cols()) {
      throw InvalidArgument(
          fmt::format("-R {}; allowed are 1 to {}, the columns of {}", r, found.cols(), options.found));
    }
  }
  return question;
}

// The library checks this too, but does not know the file, or where in it the piece begins.
void check_truth(const IdMatrixView& truth, int64_t first_row, int64_t k, const std::string& path) {
  std::vector<int64_t> sorted;
  for (int64_t row = 0; row < truth.rows; ++row) {
    const int64_t* ids = truth.ids + row * truth.cols;
    const int64_t held = std::find(ids, ids + k, -1) - ids;
    sorted.assign(ids, ids + held);
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
      throw InvalidArgument(fmt::format("row {} of {} holds {} twice; a row can be a true neighbour once",
                                        first_row + row, path, *twice));
    }
    if (held == k) continue;
    throw InvalidArgument(
        fmt::format("row {} of {} holds {} neighbours, then -1; recall at k = {} is undefined there{}", first_row + row,
                    path, held, k, held > 0 ? fmt::format(", use -k {}", held) : ""));
  }
}

void add_hits(const IdMatrixView& found, const IdMatrixView& truth, const Question& question, Hits& hits) {
  const auto rows = static_cast<double>(found.rows);
  hits.k += std::llround(k_recall(found, truth, question.k) * rows * static_cast<double>(question.k));
  for (size_t i = 0; i < question.r.size(); ++i) {
    hits.one[i] += std::llround(one_recall(found, truth, question.r[i]) * rows);
  }
}

Hits count_hits(const IdFile& found, const IdFile& truth, const Question& question, const RunOptions& run) {
  Hits hits;
  hits.one.resize(question.r.size());
  with_resources(run, [&](const Resources& resources) {
    const ReadMemory found_memory = found.reserve_memory(resources);
    const ReadMemory true_memory = truth.reserve_memory(resources);
    const int64_t piece = rows_per_piece(found.rows(), bytes_of_ids(found.cols() + truth.cols()), resources);
    const HostArray<int64_t> found_ids(piece * found.cols(), "a piece of the found ids", resources);
    const HostArray<int64_t> true_ids(piece * truth.cols(), "a piece of the true ids", resources);
    for (int64_t first = 0; first < found.rows(); first += piece) {
      resources.check_cancelled();
      resources.report({"eval", first, found.rows()});
      const int64_t count = std::min(piece, found.rows() - first);
      found.read(first, count, found_ids.data());
      truth.read(first, count, true_ids.data());
      const IdMatrixView true_view{true_ids.data(), count, truth.cols()};
      check_truth(true_view, first, question.k, truth.path());
      add_hits({found_ids.data(), count, found.cols()}, true_view, question, hits);
    }
    resources.report({"eval", found.rows(), found.rows()});
  });
  return hits;
}

}  // namespace

Report run_eval(const EvalOptions& options, const RunOptions& run) {
  const Stopwatch total;
  const IdFile found(options.found);
  const IdFile truth(options.truth);
  const Question question = checked_question(options, found, truth);
  const Hits hits = count_hits(found, truth, question, run);

  Report report;
  const auto rows = static_cast<double>(found.rows());
  const double k_share = static_cast<double>(hits.k) / (rows * static_cast<double>(question.k));
  report.text = fmt::format("{} queries\n", found.rows());
  std::vector<JsonObject> one;
  for (size_t i = 0; i < question.r.size(); ++i) {
    const double share = static_cast<double>(hits.one[i]) / rows;
    report.text += fmt::format("{:<16} {:.6f}\n", fmt::format("1-recall@{}", question.r[i]), share);
    one.emplace_back().number("R", question.r[i]).real("recall", share);
  }
  report.text += fmt::format("{:<16} {:.6f}\n", fmt::format("{0}-recall@{0}", question.k), k_share);

  JsonObject k_json;
  k_json.number("k", question.k).real("recall", k_share);
  JsonObject result;
  result.text("found", options.found).text("truth", options.truth).number("queries", found.rows());
  result.list("1-recall@R", std::move(one)).object("k-recall@k", std::move(k_json));
  JsonObject timings;
  timings.real("total_seconds", total.seconds());
  report.json.text("command", "eval").object("result", std::move(result)).object("timings", std::move(timings));
  return report;
}

void offer_eval(Commands& commands) {
  const auto options = std::make_shared<EvalOptions>();
  OfferedCommand command =
      commands.offer("eval", "Measure found neighbours against the true ones: 1-recall@R and k-recall@k",
                     [options](const RunOptions& run) { return run_eval(*options, run); });
  command.file("--found", options->found, "Ids that were found: .ibin, .ivecs, .npy or .hdf5").required();
  command.file("--truth", options->truth, "Ids of the true neighbours, nearest first").required();
  command
      .number("-k", options->k, "k of k-recall@k (default: the columns of found, at most those of truth)")
      .without_default();
  command.numbers("-R", options->r, "R values of 1-recall@R (default: 1,10,100 up to the columns of found)")
      .without_default();
  command.memory_limit();
  command.output();
}

}  // namespace kith::cli
