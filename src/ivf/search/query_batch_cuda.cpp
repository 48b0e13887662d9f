#include "ivf/search/query_batch_cuda.hpp"

#include "ivf/search/pack_probes_cuda.hpp"

namespace kith {

QueryBatch::QueryBatch(const GpuModelCuda& model, const MatrixView& queries, int64_t together, int64_t probes,
                       bool check_finite, std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : model_(model),
      all_(queries),
      probes_(probes),
      check_finite_(check_finite),
      context_(std::move(context)),
      resources_(resources),
      rows_(queries.space().host_readable() ? together * queries.cols() : 0, "queries on the device", context_,
            resources),
      lists_(together * probes, "the queries' lists", context_, resources),
      distances_(together * probes, "the queries' lists", context_, resources),
      packed_(together * probes, "the queries' lists", context_, resources) {}

void QueryBatch::load(int64_t first, int64_t count) {
  now_ = all_.slice(first, count);
  if (all_.space().host_readable()) {
    const auto width = static_cast<size_t>(now_.cols()) * sizeof(float);
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(rows_.data(), width, now_.data(),
                                      static_cast<size_t>(now_.row_stride()) * sizeof(float), width,
                                      static_cast<size_t>(count), cudaMemcpyHostToDevice, context_->stream()));
    now_ = {rows_.data(), DType::f32, {count, now_.cols(), now_.cols()}, MemorySpace::cuda(context_->device())};
  }
  if (model_.centres() == nullptr) {  // one list
    return context_->fill(probes(), 0, count);
  }
  model_.centres()->nearest(now_, probes_, check_finite_, lists_.data(), distances_.data(), resources_);
  launch_pack_probes(lists_.data(), count * probes_, probes(), context_->stream());
}

}  // namespace kith
