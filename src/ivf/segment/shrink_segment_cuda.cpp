// without_on_device() of device_segment.hpp.
#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "ivf/segment/device_segment.hpp"
#include "ivf/segment/segment_arrays_cuda.hpp"
#include "ivf/segment/shrink_lists_cuda.hpp"

namespace kith {

SegmentThere without_on_device(const DeviceSegment& segment, const KeptRows& kept, int64_t rows,
                               const Resources& resources) {
  const DeviceGuard guard(segment.device());
  const auto context = std::make_shared<const DeviceContext>(segment.device(), resources.options().stream);
  const int64_t bit_bytes = array_bytes<uint64_t>(KeptRows::words_for(rows));
  const int64_t rank_bytes = array_bytes<uint32_t>(KeptRows::ranks_for(rows));
  const int64_t runs = shrink_runs(segment.size());
  constexpr std::string_view kPurpose = "the removal from lists";
  const DeviceBuffer bits(bit_bytes, kPurpose, context, resources);
  const DeviceBuffer ranks(rank_bytes, kPurpose, context, resources);
  const DeviceBuffer before(array_bytes<uint32_t>(runs + 1), kPurpose, context, resources);
  context->copy(bits.data(), kept.bits(), bit_bytes);
  context->copy(ranks.data(), kept.ranks(), rank_bytes);
  const KeptBits there{reinterpret_cast<const uint64_t*>(bits.data()), reinterpret_cast<const uint32_t*>(ranks.data())};
  auto* const counts = reinterpret_cast<uint32_t*>(before.data());
  launch_count_kept(arrays_of(segment), there, counts, context->stream());
  uint32_t stay = 0;
  context->copy(&stay, counts + runs, sizeof stay);
  context->synchronize();
  const auto left = std::make_shared<DeviceSegment>(segment.device(), segment.lists(), stay, segment.code_bytes(), resources);
  launch_keep_vectors(arrays_of(segment), segment.lists(), segment.code_bytes(), there, counts, arrays_of(*left),
                      context->stream());
  context->synchronize();
  return left;
}

}  // namespace kith
