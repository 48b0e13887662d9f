#include "ivf/scan/scan_lists_cuda.hpp"

#include "cuda/error.hpp"
#include "ivf/scan/scan_engines_cuda.hpp"
#include "ivf/scan/scan_units.hpp"

namespace kith {
namespace {

// Of the current device.
ProductEngine engine_for(const ScanListsTask& task) {
  int device = 0;
  int major = 0;
  int minor = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return product_engine(10 * major + minor, task.engine);
}

void launch(const ScanListsTask& given, bool first, cudaStream_t stream) {
  if (given.tables) return launch_scan_tables(given, first, stream);
  if (scans_sums(given)) return launch_scan_sums(given, first, stream);
  ScanListsTask task = given;
  task.lists.codes = given.scanned();
  // Cosine's factors would double the code of warpgroups' kernels.
  const bool suits = task.lists.codec.format.cols <= kNarrowSteps * 16 && task.lists.kind != KeyKind::cosine;
  if (suits && engine_for(task) == ProductEngine::wgmma) return launch_scan_wgmma(task, first, stream);
  launch_scan_mma(task, first, stream);
}

}  // namespace

void launch_scan_first(const ScanListsTask& task, cudaStream_t stream) { launch(task, true, stream); }
void launch_scan_later(const ScanListsTask& task, cudaStream_t stream) { launch(task, false, stream); }

}  // namespace kith
