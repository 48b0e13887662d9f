#include "ranks/transfer.hpp"

#include <kith/error.hpp>

#include "cuda/device_memory.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

Device device_in(const MemorySpace& space) {
  return space.host_readable() ? Device::cpu() : Device::cuda(space.device);
}

}  // namespace

void check_owner(const void* data, const MemorySpace& space, std::string_view what) {
  if (space.host_readable() || data == nullptr) return;
  const int owner = device_of(data);
  if (owner == space.device) return;
  throw InvalidArgument(fmt::format("{} are said to lie in the memory of cuda:{}, and lie in that of cuda:{}", what,
                                    space.device, owner));
}

RowsOnPart::RowsOnPart(const MatrixView& rows, const Resources& part) : view_(rows) {
  if (rows.space().host_readable()) return;
  check_owner(rows.data(), rows.space(), "rows");
  if (part.device() == device_in(rows.space())) return;
  if (part.device().kind == DeviceKind::cuda) {
    const int64_t bytes = rows.rows() * rows.cols() * size_of(rows.dtype());
    on_device_ = allocate_on_device(bytes, "rows of another device", part.device().index, part);
    copy_to_device(rows, on_device_.get(), part.device().index, part);
    view_ = {on_device_.get(),
             rows.dtype(),
             {rows.rows(), rows.cols(), rows.cols()},
             MemorySpace::cuda(part.device().index)};
    return;
  }
  on_host_ = MatrixBuffer(rows.dtype(), rows.rows(), rows.cols(), "rows of another device", part);
  const MutableMatrixView here = on_host_.mutable_view();
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const bool packed = rows.row_stride() == rows.cols();
  if (packed) copy_to_host(rows.data(), rows.rows() * row_bytes, rows.space().device, here.data());
  for (int64_t i = 0; !packed && i < rows.rows(); ++i) {
    copy_to_host(rows.row(i), row_bytes, rows.space().device, here.row(i));
  }
  view_ = on_host_.view();
}

bool writes_to(const MemorySpace& space, const Resources& part) {
  return space.host_readable() || part.device() == device_in(space);
}

void transfer(const void* from, int64_t bytes, void* to, const MemorySpace& space, const Resources& resources) {
  transfer(from, MemorySpace::host(), bytes, to, space, resources);
}

void transfer(const void* from, const MemorySpace& from_space, int64_t bytes, void* to, const MemorySpace& space,
              const Resources& resources) {
  if (bytes == 0) return;
  check_owner(from, from_space, "what is handed over");
  check_owner(to, space, "results");
  const MatrixView view(from, DType::u8, {1, bytes, bytes}, from_space);
  copy_to_device(view, static_cast<std::byte*>(to), space.device, resources.with_device(Device::cuda(space.device)));
}

void wait_for_space(const MemorySpace& space, const Resources& resources) {
  if (!space.host_readable() && resources.options().stream != nullptr) wait_for_stream(space.device, resources);
}

}  // namespace kith
