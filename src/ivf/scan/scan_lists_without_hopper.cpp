// Stands in for scans of lists on Hopper's matrix units in builds for other GPUs, where product_engine() never chooses
// them.
#include "cuda/without_hopper.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"

namespace kith {

void launch_scan_wgmma(const ScanListsTask&, bool, cudaStream_t) { throw_no_hopper(); }
void launch_scan_wide(const ScanListsTask&, bool, cudaStream_t) { throw_no_hopper(); }

}  // namespace kith
