#include "cuda/device_memory.hpp"

#include <kith/error.hpp>

#include "cuda/device_buffer.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/device_info.hpp"
#include "cuda/row_upload.hpp"

namespace kith {
namespace {

// Not on a caller's stream, which might not live as long as the memory.
std::shared_ptr<DeviceBuffer> allocate(int64_t bytes, std::string_view purpose, int device,
                                       const Resources& resources) {
  const DeviceGuard guard(device);
  const auto context = allocation_context(device, resources);
  auto buffer = std::make_shared<DeviceBuffer>(bytes, purpose, context, resources);
  context->synchronize();
  return buffer;
}

}  // namespace

std::shared_ptr<std::byte> allocate_on_device(int64_t bytes, std::string_view purpose, int device,
                                              const Resources& resources) {
  const std::shared_ptr<DeviceBuffer> buffer = allocate(bytes, purpose, device, resources);
  buffer->free_in_order_of(after_default_context(device));
  return {buffer, buffer->data()};
}

std::shared_ptr<std::byte> allocate_for_searches(int64_t bytes, std::string_view purpose, int device,
                                                 const Resources& resources) {
  const std::shared_ptr<DeviceBuffer> buffer = allocate(bytes, purpose, device, resources);
  buffer->free_in_order_of(freeing_context(device));
  return {buffer, buffer->data()};
}

void copy_to_device(const MatrixView& from, std::byte* to, int device, const Resources& resources) {
  const DeviceGuard guard(device);
  const DeviceContext context(device, resources.options().stream);
  const int64_t bytes = from.rows() * from.cols() * size_of(from.dtype());
  RowUpload upload(wants_pinned(from.space(), bytes, resources), resources);
  ProgressMeter meter("copy", from.rows(), resources);
  upload.copy(from, to, context.stream(), meter);
  context.synchronize();
  meter.finish();
}

void copy_to_host(const void* from, int64_t bytes, int device, void* to) {
  const DeviceGuard guard(device);
  const DeviceContext context(device);  // on a stream of its own, which is ordered after the default stream
  KITH_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, context.stream()));
  context.synchronize();
}

void wait_for_stream(int device, const Resources& resources) {
  const auto stream = static_cast<cudaStream_t>(resources.options().stream);
  if (is_counted_only(stream)) return;
  const DeviceGuard guard(device);
  KITH_CUDA_CHECK(cudaStreamSynchronize(stream == nullptr ? cudaStreamLegacy : stream));
}

void wait_for_device(int device) {
  if (cuda_device_when_idle(device).device.kind != DeviceKind::cuda) return;
  const DeviceGuard guard(device);
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
}

int device_of(const void* pointer) {
  cudaPointerAttributes attributes = {};
  KITH_CUDA_CHECK(cudaPointerGetAttributes(&attributes, pointer));
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) {
    throw InvalidArgument("the pointer of __cuda_array_interface__ is none of a CUDA device's memory");
  }
  return attributes.device;
}

}  // namespace kith
