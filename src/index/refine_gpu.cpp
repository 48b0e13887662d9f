#include "index/refine_gpu.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "cuda/device_info.hpp"
#include "cuda/device_memory.hpp"
#include "graph/handle/graph_output.hpp"
#include "rows/float_rows.hpp"
#include "rows/host_rows.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kDeviceShare = 8;  // of the device's free memory: the first search needs the most
constexpr int64_t kMostCandidates = 4096;
constexpr int64_t kSharedBytes = 96 << 10;  // that a block has on every GPU from compute capability 8.0 on

// Queries as f32 on a GPU, in batches; those that are so already are not copied.
class QueriesOnDevice {
 public:
  static int64_t bytes_for_each(const MatrixView& queries) {
    return is_there(queries) ? 0 : array_bytes<float>(queries.cols());
  }

  QueriesOnDevice(int device, const MatrixView& queries, int64_t together, const Resources& resources)
      : device_(device), all_(queries), resources_(resources) {
    if (is_there(queries)) return;
    there_ = FloatRows(MemorySpace::cuda(device), together, queries.cols(), "queries on the device", resources);
  }

  MatrixView load(int64_t first, int64_t count) const {
    const MatrixView some = all_.slice(first, count);
    if (is_there(all_)) return some;
    const MutableMatrixView loaded = there_.view().slice(0, count);
    const HostRows rows(some, resources_);
    MatrixView from = rows.view();
    MatrixBuffer wide;
    if (some.dtype() != DType::f32) {
      wide = MatrixBuffer(DType::f32, count, some.cols(), "queries as f32", resources_);
      if (counts_only(resources_)) return loaded;
      for (int64_t i = 0; i < count; ++i) widen_row(from, i, typed_row<float>(wide.mutable_view(), i));
      from = wide.view();
    }
    copy_to_device(from, loaded.row(0), device_, resources_);
    return loaded;
  }

 private:
  static bool is_there(const MatrixView& queries) {
    return !queries.space().host_readable() && queries.dtype() == DType::f32;
  }

  const int device_;
  const MatrixView all_;
  const Resources resources_;
  FloatRows there_;
};

}  // namespace

std::shared_ptr<const RowCodes> RowCodes::copied_to(Device device, const Resources& given) const {
  const Resources resources = given.with_progress({});
  const std::shared_ptr<std::byte> there =
      allocate_on_device(bytes_, "vectors to refine with on the device", device.index, resources);
  copy_to_device({data_, DType::u8, {1, bytes_, bytes_}}, there.get(), device.index, resources);
  return std::make_shared<const RowCodes>(reinterpret_cast<const uint8_t*>(there.get()), rows_, bytes_,
                                          MemorySpace::cuda(device.index), there);
}

bool suits_gpu_refine(const CodeFormat& format, Metric metric, int64_t candidates) {
  const bool known = metric == Metric::l2 || metric == Metric::sqeuclidean || metric == Metric::inner_product ||
                     metric == Metric::cosine;
  const int64_t bytes = array_bytes<uint64_t>(candidates) + array_bytes<double>(format.cols + 16);
  return known && !format.adds_codewords() && candidates <= kMostCandidates && bytes <= kSharedBytes;
}

void search_and_refine_on_gpu(const RefineTask& task, const GpuCodes& codes, const MatrixView& queries,
                              const NeighborsView& out, const Resources& resources) {
  if (out.queries == 0) return;
  const int device = codes.device;
  const int64_t candidates = task.coarse.k;
  const int64_t each = footprint_of<Neighbors>(resources, int64_t{1}, candidates + out.k).host +
                       QueriesOnDevice::bytes_for_each(queries);
  const int64_t room = device_memory_left(device, resources) / kDeviceShare;
  const int64_t together = counts_only(resources) ? 1 : std::clamp<int64_t>(room / each, 1, out.queries);
  const QueriesOnDevice there(device, queries, together, resources);
  const GraphOutput found({together, candidates, MemorySpace::cuda(device)}, resources);
  const bool to_host = out.space.host_readable();
  const GraphOutput refined({to_host ? together : 0, out.k, MemorySpace::cuda(device)}, resources);
  ProgressMeter meter("refine", out.queries, resources);
  for (int64_t first = 0; first < (counts_only(resources) ? 1 : out.queries); first += together) {
    resources.check_cancelled();
    const int64_t count = std::min(together, out.queries - first);
    const MatrixView some = there.load(first, count);
    NeighborsView near = found.view();
    near.queries = count;
    task.first.search(some, near, task.coarse, resources);
    const NeighborsView part{out.ids + first * out.k, out.distances + first * out.k, count, out.k, out.space};
    NeighborsView to = to_host ? refined.view() : part;
    to.queries = count;
    refine_on_gpu(codes, task.metric, some, near, to, resources);
    if (to_host) copy_neighbors(to, part, resources);
    meter.add(count);
  }
  meter.finish();
}

}  // namespace kith
