#include "ivf/scan/scan_terms_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "ivf/scan/lookup_tables_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

// The mean of so many centres, which is amid them well enough. A thread for each column.
__global__ void __launch_bounds__(kLookupThreads)
    middle_kernel(const __grid_constant__ DeviceListsView lists, const float* largest, float* middle) {
  constexpr int64_t kMostCentres = 1024;
  const auto cols = static_cast<int>(lists.codec.format.cols);
  const auto col = static_cast<int>(threadIdx.x);
  if (col >= cols) return;
  const int64_t count = lists.lists < kMostCentres ? lists.lists : kMostCentres;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; lists.has_origin() && i < count; ++i) {
    const float value = lists.centres[i * lists.lists / count * cols + col];
    if (!(fabsf(value) < 1e30f)) continue;
    sum += value;
    ++finite;
  }
  middle[col] = finite == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(finite) * operand_scale(*largest));
}

// Entries |w|^2 + 2 <c, w>, c less the middle.
__global__ void __launch_bounds__(kLookupThreads)
    list_terms_kernel(const __grid_constant__ DeviceListsView lists, const __grid_constant__ PreparedLists prepared,
                      const __grid_constant__ ScanTerms terms) {
  extern __shared__ __align__(16) float tables[];
  __shared__ float centre[kLookupCols];
  const CodeFormat& format = lists.codec.format;
  const auto cols = static_cast<int>(format.cols);
  const auto thread = static_cast<int>(threadIdx.x);
  const float scale = operand_scale(*prepared.largest);
  for (int64_t list = blockIdx.x; list < lists.lists; list += gridDim.x) {
    const int64_t begin = lists.offsets[list];
    const int64_t end = lists.offsets[list + 1];
    if (begin == end && terms.tables == nullptr) continue;
    __syncthreads();  // the list before is done
    if (thread < cols) {
      const float own = lists.has_origin() ? lists.centres[list * cols + thread] : 0.0f;
      centre[thread] = fmaf(own, scale, -terms.middle[thread]);
    }
    __syncthreads();
    float* const out = terms.tables == nullptr ? tables : terms.tables + list * format.parts * 256;
    fill_lookup_tables(format, prepared.table, centre, out,
                       [](float sum, float c, float word) { return fmaf(word, fmaf(2.0f, c, word), sum); });
    if (terms.vectors == nullptr) continue;
    __syncthreads();
    for (int64_t position = begin + thread; position < end; position += kLookupThreads) {
      terms.vectors[position] = look_up(tables, lists.codes + position * format.parts, format.parts);
    }
  }
}

}  // namespace

void launch_scan_terms(const DeviceListsView& lists, const PreparedLists& prepared, const ScanTerms& terms,
                       cudaStream_t stream) {
  if (terms.term == ScanTerm::none) return;
  launch(middle_kernel, Grid::of(1, kLookupThreads), stream, lists, prepared.largest, terms.middle);
  constexpr int64_t kMostBlocks = 1 << 16;
  const int64_t shared = terms.tables == nullptr ? lists.codec.format.parts * 256 * 4 : 0;
  allow_all_shared_memory(list_terms_kernel);
  launch(list_terms_kernel, Grid::of(std::min(lists.lists, kMostBlocks), kLookupThreads).with_shared(shared), stream,
         lists, prepared, terms);
}

}  // namespace kith
