#include "cluster/data/kmeans_checks.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "core/name_table.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr NameTable<KMeansInit, 3> kInitNames{
    {{{KMeansInit::kmeans_plus_plus, "kmeans++"}, {KMeansInit::random, "random"}, {KMeansInit::given, "given"}}}};

void require(bool holds, const char* name, int64_t value, const char* allowed) {
  if (!holds) throw InvalidArgument(fmt::format("{} = {}; it must be {}", name, value, allowed));
}

}  // namespace

std::string_view name_of(KMeansInit init) { return kInitNames.name(init); }
KMeansInit parse_kmeans_init(std::string_view name) { return kInitNames.parse(name, "init"); }

void KMeansParams::validate() const {
  require(clusters >= 1 && clusters <= (1 << 24), "clusters", clusters, "from 1 to 16777216");
  require(iterations >= 1, "iterations", iterations, "at least 1");
  require(n_init >= 1, "n_init", n_init, "at least 1");
  require(max_points_per_centre >= 0, "max_points_per_centre", max_points_per_centre, "at least 1, or 0 for all rows");
  require(init_points_per_centre >= 0 || init_points_per_centre == kAutomaticInitPoints, "init_points_per_centre",
          init_points_per_centre, "at least 1, 0 for all rows, or -1 to have it chosen");
  require(batch_size >= 0 && batch_size <= std::numeric_limits<int32_t>::max(), "batch_size", batch_size,
          "from 1 to 2147483647, or 0 for whole passes");
  if (!(tol >= 0) || !std::isfinite(tol)) {
    throw InvalidArgument(
        fmt::format("tol = {}; it must be a finite number, at least 0 (1 stops after an iteration or "
                    "two, as does iterations = 1)",
                    tol));
  }
  if (name_of(init) == "?") throw InvalidArgument(fmt::format("init {} is none", static_cast<int>(init)));
}

void check_kmeans_rows(std::string_view what, const RowsInfo& rows) {
  if (rows.cols < 1) throw InvalidArgument(fmt::format("the {} have no columns", what));
  if (rows.rows > std::numeric_limits<int32_t>::max()) {
    throw Unsupported(
        fmt::format("{} {}; k-means takes up to {}", rows.rows, what, std::numeric_limits<int32_t>::max()));
  }
}

int64_t first_not_finite(const MatrixView& rows, const Resources& resources) {
  if (rows.rows() == 0 || rows.dtype() == DType::u8 || rows.dtype() == DType::i8) return -1;
  return rows.space().host_readable() ? find_not_finite(rows, {}, resources.with_progress({}))
                                      : first_not_finite_cuda(rows, resources);
}

void check_rows_finite(const MatrixView& rows, int64_t first, const Resources& resources) {
  const int64_t bad = first_not_finite(rows, resources);
  if (bad >= 0) throw_not_finite("data", first + bad);
}

void check_kmeans_input(const KMeansParams& params, const RowsInfo& rows, const KMeansInput& input) {
  check_kmeans_rows("rows", rows);
  if (rows.rows < params.clusters) {
    throw InvalidArgument(
        fmt::format("{} rows cannot be split into {} clusters; give at least as many rows, or lower "
                    "clusters",
                    rows.rows, params.clusters));
  }
  if (input.weights.data != nullptr) {
    if (!input.weights.space.host_readable()) {
      throw Unsupported(
          fmt::format("the weights are in the memory of cuda:{}; copy them to the host", input.weights.space.device));
    }
    if (input.weights.size != rows.rows) {
      throw InvalidArgument(fmt::format("{} weights for {} rows; give one for each", input.weights.size, rows.rows));
    }
    double total = 0;
    for (int64_t i = 0; i < rows.rows; ++i) {
      const float weight = input.weights[i];
      if (!(weight >= 0) || !std::isfinite(weight)) {
        throw InvalidArgument(fmt::format("weight {} is {}; weights must be finite and at least 0", i, weight));
      }
      total += weight;
    }
    if (!(total > 0)) throw InvalidArgument("all weights are 0; at least one row must count");
  }
  if (params.init != KMeansInit::given) return;
  const MatrixView& centres = input.centres;
  check_host_readable("centres", centres);
  if (centres.rows() != params.clusters || centres.cols() != rows.cols) {
    throw InvalidArgument(fmt::format("init is given, with centres of {} x {}; they must be {} x {}", centres.rows(),
                                      centres.cols(), params.clusters, rows.cols));
  }
  check_kmeans_rows("centres", {centres.rows(), centres.cols(), centres.dtype()});
  for (int64_t c = 0; c < centres.rows() && !is_counted_only(centres.data()); ++c) {
    if (!row_is_finite(centres, c)) throw_not_finite("centre", c);
  }
}

}  // namespace kith
