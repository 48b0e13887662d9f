#include "ivf/segment/segment_copies.hpp"

#include <kith/error.hpp>

#include "cuda/resolve_device.hpp"
#include "ivf/segment/code_rows_cuda.hpp"
#include "quantize/code_encoder.hpp"
#include "ranks/parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

namespace {

Device coding_device(const IvfModel& model, const RowsInfo& rows, const Resources& resources) {
  const CodeRecipe& recipe = model.codec->recipe();
  const auto count = static_cast<double>(rows.rows);
  const double compared =
      static_cast<double>(model.has_centres() ? model.lists() : 0) + recipe.code->compared_codewords(recipe);
  const auto cols = static_cast<double>(rows.cols);
  const DeviceJob job{"the coding of vectors",
                      [&] { return fmt::format("{} rows for {} lists", rows.rows, model.lists()); }};
  return choose_device(
      job, {rows.space},
      {{CostUnit::dense_product, 2 * count * compared * cols},
       {CostUnit::copied_byte, count * cols * static_cast<double>(size_of(rows.dtype))}},
      [&](Device) { return recipe.code->on_gpus(); }, resources);
}

// Encodes as many rows at a time as fit on the device.
Segment make_on_gpu(int device, const IvfModel& model, const MatrixView& rows, int64_t first_row,
                    const Resources& resources) {
  const bool stays = !rows.space().host_readable();
  const int64_t together = rows_coded_together(device, model, rows, resources);
  std::vector<Segment> parts;
  for (int64_t first = 0; first < rows.rows() || first == 0; first += together) {
    const MatrixView some = rows.slice(first, std::min(together, rows.rows() - first));
    Segment part = code_rows_cuda(device, model, some, first_row + first, resources);
    parts.push_back(stays ? std::move(part) : part->copied_to(Device::cpu(), resources));
  }
  if (stays) return merge_on_device(parts, resources);
  return parts.size() == 1 ? parts[0] : merge_segments(parts, resources);
}

// Merges all segments on the device, after copying those that it lacks.
Segment merged_on(Device device, const std::vector<SharedSegment>& segments, const Resources& resources) {
  std::vector<Segment> there;
  there.reserve(segments.size());
  for (const SharedSegment& segment : segments) there.push_back(segment->on(device, resources));
  return device == Device::cpu() ? merge_segments(there, resources) : merge_on_device(there, resources);
}

}  // namespace

namespace {

// Rows on the host are split among devices: the code and list of a row do not depend on others, so merging the pieces
// in row order gives the segment that a single device would make.
SharedSegment make_on_parts(const IvfModel& model, const MatrixView& rows, int64_t first_row,
                            const Resources& resources) {
  std::vector<Segment> made(static_cast<size_t>(resources.parts()));
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const RankPart share = part_of(rows.rows(), 1, ranks.rank(), ranks.size());
    if (share.count == 0) return;
    const SharedSegment own = make_segment(model, rows.slice(share.first, share.count), first_row + share.first, part);
    made[static_cast<size_t>(ranks.rank())] = own->on(Device::cpu(), part);
  });
  std::erase(made, nullptr);
  return std::make_shared<SegmentCopies>(made.size() == 1 ? made.front() : merge_segments(made, resources));
}

}  // namespace

SharedSegment make_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row,
                           const Resources& resources) {
  if (is_shared(resources) && rows.space().host_readable() && rows.rows() > 0) {
    return make_on_parts(model, rows, first_row, resources);
  }
  const Device device = coding_device(model, RowsInfo(rows), resources);
  if (device.kind == DeviceKind::cuda) {
    try {
      return std::make_shared<SegmentCopies>(make_on_gpu(device.index, model, rows, first_row, resources));
    } catch (const OutOfMemory& error) {
      if (resources.device().kind != DeviceKind::automatic || !rows.space().host_readable()) throw;
      resources.log(LogLevel::info, fmt::format("vectors are coded on the CPU: {}", error.what()));
    }
  }
  return std::make_shared<SegmentCopies>(build_segment(model, rows, first_row, resources));
}

Footprint make_segment_footprint(const IvfModel& model, const RowsInfo& rows, const Resources& resources) {
  if (counted_device(rows.space, resources) == Device::cpu()) return build_segment_footprint(model, rows, resources);
  return footprint_of_call(
      resources, [&](const Resources& counting) { (void)make_segment(model, rows.counted_view(), 0, counting); });
}

SharedSegment merge_copies(const std::vector<SharedSegment>& segments, const Resources& resources) {
  if (segments.size() == 1) return segments.front();
  const Device home = device_at(segments.back()->space());
  const auto merged = std::make_shared<const SegmentCopies>(merged_on(home, segments, resources));
  // Copies on GPUs are optional, so they are not counted.
  if (home != Device::cpu() || resources.device() == Device::cpu() || counts_only(resources)) return merged;
  for (const Device device : segments.front()->copies().devices()) {
    if (device == home || (resources.device().kind == DeviceKind::cuda && resources.device() != device)) continue;
    try {
      merged->copies().keep(device, merged_on(device, segments, resources));
    } catch (const OutOfMemory&) {
      resources.log(LogLevel::info,
                    fmt::format("the lists on {} are made anew by the next search there", name_of(device)));
    }
  }
  return merged;
}

SharedSegment without(const SegmentCopies& segment, const KeptRows& kept, int64_t rows, const Resources& resources) {
  if (!segment.space().host_readable()) {
    try {
      return std::make_shared<SegmentCopies>(without_on_device(segment.made(), kept, rows, resources));
    } catch (const OutOfMemory& error) {
      resources.log(LogLevel::info, fmt::format("the lists come to the host: {}", error.what()));
    }
  }
  return std::make_shared<SegmentCopies>(without(*segment.on(Device::cpu(), resources), kept, resources));
}

SharedPlaceTable find_place_table(const SegmentCopies& segment) {
  return std::static_pointer_cast<const PlaceTable>(segment.prepared().find(Device::cpu(), PreparedAs<PlaceTable>()));
}

SharedPlaceTable get_place_table(const SegmentCopies& segment, int64_t room, const Resources& resources) {
  if (SharedPlaceTable ready = find_place_table(segment)) return ready;
  // The rows of a segment are consecutive, so a table has one entry per row.
  if (segment.size() == 0 || array_bytes<uint32_t>(segment.size()) > room) return nullptr;
  // Nothing is cached for a mapped file.
  const Segment here = segment.on(Device::cpu(), resources);
  if (here->is_mapped()) return nullptr;
  const auto made = std::make_shared<const PlaceTable>(here->rows(), here->size(), resources);
  return std::static_pointer_cast<const PlaceTable>(
      segment.prepared().keep(Device::cpu(), made, PreparedAs<PlaceTable>()));
}

}  // namespace kith
