// The segments of an index on a device, and calls of its searches there. They wait for their end, so that memory may be
// freed whenever nobody searches.
#include "ivf/search/gpu_lists.hpp"

#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "cuda/device_guard.hpp"
#include "ivf/search/list_range_search_cuda.hpp"
#include "ivf/search/list_search_cuda.hpp"

namespace kith {
namespace {

class GpuListsCuda final : public GpuLists {
 public:
  GpuListsCuda(int device, std::shared_ptr<const IvfModel> model, const std::vector<SharedSegment>& segments,
               const Resources& resources)
      : device_(device), host_model_(std::move(model)), model_(gpu_model(device, *host_model_, resources)) {
    for (const SharedSegment& segment : segments) {
      rows_ += segment->size();
      if (segment->size() == 0) continue;
      parts_.push_back(prepared_segment(device, *segment, *host_model_, model_, resources));
    }
  }

  void search(const MatrixView& queries, const IvfSearch& search, int64_t least, bool check_finite,
              const NeighborsView& out, const Resources& given) const override {
    if (queries.rows() == 0 || parts_.empty()) return;
    with_context(given, [&](const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
      const DeviceArray<uint64_t> bits = bits_on_device(search.kept, rows_, context, resources);
      ListSearch(host_model_->metric, *model_, parts_, search, bits.data(), least, context, resources)
          .run(queries, check_finite, out);
    });
  }

  void range_search(const MatrixView& queries, const IvfRange& range, bool check_finite, RangeHits& hits,
                    const Resources& given) const override {
    with_context(given, [&](const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
      const DeviceArray<uint64_t> bits = bits_on_device(range.kept, rows_, context, resources);
      search_lists_in_range(*model_, parts_, queries, range, bits.data(), check_finite, hits, context, resources);
    });
  }

 private:
  template <typename Use>
  void with_context(const Resources& given, const Use& use) const {
    const DeviceGuard guard(device_);
    const auto context = std::make_shared<const DeviceContext>(device_, given.options().stream);
    use(context, given.with_device(Device::cuda(device_)).with_stream(context->stream()));
  }

  const int device_;
  const std::shared_ptr<const IvfModel> host_model_;
  const std::shared_ptr<const GpuModelCuda> model_;
  GpuParts parts_;
  int64_t rows_ = 0;
};

}  // namespace

std::shared_ptr<const GpuLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                          const std::vector<SharedSegment>& segments, const Resources& resources) {
  return std::make_shared<GpuListsCuda>(device, model, segments, resources);
}

}  // namespace kith
