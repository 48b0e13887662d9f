// A copy of the lists on a device, and the steps of a search there: the coarse step is exact search over the centres,
// the rest is ivf_search_cuda.hpp. Calls wait for their end, so that memory may be freed whenever nobody searches.
#include "ivf/gpu_lists.hpp"

#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "ivf/gpu_centres_cuda.hpp"
#include "ivf/ivf_search_cuda.hpp"
#include "ivf/pack_probes_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

namespace kith {
namespace {

class GpuListsCuda final : public GpuLists {
 public:
  GpuListsCuda(int device, const IvfModel& model, const std::vector<Segment>& segments, const Resources& resources)
      : device_(device), metric_(model.metric), context_(allocation_context(device)) {
    const DeviceGuard guard(device);
    const Segment all = segments.size() == 1 ? segments[0] : merge_segments(segments, resources);
    const CodecView codec = model.codec->view();
    view_.kind = key_kind(model.metric);
    view_.codec.format = codec.format;
    view_.residual = model.residual;
    view_.lists = model.lists();
    view_.count = all->size();
    view_.offsets = upload(all->offsets(), view_.lists + 1, resources);
    view_.codes = upload(all->codes(), view_.count * all->code_bytes(), resources);
    view_.rows = upload(all->rows(), view_.count, resources);
    view_.codec.bases = upload(codec.bases, codec.bases == nullptr ? 0 : codec.format.cols, resources);
    view_.codec.steps = upload(codec.steps, codec.steps == nullptr ? 0 : codec.format.cols, resources);
    const bool product = codec.format.kind == CodeKind::product;
    view_.codec.codewords =
        upload(codec.codewords, product ? codec.format.codewords() * codec.format.cols : 0, resources);
    if (model.has_centres()) {
      centres_ = std::make_unique<GpuCentres>(device, metric_, model.centres.view(), resources);
      view_.centres = centres_->data();
    }
    const PreparedListsLayout layout(view_);
    prepared_ = layout.in(take(layout.bytes, resources), view_);
    launch_prepare_lists(view_, prepared_, context_->stream());
    context_->synchronize();
  }

  int64_t bytes() const override {
    int64_t total = centres_ == nullptr ? 0 : centres_->bytes();
    for (const DeviceBuffer& buffer : memory_) total += buffer.bytes();
    return total;
  }

  void search(const MatrixView& queries, const IvfSearch& search, bool check_finite, const NeighborsView& out,
              const Resources& given) const override {
    if (queries.rows() == 0) return;
    const DeviceGuard guard(device_);
    const auto context = std::make_shared<const DeviceContext>(device_, given.options().stream);
    const Resources resources = given.with_device(Device::cuda(device_)).with_stream(context->stream());
    const int64_t probes = std::min(search.probes, view_.lists);
    const int64_t together = std::clamp<int64_t>(kMostProbes / std::max<int64_t>(probes, search.k), 1, queries.rows());
    const auto buffer = [&](int64_t bytes, std::string_view purpose) {
      return DeviceBuffer(bytes, purpose, context, resources);
    };
    const int64_t row_bytes = queries.cols() * static_cast<int64_t>(sizeof(float));
    const bool here = !queries.space().host_readable();
    const bool out_here = !out.space.host_readable();
    const DeviceBuffer rows = buffer(here ? 0 : together * row_bytes, "queries on the device");
    const DeviceBuffer ranked = buffer(together * probes * 12, "the queries' lists");
    const DeviceBuffer packed = buffer(together * probes * 8, "the queries' lists");
    const DeviceBuffer found = buffer(together * search.k * 8, "the neighbours found");
    const DeviceBuffer kept = keep_bits(search, context, resources);
    IvfSearchShape shape;
    shape.format = view_.codec.format;
    shape.queries = together;
    shape.slots = probes;
    shape.k = search.k;
    shape.lists = view_.lists;
    shape.vectors = view_.count;
    const DeviceInfo gpu = usable_gpu(Device::cuda(device_));
    shape.multiprocessors = gpu.multiprocessors;
    // Others may run beside it.
    const int64_t most = std::min(gpu.memory_free / 2, resources.device_memory()->available());
    const IvfSearchPlan plan = plan_ivf_search(shape, most);
    const DeviceBuffer memory = buffer(plan.bytes, "the search of lists");
    HostArray<uint64_t> on_host(out_here ? 0 : together * search.k, "the neighbours found", resources);
    for (int64_t first = 0; first < queries.rows(); first += together) {
      resources.check_cancelled();
      const int64_t count = std::min(together, queries.rows() - first);
      MatrixView some = queries.slice(first, count);
      if (!here) some = bring(some, rows, *context);
      rank(some, probes, check_finite, ranked, packed, resources, context->stream());
      IvfSearchTask task;
      task.lists = view_;
      task.prepared = prepared_;
      task.queries = static_cast<const float*>(some.data());
      task.query_stride = some.row_stride();
      task.probes = reinterpret_cast<const uint64_t*>(packed.data());
      task.kept = search.kept == nullptr ? nullptr : reinterpret_cast<const uint64_t*>(kept.data());
      task.neighbors = reinterpret_cast<uint64_t*>(found.data());
      IvfSearchShape part = shape;
      part.queries = count;
      launch_ivf_search(task, part, plan, memory.data(), context->stream());
      deliver(task.neighbors, search.k, first, count, out, on_host, *context);
    }
    context->synchronize();
  }

