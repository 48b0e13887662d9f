// The plan of k-means on a GPU.
//
// Rows from the host stay on the device if they fit, so that they are copied once; otherwise
// they are copied piece by piece in every pass, each while the one before is processed. The
// operands of products stay too if they fit; otherwise they are made again for each piece.
// Under a tight budget the pieces shrink first, to a size that still fills the GPU; then
// operands no longer stay, then rows; then the pieces shrink to the smallest that work.
#include "cluster/steps/kmeans_plan.hpp"

#include "cluster/draw/kmeans_plus_plus.hpp"
#include "cluster/draw/kmeans_plus_plus_cuda.hpp"
#include "cluster/steps/kmeans_workspace_cuda.hpp"
#include "core/byte_size.hpp"
#include "cuda/pinned_bytes.hpp"
#include "kernels/assign/assign_cpu.hpp"
#include "kernels/assign/few_centre_screen.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_cuda.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMostPiece = int64_t{1} << 24;
constexpr int64_t kGoodPiece = int64_t{1} << 17;
constexpr int64_t kDeviceReadBytes = int64_t{256} << 20;  // of rows that come from the host in every pass
constexpr int64_t kMostUnsettled = 16384;
constexpr int64_t kLeastUnsettled = 64;
// Up to this many values the ten kernels of a sort do not pay off.
constexpr int64_t kListedValues = int64_t{1} << 23;

Footprint host_footprint(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan,
                         const Resources& resources) {
  const KMeansCudaPlan& cuda = *plan.cuda();
  const int64_t piece = std::min(plan.piece_rows, std::max<int64_t>(shape.rows, 1));
  const Footprint pass = Footprint{cuda.pinned_bytes + cuda.search.exact.host_bytes}
                             .beside(array_footprint<uint64_t>(cuda.search.unsettled_rows))
                             .beside({shape.read_bytes(piece)})
                             // the origin, the objective's blocks
                             .beside(array_footprint<double>(shape.cols + shape.rows / kSumBlock + 1));
  if (!request.moves_centres) return pass.beside(array_footprint<float>(2 * piece));  // labels and keys
  const Footprint loop = array_footprint<double>(shape.clusters, shape.cols + 4)   // sums, where centres are empty
                             .beside(array_footprint<float>(2 * shape.clusters, shape.cols))
                             .beside({request.batch_rows * (shape.row_bytes() + 12)});
  Footprint plus_plus;
  if (!cuda.plus_plus || request.candidates > 0) {
    plus_plus = plus_plus_footprint(shape, request, plan, resources);
  } else if (shape.space.host_readable()) {
    plus_plus = array_footprint<float>(request.sampled_rows, shape.cols);
  }
  const Footprint start = start_footprint(shape, request, plus_plus, shape.space.host_readable() ? piece : 0, resources);
  return pass
      .beside(array_footprint<float>(shape.rows))  // keys
      .beside(request.candidates > 0 ? loop.beside(start) : loop.then(start));
}

// Memory of k-means++, which is freed before the passes begin.
int64_t plus_plus_bytes(const KMeansShape& shape, const KMeansRequest& request) {
  PlusPlusShape choice;
  choice.rows = request.candidates > 0 ? request.candidates : request.sampled_rows;
  choice.cols = shape.cols;
  choice.clusters = shape.clusters;
  choice.trials = plus_plus_trials(shape.clusters);
  choice.weighted = shape.weighted || request.candidates > 0;
  if (request.candidates > 0) return PlusPlusWorkspace(choice).bytes;
  choice.listed = !shape.space.host_readable() && request.sampled_rows < shape.rows;
  choice.in_place = !shape.space.host_readable() && shape.dtype == DType::f32 && !choice.listed;
  return PlusPlusWorkspace(choice).bytes;
}

// The device memory of a plan; INT64_MAX if the sum overflows.
int64_t device_bytes(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan) {
  const int64_t own = KMeansWorkspace(shape, request, plan).bytes;
  const int64_t more = plan.cuda()->search.exact.device_bytes + (shape.space.host_readable() ? 0 : 2 * kGatherBytes);
  return own > INT64_MAX - more ? INT64_MAX : own + more;
}

}  // namespace

