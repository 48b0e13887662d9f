// KMeans::fit by several ranks: the checks, the memory, the rows that a rank keeps.
#include <kith/distributed.hpp>

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "cluster/data/kmeans_checks.hpp"
#include "cluster/kmeans_fit.hpp"
#include "cluster/shared/dealt_backend.hpp"
#include "cluster/shared/kmeans_ranks.hpp"
#include "core/float_mode.hpp"
#include "core/machine_memory.hpp"
#include "core/within_limits.hpp"
#include "rows/narrowed_rows.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

std::string describe(const RowsInfo& rows, const KMeansParams& p, const KMeansInput& input) {
  return fmt::format(
      "k-means of {} {} rows of {} values, clusters {}, iterations {}, tol {}, n_init {}, init {}, seed {}, "
      "max_points_per_centre {}, init_points_per_centre {}, spherical {}, batch_size {}, compute_labels {}, history "
      "{}, "
      "check_finite {}, weights {}",
      rows.rows, name_of(rows.dtype), rows.cols, p.clusters, p.iterations, p.tol, p.n_init, name_of(p.init), p.seed,
      p.max_points_per_centre, p.init_points_per_centre, p.spherical, p.batch_size, p.compute_labels, p.history,
      p.check_finite, input.weights.size);
}

// The memory of the ranks' backend beside that of one process, and of the model that is sent to all.
Footprint sharing_footprint(const KMeansParams& params, const RowsInfo& rows, const Communicator& ranks,
                            const Resources& resources) {
  const int64_t piece = std::max({kmeans_part(rows.rows, ranks).count, params.batch_size, kSumBlock});
  return footprint_of<CentreSums>(resources, params.clusters, rows.cols, piece, CentreSums::ByCentre())
      .beside(array_footprint<double>(params.clusters, 2 * rows.cols + 3))
      .beside(array_footprint<float>(params.clusters, rows.cols + 2))
      .beside(array_footprint<int32_t>(rows.rows));
}

void take_model(KMeans& to, const KMeansModel& from, const Offset& offset, const Resources& resources) {
  KMeansSnapshot snapshot;
  snapshot.centres = from.centres.view();
  snapshot.counts = {from.counts.data(), from.counts.size(), {}};
  snapshot.labels = {from.labels.data(), from.labels.size(), {}};
  snapshot.objective = from.objective;
  snapshot.history = from.history;
  snapshot.iterations = from.iterations;
  if (offset != nullptr) snapshot.offset = *offset;
  to.restore(snapshot, resources);
}

// Whether this rank can keep its part of the rows beside the least memory of the fit.
bool can_hold(int64_t bytes, int64_t least, int on_host, const Resources& resources) {
  if (resources.options().host_memory_limit != kNoLimit) return resources.host_memory()->available() - least >= bytes;
  return bytes <= free_host_memory() / 2 / on_host;
}

}  // namespace

void fit(KMeans& model, Communicator& ranks, const MatrixView& given, const KMeansInput& given_input,
         const Resources& resources) {
  const DefaultFloatMode mode;
  const KMeansParams& params = model.params();
  check_same_request(ranks, describe(RowsInfo(given), params, given_input));
  in_lockstep(ranks, [&] {
    check_host_readable("rows", given);
    const Metric metric = params.spherical ? Metric::inner_product : Metric::sqeuclidean;
    const NarrowedRows rows("x", given, metric, resources);
    const NarrowedRows centres("init", given_input.centres, rows.offset(), OfRounding::silent, resources);
    KMeansInput input = given_input;
    input.centres = centres.view();
    const RowsInfo info(rows.view());
    check_kmeans_input(params, info, input);
    const auto least = [&] {
      return fit_footprint(params, info, resources).beside(sharing_footprint(params, info, ranks, resources));
    };
    within_limits("k-means", resources, least, [&] {
      const KMeansSharedByRanks sharing(ranks);
      take_model(model, fit_kmeans(params, rows_of(rows.view()), input, resources, &sharing), rows.offset(), resources);
    });
  });
}

void fit(KMeans& model, Communicator& ranks, const VectorFile& file, const KMeansInput& given,
         const Resources& resources) {
  const DefaultFloatMode mode;
  const KMeansParams& params = model.params();
  const RowsInfo info(file);
  check_same_request(ranks, describe(info, params, given));
  const HostPlace place = place_on_host(ranks);
  in_lockstep(ranks, [&] {
    const NarrowedRows centres("init", given.centres, nullptr, OfRounding::silent, resources);
    KMeansInput input = given;
    input.centres = centres.view();
    check_kmeans_input(params, info, input);
    const auto least = [&] {
      return Footprint{file.memory_bytes()}
          .beside(fit_footprint(params, info, resources))
          .beside(sharing_footprint(params, info, ranks, resources));
    };
    within_limits("k-means", resources, least, [&] {
      const ReadMemory memory = file.reserve_memory(resources);
      const RankPart part = kmeans_part(info.rows, ranks);
      MatrixBuffer held;
      if (can_hold(part.count * info.row_bytes(), least().host, place.count, resources)) {
        held = MatrixBuffer(info.dtype, part.count, info.cols, "this rank's rows", resources);
        file.read(part.first, held.mutable_view());
      }
      const MatrixView kept = held.view();
      const KMeansRows rows{info, [&file, kept, part](int64_t most, const Resources& used) {
                              auto source = std::make_unique<HeldRows>(file, kept, part);
                              source->open(most, used);
                              return source;
                            }};
      const KMeansSharedByRanks sharing(ranks);
      naming_files({{"data", file}}, [&] {
        take_model(model, fit_kmeans(params, rows, input, resources, &sharing), nullptr, resources);
      });
    });
  });
}

}  // namespace kith
