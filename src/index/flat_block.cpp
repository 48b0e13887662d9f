#include "index/flat_block.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "cuda/device_memory.hpp"

#include <fmt/format.h>

#include <cstring>

namespace kith {
namespace {

void copy_rows(const MatrixView& from, const MutableMatrixView& to) {
  for (int64_t i = 0; i < from.rows(); ++i) {
    std::memcpy(to.row(i), from.row(i), static_cast<size_t>(from.cols() * size_of(from.dtype())));
  }
}

}  // namespace

std::shared_ptr<FlatBlock> FlatBlock::join(const std::vector<MatrixView>& parts, const Resources& resources) {
  constexpr std::string_view kPurpose = "the index's copy of the added rows";
  const MatrixView& last = parts.back();
  int64_t rows = 0;
  for (const MatrixView& part : parts) rows += part.rows();
  int64_t at = 0;
  if (last.space().host_readable()) {
    MatrixBuffer joined(last.dtype(), rows, last.cols(), kPurpose, resources);
    for (const MatrixView& part : parts) {
      copy_rows(part, joined.mutable_view().slice(at, part.rows()));
      at += part.rows();
    }
    return std::make_shared<FlatBlock>(std::move(joined));
  }
  const int device = last.space().device;
  const int64_t row_bytes = last.cols() * size_of(last.dtype());
  std::shared_ptr<std::byte> memory = allocate_on_device(rows * row_bytes, kPurpose, device, resources);
  for (const MatrixView& part : parts) {
    copy_to_device(part, memory.get() + at * row_bytes, device, resources);
    at += part.rows();
  }
  const MatrixView joined(memory.get(), last.dtype(), {rows, last.cols(), last.cols()}, last.space());
  return std::make_shared<FlatBlock>(std::move(memory), joined);
}

FlatBlock::~FlatBlock() {
  const auto wait = [](int device) {
    try {
      wait_for_device(device);
    } catch (...) {  // a device that is gone reads nothing
    }
  };
  if (device_memory_ != nullptr) wait(view_.space().device);
  for (const auto& [device, ready] : prepared_) {
    if (device.kind == DeviceKind::cuda) wait(device.index);
  }
}

std::shared_ptr<PreparedBase> FlatBlock::find(Device device, DType queries) const {
  for (const auto& [candidate, ready] : prepared_) {
    if (candidate == device && ready->serves(queries)) return ready;
  }
  return nullptr;
}

std::shared_ptr<PreparedBase> FlatBlock::prepared(Device device, DType queries) const {
  const std::lock_guard lock(mutex_);
  return find(device, queries);
}

std::shared_ptr<PreparedBase> FlatBlock::prepare(Device device, const PrepareOptions& options,
                                                 const Resources& resources) const {
  if (auto ready = prepared(device, options.queries)) return ready;
  std::shared_ptr<PreparedBase> made;
  try {
    made = dispatch(
        device, [&] { return prepare_base_cpu(view_, options, resources); },
        [&](int index) { return prepare_base_cuda(index, view_, options, resources); });
  } catch (const OutOfMemory& error) {
    resources.log(LogLevel::info, fmt::format("the index is searched without a prepared copy: {}", error.what()));
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (auto ready = find(device, options.queries)) return ready;
  prepared_.emplace_back(device, made);
  return made;
}

}  // namespace kith