KMeansPlan plan_kmeans_cuda(const KMeansShape& shape, const KMeansRequest& request, const DeviceInfo& device,
                            const PlanBudget& budget, ProductEngine asked) {
  const int64_t rows = std::max<int64_t>(shape.rows, 1);
  const int64_t row_bytes = std::max<int64_t>(shape.row_bytes(), 1);
  const bool from_host = shape.space.host_readable();
  const Resources resources = planning_resources(budget.threads);
  KMeansPlan plan;
  plan.format = centre_format(shape.cols, budget.cpu);
  auto& cuda = plan.on.emplace<KMeansCudaPlan>();
  cuda.device = device.device;
  if (shape.space.kind == MemoryKind::host && saturating_multiply(rows, row_bytes) >= kPinnedBytes) {
    cuda.pinned_bytes = kPinnedBytes;
  }

  const auto lists_rows = [&] {
    const bool little = saturating_multiply(rows, shape.cols) <= kListedValues && asked == ProductEngine::automatic;
    return (cuda.search.is_few() || little) && shape.clusters <= kFewCentres;
  };
  // Plans exact search of `unsettled` rows at a time in `bytes` of memory.
  const auto with_unsettled = [&](int64_t unsettled, int64_t bytes) {
    PlanBudget some = budget;
    some.device = bytes;
    cuda.search =
        plan_centre_search({rows, 0, shape.clusters, shape.cols, shape.dtype, request.kind(), !request.moves_centres}, device,
                           some, unsettled, asked);
    cuda.lists_rows = lists_rows();
    plan.checks_finite = request.check_finite && cuda.search.form != AssignForm::exact;
  };
  const auto fits = [&](int64_t piece, bool rows_stay, bool operands_stay, bool ahead) {
    plan.piece_rows = std::min(piece, whole_sum_blocks(rows + kSumBlock - 1));
    cuda.rows_stay = from_host && rows_stay;
    cuda.rows_ahead = ahead && plan.piece_rows < rows;
    cuda.operands_stay = operands_stay;
    plan.device_bytes = device_bytes(shape, request, plan);
    return plan.device_bytes <= budget.device;
  };
  // Rows that are used only once do not stay.
  const bool can_stay = request.moves_centres && request.batch_rows == 0;
  const int64_t largest = whole_sum_blocks(std::min(rows + kSumBlock - 1, kMostPiece));
  const int64_t streamed = std::min(largest, whole_sum_blocks(kDeviceReadBytes / row_bytes));
  const auto choose = [&] {
    for (const auto& [rows_stay, operands_stay] : {std::pair{true, true}, {true, false}}) {
      if (!can_stay) break;
      for (int64_t piece = shape.in_memory ? largest : streamed;; piece = whole_sum_blocks(piece / 2)) {
        if (fits(piece, rows_stay, operands_stay, false)) return true;
        if (piece <= kGoodPiece) break;
      }
    }
    const bool ahead = from_host && request.moves_centres;
    for (int64_t piece = from_host ? streamed : largest;; piece = whole_sum_blocks(piece / 2)) {
      if (fits(piece, false, false, ahead)) return true;
      if (piece == kSumBlock) return ahead && fits(piece, false, false, false);
    }
  };
  bool found = false;
  for (int64_t unsettled = kMostUnsettled; !found && unsettled >= kLeastUnsettled; unsettled /= 4) {
    with_unsettled(unsettled, budget.device / 4);
    found = choose();
  }
  if (!found) {
    with_unsettled(kLeastUnsettled, 0);
    (void)choose();
  }

  // If k-means++ does not fit, the host runs it, with the same centres.
  const bool chooses = request.sampled_rows > 0 || request.candidates > 0;
  const int64_t plus_plus = chooses ? plus_plus_bytes(shape, request) : INT64_MAX;
  // Candidates are drawn by the backend, whose memory is then taken already.
  cuda.plus_plus = plus_plus <= budget.device - (request.candidates > 0 ? plan.device_bytes : 0);
  const auto count_device_bytes = [&] {
    const int64_t own = device_bytes(shape, request, plan);
    const int64_t start = cuda.plus_plus ? plus_plus : 0;
    plan.device_bytes = request.candidates > 0 ? own + start : std::max(own, start);
  };
  count_device_bytes();
  for (;;) {
    plan.host_bytes = host_footprint(shape, request, plan, resources).host;
    if (plan.host_bytes <= budget.host) return plan;
    if (cuda.pinned_bytes > 0) {
      cuda.pinned_bytes = 0;
    } else if (from_host && cuda.plus_plus &&
               request.sampled_rows > 0) {  // by the host, from rows that are read anew for each centre
      cuda.plus_plus = false;
      plan.start_stays = false;
      count_device_bytes();
    } else if (request.sampled_rows > 0 && !cuda.plus_plus && std::exchange(plan.start_stays, false)) {
      continue;
    } else if (plan.piece_rows > kSumBlock) {
      plan.piece_rows = whole_sum_blocks(plan.piece_rows / 2);
      count_device_bytes();
    } else {
      return plan;
    }
  }
}

}  // namespace kith
