#include "index/graph_gpu.hpp"

#include "core/within_limits.hpp"
#include "index/refine_gpu.hpp"

namespace kith {
namespace {

constexpr std::string_view kGraphPurpose = "the graph on the device";
constexpr int64_t kCompareShared = 64 << 10;  // shared memory of a block that compares candidates

template <typename Array>
GpuBytes copied(const Array& array, int64_t count, int device, const Resources& resources) {
  return GpuBytes(array.data(), count * static_cast<int64_t>(sizeof(array[0])), device, resources);
}

// Copies lists to contiguous device memory, even if they are in pages on the host.
GpuBytes copied_lists(const WalkLists& lists, int device, const Resources& resources) {
  const int64_t count = lists.places() * lists.degree();
  if (lists.flat() != nullptr) {
    return GpuBytes(lists.flat(), count * static_cast<int64_t>(sizeof(uint32_t)), device, resources);
  }
  const HostArray<uint32_t> together(count, kGraphPurpose, resources);
  if (!counts_only(resources)) lists.copy_to(together.data(), resources);
  return copied(together, count, device, resources);
}

// The squared norms of the centres' codes; empty if centres are not codes.
GpuBytes norms_of(const WalkGraph& graph, int device, const Resources& resources) {
  if (!graph.coder.has_codes()) return {};
  const WalkRows centres = graph.coder.centres_of(graph.centres.data(), graph.cells);
  const HostArray<uint32_t> norms(graph.cells, kGraphPurpose, resources);
  for (int64_t cell = 0; cell < graph.cells && !counts_only(resources); ++cell) {
    norms[cell] = squared_code_norm(centres, cell);
  }
  return copied(norms, graph.cells, device, resources);
}

}  // namespace

WalkGraphOnGpu::WalkGraphOnGpu(std::shared_ptr<const WalkGraph> graph, int device, const Resources& resources,
                               const WalkArraysOnGpu& made)
    : source(std::move(graph)),
      codes(made.there() ? made.codes
                         : copied(source->codes, source->order.places() * source->coder.place_bytes(), device,
                                  resources)),
      edges(made.there() ? made.edges : copied_lists(source->edges, device, resources)),
      centres(copied(source->centres, source->centres.size(), device, resources)),
      entry_offsets(copied(source->entry_offsets, source->cells + 1, device, resources)),
      entries(copied(source->entries, source->entries.size(), device, resources)),
      place_offsets(copied(source->order.offsets(), source->order.places() + 1, device, resources)),
      place_rows(copied(source->order.rows(), source->order.row_count(), device, resources)),
      offsets(source->coder.offsets().data(), static_cast<int64_t>(source->coder.offsets().size() * sizeof(float)),
              device, resources),
      centre_norms(norms_of(*source, device, resources)) {}

int64_t WalkGraphOnGpu::bytes() const {
  return codes.bytes() + edges.bytes() + centres.bytes() + entry_offsets.bytes() + entries.bytes() +
         place_offsets.bytes() + place_rows.bytes() + offsets.bytes() + centre_norms.bytes();
}

PlaceRows WalkGraphOnGpu::rows() const {
  const PlaceOrder& order = source->order;
  return {place_offsets.as<uint32_t>(), place_rows.as<uint32_t>(), order.places(), order.row_count()};
}

WalkTaskCuda WalkGraphOnGpu::task() const {
  const WalkCoder& coder = source->coder;
  WalkTaskCuda task;
  task.kind = coder.kind();
  task.codes = codes.as<int8_t>();
  task.centres = centres.as<int8_t>();
  task.places = source->order.places();
  task.stride = coder.code_columns();
  task.packed = coder.packed();
  task.edges = edges.as<uint32_t>();
  task.degree = static_cast<int>(source->degree);
  task.cells = static_cast<int>(source->cells);
  task.entry_offsets = entry_offsets.as<uint32_t>();
  task.entries = entries.as<uint32_t>();
  task.centre_norms = centre_norms.as<uint32_t>();
  task.rows = rows();
  task.offsets = offsets.as<float>();
  task.inverse_step = 1.0 / static_cast<double>(coder.step());
  task.widest = static_cast<double>(coder.widest());
  task.unit_length = coder.unit_length();
  task.cols = coder.cols();
  return task;
}

std::shared_ptr<const CodecOnDevice> GraphRowsOnGpu::codec_of(const Contents& contents, int device,
                                                              const Resources& resources) {
  return contents.codec == nullptr ? nullptr : codec_on_gpu(device, *contents.codec, resources);
}

int64_t GraphRowsOnGpu::bytes() const {
  return vectors.bytes() + tail.bytes() + (codec == nullptr ? 0 : codec->bytes());
}

bool suits_gpu_walk(const WalkCoder& coder, const GraphPlan& plan, int64_t places, int64_t degree, int64_t k) {
  if (!coder.has_codes()) return false;
  const int64_t compared = array_bytes<double>(coder.cols() + 16) + array_bytes<uint64_t>(plan.candidates + k + 256);
  return compared <= kCompareShared &&
         suits_walk_cuda(places, plan.walk.beam, plan.walk.kept, degree, coder.code_columns());
}

}  // namespace kith
