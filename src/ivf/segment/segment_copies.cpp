#include "ivf/segment/segment_copies.hpp"

#include <kith/error.hpp>

#include "cuda/resolve_device.hpp"
#include "ivf/segment/code_rows_cuda.hpp"
#include "quantize/codec_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

SegmentCopies::SegmentCopies(Segment on_host)
    : size_(on_host->size()), lists_(on_host->lists()), made_here_(on_host), here_(std::move(on_host)) {}

SegmentCopies::SegmentCopies(SegmentThere there, const Resources& resources)
    : size_(there->size()),
      lists_(there->lists()),
      space_(MemorySpace::cuda(there->device())),
      offsets_(download_offsets(*there, resources)) {
  keep(std::move(there));
}

Segment SegmentCopies::on_host(const Resources& resources) const {
  {
    const std::lock_guard lock(mutex_);
    if (here_ != nullptr) return here_;
  }
  Segment made = download_segment(*there_.find(space_.device), resources);
  const std::lock_guard lock(mutex_);
  if (here_ == nullptr) here_ = std::move(made);
  return here_;
}

SegmentThere SegmentCopies::on_device(int device, const Resources& resources) const {
  return there_.get(device, [&] { return upload_segment(device, *on_host(resources), resources); });
}

int64_t SegmentCopies::host_bytes() const {
  const std::lock_guard lock(mutex_);
  return offsets_.bytes() + (here_ == nullptr ? 0 : here_->bytes());
}

namespace {

Device coding_device(const IvfModel& model, const MatrixView& rows, const Resources& resources) {
  const CodeRecipe& recipe = model.codec->recipe();
  const auto count = static_cast<double>(rows.rows());
  const double compared =
      static_cast<double>(model.has_centres() ? model.lists() : 0) + recipe.code->compared_codewords(recipe);
  DeviceRequest request;
  request.job = "the coding of vectors";
  request.spaces = {rows.space()};
  request.work = {2 * count * compared * static_cast<double>(rows.cols()),
                  count * static_cast<double>(rows.cols() * size_of(rows.dtype())), 2e14};
  request.fits = [&](Device) { return recipe.code->on_gpus(); };
  request.description = [&] { return fmt::format("{} rows for {} lists", rows.rows(), model.lists()); };
  return resolve_device(request, resources);
}

// As many rows at a time as the device has room for.
SharedSegment make_on_gpu(int device, const IvfModel& model, const MatrixView& rows, int64_t first_row,
                          const Resources& resources) {
  const bool stays = !rows.space().host_readable();
  const int64_t together = rows_coded_together(device, model, resources);
  std::vector<SegmentThere> there;
  std::vector<Segment> here;
  for (int64_t first = 0; first < rows.rows() || first == 0; first += together) {
    const MatrixView some = rows.slice(first, std::min(together, rows.rows() - first));
    SegmentThere part = code_rows_cuda(device, model, some, first_row + first, resources);
    if (stays) {
      there.push_back(std::move(part));
    } else {
      here.push_back(download_segment(*part, resources));
    }
  }
  if (stays) return std::make_shared<SegmentCopies>(merge_on_device(there, resources), resources);
  return std::make_shared<SegmentCopies>(here.size() == 1 ? here[0] : merge_segments(here, resources));
}

// Of all segments on a device, those that it lacks uploaded.
SegmentThere merged_on(int device, const std::vector<SharedSegment>& segments, const Resources& resources) {
  std::vector<SegmentThere> there;
  there.reserve(segments.size());
  for (const SharedSegment& segment : segments) there.push_back(segment->on_device(device, resources));
  return merge_on_device(there, resources);
}

}  // namespace

SharedSegment make_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row,
                           const Resources& resources) {
  const Device device = coding_device(model, rows, resources);
  if (device.kind == DeviceKind::cuda) {
    try {
      return make_on_gpu(device.index, model, rows, first_row, resources);
    } catch (const OutOfMemory& error) {
      if (resources.device().kind != DeviceKind::automatic || !rows.space().host_readable()) throw;
      resources.log(LogLevel::info, fmt::format("vectors are coded on the CPU: {}", error.what()));
    }
  }
  return std::make_shared<SegmentCopies>(build_segment(model, rows, first_row, resources));
}

SharedSegment merge_copies(const std::vector<SharedSegment>& segments, const Resources& resources) {
  if (segments.size() == 1) return segments.front();
  const MemorySpace space = segments.back()->space();
  if (!space.host_readable()) {
    return std::make_shared<SegmentCopies>(merged_on(space.device, segments, resources), resources);
  }
  std::vector<Segment> here;
  here.reserve(segments.size());
  for (const SharedSegment& segment : segments) here.push_back(segment->on_host(resources));
  const auto merged = std::make_shared<const SegmentCopies>(merge_segments(here, resources));
  if (resources.device() == Device::cpu()) return merged;
  for (const int device : segments.front()->devices()) {
    if (resources.device().kind == DeviceKind::cuda && resources.device().index != device) continue;
    try {
      merged->keep(merged_on(device, segments, resources));
    } catch (const OutOfMemory&) {
      resources.log(LogLevel::info, fmt::format("the lists on cuda:{} are made anew by the next search there", device));
    }
  }
  return merged;
}

SharedSegment without(const SegmentCopies& segment, const KeptRows& kept, int64_t rows, const Resources& resources) {
  if (!segment.space().host_readable()) {
    const int device = segment.space().device;
    try {
      const SegmentThere there = segment.on_device(device, resources);
      return std::make_shared<SegmentCopies>(without_on_device(*there, kept, rows, resources), resources);
    } catch (const OutOfMemory& error) {
      resources.log(LogLevel::info, fmt::format("the lists come to the host: {}", error.what()));
    }
  }
  return std::make_shared<SegmentCopies>(without(*segment.on_host(resources), kept, resources));
}

}  // namespace kith
