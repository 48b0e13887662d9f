#include "index/index_checks.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/memory_budget.hpp"
#include "graph/search/walk/walk.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"
#include "transform/transform_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

namespace kith {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

}  // namespace

void check_trained_on(const RowsInfo& rows, Metric metric) {
  check_rows_dtype("training vectors", rows.dtype, metric);
  if (rows.cols < 1) throw InvalidArgument("vectors without columns cannot be searched");
  if (rows.rows < 1) throw InvalidArgument("an index cannot be trained without vectors");
}

void check_added(const IndexState* current, const RowsInfo& rows, Metric metric) {
  if (!rows.space.host_readable() && !built_with_cuda()) throw_no_cuda();
  check_rows_dtype("added vectors", rows.dtype, metric);
  if (rows.cols < 1) throw InvalidArgument("vectors without columns cannot be searched");
  const IndexContent before = current == nullptr ? IndexContent() : current->content();
  if (current != nullptr && (rows.cols != before.cols || (!before.any_dtype && rows.dtype != before.dtype))) {
    throw InvalidArgument(fmt::format("the index holds {} vectors of {} columns; {} of {} columns were added",
                                      name_of(before.dtype), before.cols, name_of(rows.dtype), rows.cols));
  }
  if (rows.rows > kMostRows - before.rows) {
    throw Unsupported(
        fmt::format("an index of {} + {} rows; one index takes up to {}", before.rows, rows.rows, kMostRows));
  }
}

void check_training_values(const MatrixView& rows, const IndexParams& params, const Resources& resources) {
  if (!params.check_finite) return;
  if (!rows.space().host_readable()) return refuse_not_finite_cuda("training", rows, resources);
  refuse_not_finite("training", rows, {0}, resources);
}

void check_added_values(const MatrixView& rows, int64_t first_row, const IndexParams& params, bool coded,
                        const Resources& resources) {
  if (!rows.space().host_readable()) {
    if (coded && params.check_finite) refuse_not_finite_cuda("added", rows, resources);
    return;
  }
  if (params.check_finite) refuse_not_finite("added", rows, {first_row}, resources);
  if (params.metric == Metric::chi_square) refuse_negative("added", rows, {first_row}, resources);
}

int64_t rows_of_a_piece(const RowsInfo& rows, const Resources& resources) {
  constexpr int64_t kPieceBytes = 64 << 20;
  constexpr int64_t kShare = 16;  // of the free memory, for the piece, the one read ahead, and the state made of them
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / kShare);
  return std::clamp<int64_t>(bytes / rows.row_bytes(), 1, std::max<int64_t>(rows.rows, 1));
}

void refuse_unshifted_file(const Offset& offset, const std::string& path) {
  if (offset == nullptr) return;
  throw InvalidArgument(fmt::format(
      "the index subtracts an offset from float64 vectors, and {} holds others; give them as an array, or begin "
      "with the file",
      path));
}

void check_ids(VectorView<const int64_t> ids, int64_t rows) {
  if (ids.data == nullptr && ids.size == 0) return;
  if (ids.size != rows) throw InvalidArgument(fmt::format("{} ids were given for {} vectors", ids.size, rows));
  if (!ids.space.host_readable()) throw InvalidArgument("ids are taken from host memory");
}

namespace {

// The search parameters that such an index uses, for error messages.
std::string taken_by(const SearchUse& use) {
  std::string taken = use.lists ? "probes" : "";
  if (use.walks) taken += taken.empty() ? "beam, width" : ", beam, width";
  if (use.walks || use.refines) taken += taken.empty() ? "refine" : " and refine";
  return taken.empty() ? "none of probes, beam, width and refine" : taken;
}

void refuse_unused(const char* name, int64_t value, bool used, const char* owner, const SearchUse& use,
                   std::string_view factory) {
  if (value == 0 || used) return;
  throw InvalidArgument(
      fmt::format("{} = {} is for {}; the index '{}' takes {}", name, value, owner, factory, taken_by(use)));
}

void check_probes(const SearchUse& use, std::string_view factory, int64_t probes) {
  if (probes < 0) throw InvalidArgument(fmt::format("probes is {}; it is at least 1, or 0 for the default", probes));
  refuse_unused("probes", probes, use.lists, "indexes with lists (IVF1024,Flat)", use, factory);
}

}  // namespace

void check_search_params(const SearchUse& use, std::string_view factory, const SearchParams& params) {
  if (params.beam < 0 || params.beam > kWidestBeam) {
    throw InvalidArgument(fmt::format("beam = {}; it must be from 1 to {}", params.beam, kWidestBeam));
  }
  if (params.width < 0 || params.width > kWidestStep) {
    throw InvalidArgument(fmt::format("width = {}; it must be from 1 to {}", params.width, kWidestStep));
  }
  if (!(params.recall >= 0 && params.recall <= 1)) {
    throw InvalidArgument(fmt::format("recall = {}; it must be above 0 and at most 1", params.recall));
  }
  if (params.refine < 0) {
    throw InvalidArgument(fmt::format("refine is {}; it is at least 1, or 0 for the default", params.refine));
  }
  check_probes(use, factory, params.probes);
  constexpr const char* kWalks = "indexes that walk over a graph (Graph32)";
  refuse_unused("beam", params.beam, use.walks, kWalks, use, factory);
  refuse_unused("width", params.width, use.walks, kWalks, use, factory);
  refuse_unused("refine", params.refine, use.walks || use.refines || params.refine_from != nullptr,
                "indexes that look at candidates a second time (Graph32; RFlat or Refine at the end), or with refine_from",
                use, factory);
  if (params.recall > 0 && (params.beam > 0 || params.probes > 0)) {
    throw InvalidArgument(
        fmt::format("{0} and a recall, which chooses {0}; give one of them", params.beam > 0 ? "a beam" : "probes"));
  }
}

void check_search_params(const SearchUse& use, std::string_view factory, const RangeSearchParams& params) {
  check_probes(use, factory, params.probes);
}

void check_recall(const SearchUse& use, std::string_view factory, double recall, bool tuned) {
  if (recall == 0 || use.walks || tuned) return;
  throw InvalidArgument(
      fmt::format("recall = {}, and which parameters reach it was not measured: call tune() with queries first; the "
                  "index '{}' takes {}",
                  recall, factory, taken_by(use)));
}

void check_reconstructed(const IndexState* state, int64_t count, const MutableMatrixView& out) {
  const int64_t cols = state == nullptr ? out.cols() : state->content().cols;
  const bool takes_numbers = out.dtype() == DType::f32 || out.dtype() == DType::f64;
  if (out.rows() == count && out.cols() == cols && takes_numbers && out.space().host_readable()) return;
  throw InvalidArgument(
      fmt::format("{} vectors of {} columns are reconstructed to f32 or f64 in host memory; out is {} of {} x {}",
                  count, cols, name_of(out.dtype()), out.rows(), out.cols()));
}

void check_queries(const IndexContent& content, const MatrixView& queries, Metric metric) {
  check_rows_dtype("queries", queries.dtype(), metric);
  if (queries.cols() != content.cols) {
    throw InvalidArgument(fmt::format("the queries have {} columns and the index has {}; they must be the same",
                                      queries.cols(), content.cols));
  }
}

}  // namespace kith