 private:
  static constexpr int64_t kMostProbes = int64_t{1} << 24;  // of the queries searched together

  std::byte* take(int64_t bytes, const Resources& resources) {
    memory_.emplace_back(bytes, "the lists on the device", context_, resources);
    return memory_.back().data();
  }
  template <typename T>
  const T* upload(const T* from, int64_t count, const Resources& resources) {
    if (count == 0 || from == nullptr) return nullptr;
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    std::byte* const to = take(bytes, resources);
    context_->copy(to, from, bytes);
    return reinterpret_cast<const T*>(to);
  }

  DeviceBuffer keep_bits(const IvfSearch& search, const std::shared_ptr<const DeviceContext>& context,
                         const Resources& resources) const {
    if (search.kept == nullptr) return {};
    const int64_t bytes = array_bytes<uint64_t>(KeptRows::words_for(view_.count));
    DeviceBuffer bits(bytes, "the filter on the device", context, resources);
    context->copy(bits.data(), search.kept, bytes);
    return bits;
  }

  MatrixView bring(const MatrixView& some, const DeviceBuffer& rows, const DeviceContext& context) const {
    const auto width = static_cast<size_t>(some.cols()) * sizeof(float);
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(rows.data(), width, some.data(),
                                      static_cast<size_t>(some.row_stride()) * sizeof(float), width,
                                      static_cast<size_t>(some.rows()), cudaMemcpyHostToDevice, context.stream()));
    return {rows.data(), DType::f32, {some.rows(), some.cols(), some.cols()}, MemorySpace::cuda(device_)};
  }

  // The nearest lists of these queries.
  void rank(const MatrixView& queries, int64_t probes, bool check_finite, const DeviceBuffer& ranked,
            const DeviceBuffer& packed, const Resources& resources, cudaStream_t stream) const {
    auto* const to = reinterpret_cast<uint64_t*>(packed.data());
    if (centres_ == nullptr) {  // one list
      KITH_CUDA_CHECK(cudaMemsetAsync(to, 0, static_cast<size_t>(queries.rows()) * sizeof(uint64_t), stream));
      return;
    }
    auto* const lists = reinterpret_cast<int64_t*>(ranked.data());
    auto* const distances = reinterpret_cast<float*>(lists + queries.rows() * probes);
    centres_->nearest(queries, probes, check_finite, lists, distances, resources);
    launch_pack_probes(lists, queries.rows() * probes, to, stream);
  }

  void deliver(uint64_t* found, int64_t k, int64_t first, int64_t count, const NeighborsView& out,
               const HostArray<uint64_t>& on_host, const DeviceContext& context) const {
    const NeighborsView part{out.ids + first * k, out.distances + first * k, count, k, out.space};
    if (!out.space.host_readable()) {
      return launch_write_neighbors(metric_, {found, nullptr, count, k}, part, context.stream());
    }
    context.copy(on_host.data(), found, array_bytes<uint64_t>(count * k));
    context.synchronize();
    const ResultExit exit(metric_);
    for (int64_t i = 0; i < count * k; ++i) {
      part.ids[i] = exit.id(on_host[i]);
      part.distances[i] = exit.distance(on_host[i]);
    }
  }

  const int device_;
  const Metric metric_;
  const std::shared_ptr<const DeviceContext> context_;
  std::vector<DeviceBuffer> memory_;
  DeviceListsView view_;
  PreparedLists prepared_;
  std::unique_ptr<GpuCentres> centres_;
};

}  // namespace

std::shared_ptr<const GpuLists> make_gpu_lists(int device, const IvfModel& model, const std::vector<Segment>& segments,
                                               const Resources& resources) {
  return std::make_shared<GpuListsCuda>(device, model, segments, resources);
}

}  // namespace kith
