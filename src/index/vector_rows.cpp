#include "index/vector_rows.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr std::string_view kRowsPurpose = "the index's copy of the added rows";

void copy_rows(const MatrixView& from, const MutableMatrixView& to, ProgressMeter& meter, const Resources& resources) {
  constexpr int64_t kTaskBytes = 1 << 20;
  const int64_t row_bytes = from.cols() * size_of(from.dtype());
  const int64_t step = std::max<int64_t>(kTaskBytes / row_bytes, 1);
  parallel_for(divide_up(from.rows(), step), meter, resources, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * step, from.rows());
    for (int64_t i = task * step; i < end; ++i) std::memcpy(to.row(i), from.row(i), static_cast<size_t>(row_bytes));
    meter.add(end - task * step);
  });
}

std::shared_ptr<const VectorRows> join_on_host(const std::vector<MatrixView>& parts, int64_t rows,
                                               const Resources& resources) {
  MatrixBuffer joined(parts.back().dtype(), rows, parts.back().cols(), kRowsPurpose, resources);
  ProgressMeter meter("copy", rows, resources);
  int64_t at = 0;
  for (const MatrixView& part : parts) {
    copy_rows(part, joined.mutable_view().slice(at, part.rows()), meter, resources);
    at += part.rows();
  }
  meter.finish();
  return std::make_shared<const VectorRows>(std::move(joined));
}

std::shared_ptr<const VectorRows> join_on_device(const std::vector<MatrixView>& parts, int64_t rows,
                                                 const Resources& resources) {
  const MatrixView& last = parts.back();
  const int device = last.space().device;
  const int64_t row_bytes = last.cols() * size_of(last.dtype());
  std::shared_ptr<std::byte> memory = allocate_for_searches(rows * row_bytes, kRowsPurpose, device, resources);
  int64_t at = 0;
  for (const MatrixView& part : parts) {
    copy_to_device(part, memory.get() + at * row_bytes, device, resources);
    at += part.rows();
  }
  const MatrixView joined(memory.get(), last.dtype(), {rows, last.cols(), last.cols()}, last.space());
  return std::make_shared<const VectorRows>(joined, std::move(memory));
}

}  // namespace

std::shared_ptr<const VectorRows> VectorRows::join(const std::vector<MatrixView>& parts, const Resources& resources) {
  int64_t rows = 0;
  for (const MatrixView& part : parts) rows += part.rows();
  return parts.back().space().host_readable() ? join_on_host(parts, rows, resources)
                                              : join_on_device(parts, rows, resources);
}

Layout find_layout(const VectorSegment& segment, Device device, DType queries) {
  return segment.prepared().find(device, [&](const PreparedBase& layout) { return layout.serves(queries); });
}

Layout get_layout(const VectorSegment& segment, Device device, const PrepareOptions& options,
                  const Resources& resources) {
  if (Layout ready = find_layout(segment, device, options.queries)) return ready;
  const MatrixView& rows = segment.made().view();
  Layout made;
  try {
    made = dispatch(
        device, [&] { return prepare_base_cpu(rows, options, resources); },
        [&](int index) -> std::shared_ptr<PreparedBase> {
          const auto prepare = [&](const Resources& used) { return prepare_base_cuda(index, rows, options, used); };
          const int64_t room = std::min(resources.device_memory()->available() / 2, SpareDeviceMemory::of(resources));
          const bool fits = !counts_memory(resources) || footprint_of_call(resources, prepare).device <= room;
          return fits ? prepare(resources) : nullptr;
        });
  } catch (const OutOfMemory& error) {
    resources.log(LogLevel::info, fmt::format("the index is searched without a prepared copy: {}", error.what()));
    return nullptr;
  }
  if (made == nullptr) return nullptr;
  return segment.prepared().keep(device, std::move(made),
                                 [&](const PreparedBase& layout) { return layout.serves(options.queries); });
}

}  // namespace kith
