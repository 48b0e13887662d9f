// Plans of k-means: pure functions of the data's shape, the request, the device and the budget.
#pragma once

#include <kith/device.hpp>

#include "cluster/search/centre_search_plan.hpp"
#include "core/footprint.hpp"
#include "core/machine_model.hpp"
#include "core/plan_budget.hpp"
#include "kernels/panels/panel_format.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>
#include <variant>

namespace kith {

// The shape of the data: rows, and the number of centres.
struct KMeansShape : RowsInfo {
  int64_t clusters = 0;
  bool weighted = false;

  KMeansShape() = default;
  KMeansShape(const RowsInfo& info, int64_t count, bool with_weights = false)
      : RowsInfo(info), clusters(count), weighted(with_weights) {}
};

// The request.
struct KMeansRequest {
  bool spherical = false;
  bool moves_centres = true;      // else rows are only assigned
  int64_t passes = 1;             // over all rows, at most
  int64_t sampled_rows = 0;       // k-means++ chooses the first centres from, all or a sample
  int64_t candidates = 0;         // drawn in rounds, for the first centres
  int64_t batch_rows = 0;         // of a mini-batch, gathered; 0 for whole passes
  bool check_finite = false;      // rows that are not finite are refused in the first pass, where that costs nothing
  MemorySpace result_space = {};  // of labels and distances, where rows are only assigned

  KeyKind kind() const { return spherical ? KeyKind::inner_product : KeyKind::squared_l2; }
};

struct KMeansCpuPlan {};  // rows are assigned where they lie

struct KMeansCudaPlan {
  Device device;
  bool rows_stay = false;      // rows from the host are copied once and stay on the device
  bool rows_ahead = false;     // else: a piece of them comes while the one before it is worked on
  bool operands_stay = false;  // so do the operands of all rows
  bool plus_plus = false;      // k-means++ chooses there
  bool lists_rows = false;     // rows are added up by lists of a block's, not sorted (few_sums_cuda.cu)
  int64_t pinned_bytes = 0;    // host memory that rows pass through on their way
  CentreSearchPlan search;
};

struct KMeansPlan {
  int64_t piece_rows = 0;  // handed to the backend at a time: whole blocks of kSumBlock, or all rows
  int64_t host_bytes = 0;  // what the work allocates at its peak, results not included
  int64_t device_bytes = 0;
  PanelFormat format = PanelFormat::f32;  // of rows and centres that the CPU packs: for a GPU's k-means++ too
  bool checks_finite = false;  // rows that are not finite are refused by the first pass, or by one that only assigns
  bool start_stays = true;  // k-means++ on the host keeps its rows, packed; else reads and packs them for each centre
  std::variant<KMeansCpuPlan, KMeansCudaPlan> on;

  const KMeansCudaPlan* cuda() const { return std::get_if<KMeansCudaPlan>(&on); }  // null: on the CPU
  Device device() const { return cuda() == nullptr ? Device::cpu() : cuda()->device; }
  bool chooses_on_device() const { return cuda() != nullptr && cuda()->plus_plus; }
};

// The smallest plan where nothing fits.
KMeansPlan plan_kmeans_cpu(const KMeansShape& shape, const KMeansRequest& request, const PlanBudget& budget);
// `asked` is for tests: what the plan would otherwise choose itself.
KMeansPlan plan_kmeans_cuda(const KMeansShape& shape, const KMeansRequest& request, const DeviceInfo& device,
                            const PlanBudget& budget, ProductEngine asked = ProductEngine::automatic);

// For footprints of what so many threads work with.
Resources planning_resources(int threads);
// Host memory of both plans before the loop: for choosing the first centres, which takes `plus_plus`, and for surveying
// the data, a piece of rows at a time.
Footprint start_footprint(const KMeansShape& shape, const KMeansRequest& request, const Footprint& plus_plus, int64_t piece,
                          const Resources& resources);
// Memory of k-means++ on the host.
Footprint plus_plus_footprint(const KMeansShape& shape, const KMeansRequest& request, const KMeansPlan& plan,
                              const Resources& resources);
// Counts of the work, from which a device is chosen.
Counts work_of(const KMeansShape& shape, const KMeansRequest& request);

}  // namespace kith
