#include "ivf/segment/list_segment.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/workspace_layout.hpp"
#include "io/file_error.hpp"
#include "io/file_mapping.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/segment/place_table.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "quantize/additive/code_norms.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kBlockBytes = 8 << 20;  // rows encoded together, as f32
constexpr int64_t kTaskRows = 1 << 12;

// The arrays of a segment being built; the sizes of its lists are known.
struct SegmentArrays {
  HostArray<int64_t> offsets;
  HostArray<uint8_t> codes;
  HostArray<uint32_t> rows;

  // Expects the sizes in offsets[1 ...].
  SegmentArrays(HostArray<int64_t> sizes, int64_t code_bytes, const Resources& resources) : offsets(std::move(sizes)) {
    offsets[0] = 0;
    for (int64_t list = 1; list < offsets.size(); ++list) offsets[list] += offsets[list - 1];
    const int64_t size = offsets[offsets.size() - 1];
    codes = HostArray<uint8_t>(size * code_bytes, "the lists' codes", resources);
    rows = HostArray<uint32_t>(size, "the lists' rows", resources);
  }

  Segment segment(int64_t code_bytes, const Resources& resources) && {
    return std::make_shared<ListSegment>(std::move(offsets), std::move(codes), std::move(rows), code_bytes, resources);
  }
};

[[noreturn]] void throw_not_together() {
  throw InvalidArgument("the offsets, codes and rows of the lists do not go together");
}

HostArray<int64_t> no_sizes(int64_t lists, const Resources& resources) {
  HostArray<int64_t> sizes(lists + 1, "the lists' offsets", resources);
  std::fill(sizes.begin(), sizes.end(), int64_t{0});
  return sizes;
}

// Writes the norms after codes of residuals; they are the norms of whole vectors, including the centres.
void write_norms(const IvfModel& model, const SegmentArrays& arrays, int64_t begin, int64_t end) {
  const CodecView codec = model.codec->view();
  const int64_t* const offsets = arrays.offsets.data();
  int64_t list = std::upper_bound(offsets, offsets + arrays.offsets.size(), begin) - offsets - 1;
  for (int64_t at = begin; at < end; ++list) {
    const int64_t stop = std::min(end, offsets[list + 1]);
    write_code_norms(codec, arrays.codes.data() + at * codec.format.bytes(), stop - at, model.base_of(list));
    at = stop;
  }
}

// Calls use(list) for every list, on all threads; it returns the number of vectors that it processed.
template <typename Use>
void for_each_list(int64_t lists, ProgressMeter& meter, const Resources& resources, const Use& use) {
  constexpr int64_t kListsPerTask = 16;
  parallel_for(divide_up(lists, kListsPerTask), meter, resources, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * kListsPerTask, lists);
    for (int64_t list = task * kListsPerTask; list < end; ++list) meter.add(use(list));
  });
}

int64_t encoded_together(int64_t rows, int64_t cols) {
  return std::min(rows, std::max<int64_t>(kBlockBytes / array_bytes<float>(cols), 64));
}

// Encodes the vectors in the order of lists, block by block.
void encode_all(const IvfModel& model, const MatrixView& rows, int64_t first_row, const SegmentArrays& arrays,
                const Resources& resources) {
  const int64_t cols = rows.cols();
  const int64_t size = arrays.rows.size();
  const int64_t block = encoded_together(size, cols);
  if (size == 0) return;
  const HostArray<float> values(block * cols, "rows to encode", resources);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("encode", size, resources);
  for (int64_t first = 0; first < size; first += block) {
    const int64_t count = std::min(block, size - first);
    parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int) {
      const int64_t begin = task * kTaskRows;
      const int64_t* const offsets = arrays.offsets.data();
      int64_t list = std::upper_bound(offsets, offsets + arrays.offsets.size(), first + begin) - offsets - 1;
      for (int64_t i = begin; i < std::min(begin + kTaskRows, count); ++i) {
        while (offsets[list + 1] <= first + i) ++list;
        float* const out = values.data() + i * cols;
        widen_row(rows, arrays.rows[first + i] - first_row, out);
        const float* const centre = model.base_of(list);
        if (centre == nullptr) continue;
        for (int64_t c = 0; c < cols; ++c) out[c] -= centre[c];
      }
    });
    model.codec->encode(MatrixView(values.data(), count, cols),
                        arrays.codes.data() + first * model.codec->format().bytes(), quiet);
    if (model.residual && model.codec->format().has_norm()) {
      parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int) {
        const int64_t begin = first + task * kTaskRows;
        write_norms(model, arrays, begin, std::min(begin + kTaskRows, first + count));
      });
    }
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

}  // namespace

ListSegment::ListSegment(HostArray<int64_t> offsets, HostArray<uint8_t> codes, HostArray<uint32_t> rows,
                         int64_t code_bytes, const Resources& resources)
    : arrays_{offsets.data(), codes.data(), rows.data(), offsets.size() - 1, rows.size()},
      code_bytes_(code_bytes),
      bytes_(offsets.bytes() + codes.bytes() + rows.bytes()) {
  if (codes.size() != rows.size() * code_bytes) throw_not_together();
  struct Owned {
    HostArray<int64_t> offsets;
    HostArray<uint8_t> codes;
    HostArray<uint32_t> rows;
  };
  keeper_ = std::make_shared<const Owned>(Owned{std::move(offsets), std::move(codes), std::move(rows)});
  mark_lists(resources);
}

ListSegment::ListSegment(const Arrays& arrays, int64_t code_bytes, std::shared_ptr<const void> keeper,
                         const Resources& resources)
    : arrays_(arrays), code_bytes_(code_bytes), keeper_(std::move(keeper)) {
  mark_lists(resources);
}

ListSegment::ListSegment(const Arrays& arrays, int64_t code_bytes, std::shared_ptr<const void> keeper,
                         const Unchecked& unchecked, const Resources& resources)
    : arrays_(arrays),
      code_bytes_(code_bytes),
      bytes_(unchecked.own_bytes + arrays.lists),
      keeper_(std::move(keeper)),
      unchecked_(unchecked),
      checked_(arrays.lists, "the lists of a file that were checked", resources) {
  std::fill(checked_.begin(), checked_.end(), uint8_t{0});
  mark_lists(resources);
}

bool ListSegment::ascends(int64_t list) const {
  const uint32_t* const first = rows() + offsets()[list];
  const uint32_t* const end = rows() + offsets()[list + 1];
  return std::adjacent_find(first, end, std::greater_equal()) == end;
}

void ListSegment::expect_list(int64_t list) const {
  if (!is_mapped()) return;
  const int64_t first = offsets()[list];
  expect_mapped(codes() + first * code_bytes_, size_of(list) * code_bytes_);
  expect_mapped(rows() + first, size_of(list) * static_cast<int64_t>(sizeof(uint32_t)));
}

void ListSegment::check_list(int64_t list) const {
  if (!is_mapped()) return;
  const std::atomic_ref<uint8_t> checked(checked_[list]);
  if (checked.load(std::memory_order_relaxed) != 0) return;
  const int64_t end = offsets()[list + 1];
  const bool below = size_of(list) == 0 || rows()[end - 1] < unchecked_.rows;
  if (!below || !ascends(list)) {
    throw_corrupt(unchecked_.path, 0,
                  fmt::format("section 'rows': the rows of list {} do not ascend below {}", list, unchecked_.rows));
  }
  checked.store(1, std::memory_order_relaxed);
}

void ListSegment::check_lists() const {
  for (int64_t list = 0; list < (is_mapped() ? lists() : 0); ++list) check_list(list);
}

void ListSegment::rows_repeat() const {
  throw_corrupt(unchecked_.path, 0, "section 'rows': a row is there twice, or not at all");
}

void ListSegment::mark_lists(const Resources& resources) {
  marks_ = HostArray<uint32_t>(divide_up(size(), kMarkEvery) + 1, "marks of the lists", resources);
  bytes_ += marks_.bytes();
  if (counts_only(resources)) return;
  const int64_t* const begins = offsets();
  if (lists() < 1 || begins[0] != 0 || begins[lists()] != size() || !std::is_sorted(begins, begins + lists() + 1)) {
    throw_not_together();
  }
  for (int64_t list = 0; list < lists() && !is_mapped(); ++list) {
    if (!ascends(list)) throw InvalidArgument(fmt::format("the rows of list {} do not ascend", list));
  }
  int64_t list = 0;
  for (int64_t place = 0; place < size(); place += kMarkEvery) {
    while (begins[list + 1] <= place) ++list;
    marks_[place / kMarkEvery] = static_cast<uint32_t>(list);
  }
  marks_[marks_.size() - 1] = static_cast<uint32_t>(lists() - 1);
}

int64_t ListSegment::list_of(int64_t place) const {
  const int64_t mark = place / kMarkEvery;
  // The first list that ends after the place, in the range given by the marks.
  const int64_t* const ends = offsets() + 1;
  return std::upper_bound(ends + marks_[mark], ends + marks_[mark + 1], place) - ends;
}

namespace {

struct SegmentLayout : WorkspaceLayout {
  SegmentLayout(int64_t lists, int64_t size, int64_t code_bytes)
      : offsets(take<int64_t>(lists + 1)), codes(take<uint8_t>(size, code_bytes)), rows(take<uint32_t>(size)) {}
  Slot<int64_t> offsets;
  Slot<uint8_t> codes;
  Slot<uint32_t> rows;
};

template <typename T>
void upload(const T* from, int64_t count, T* to, int device, const Resources& resources) {
  const int64_t bytes = array_bytes<T>(count);
  if (bytes == 0) return;
  const MatrixView run(from, DType::u8, {1, bytes, bytes});
  copy_to_device(run, reinterpret_cast<std::byte*>(to), device, resources);
}

template <typename T>
HostArray<T> download(const T* from, int64_t count, int device, const Resources& resources) {
  HostArray<T> to(count, "the lists", resources);
  if (count > 0 && !counts_only(resources)) copy_to_host(from, to.bytes(), device, to.data());
  return to;
}

}  // namespace

ListSegment::ListSegment(int device, int64_t lists, int64_t size, int64_t code_bytes, const Resources& resources)
    : space_(MemorySpace::cuda(device)), code_bytes_(code_bytes) {
  const SegmentLayout layout(lists, size, code_bytes);
  bytes_ = layout.bytes;
  const std::shared_ptr<std::byte> memory = allocate_on_device(bytes_, "the lists on the device", device, resources);
  to_fill_ = {layout.offsets.in(memory.get()), layout.codes.in(memory.get()), layout.rows.in(memory.get()), size};
  arrays_ = {to_fill_.offsets, to_fill_.codes, to_fill_.rows, lists, size};
  keeper_ = memory;
}

Segment ListSegment::copied_to(Device device, const Resources& given) const {
  const Resources resources = given.with_progress({});
  if (!space_.host_readable()) {
    const int from = space_.device;
    const auto here = std::make_shared<ListSegment>(download(offsets(), lists() + 1, from, resources),
                                                    download(codes(), size() * code_bytes_, from, resources),
                                                    download(rows(), size(), from, resources), code_bytes_, resources);
    return device == Device::cpu() ? here : here->copied_to(device, resources);
  }
  check_lists();
  const auto made = std::make_shared<ListSegment>(device.index, lists(), size(), code_bytes_, resources);
  upload(offsets(), lists() + 1, made->to_fill().offsets, device.index, resources);
  upload(codes(), size() * code_bytes_, made->to_fill().codes, device.index, resources);
  upload(rows(), size(), made->to_fill().rows, device.index, resources);
  return made;
}

void ListSegment::add_sizes(const uint64_t* kept, int64_t* sizes, const Resources& resources) const {
  const bool here = space_.host_readable();
  if (kept != nullptr) check_lists();
  HostArray<int64_t> fetched_offsets;
  HostArray<uint32_t> fetched_rows;
  if (!here) fetched_offsets = download(offsets(), lists() + 1, space_.device, resources);
  if (!here && kept != nullptr) fetched_rows = download(rows(), size(), space_.device, resources);
  const int64_t* const begins = here ? offsets() : fetched_offsets.data();
  const uint32_t* const numbers = here ? rows() : fetched_rows.data();
  const auto stays = [&](uint32_t row) { return keeps(kept, row); };
  for (int64_t list = 0; list < lists(); ++list) {
    sizes[list] += kept == nullptr ? begins[list + 1] - begins[list]
                                   : std::count_if(numbers + begins[list], numbers + begins[list + 1], stays);
  }
}

// Counting sort: tasks over consecutive rows first count the rows of each list, then place them. Rows are placed in
// order, so that those of a list ascend.
Segment build_segment(const IvfModel& model, const MatrixView& rows, int64_t first_row, const Resources& given) {
  const DefaultFloatMode mode;
  const Resources resources = given.with_device(Device::cpu());
  const int64_t lists = model.lists();
  const int64_t code_bytes = model.codec->format().bytes();
  HostArray<int64_t> sizes = no_sizes(lists, resources);
  const HostArray<int32_t> labels(model.has_centres() ? rows.rows() : 0, "the rows' lists", resources);
  if (model.has_centres()) assign_lists(model.metric, model.centres.view(), rows, labels.data(), resources);
  const auto list_of = [&](int64_t row) { return model.has_centres() ? labels[row] : 0; };
  for (int64_t i = 0; i < rows.rows(); ++i) ++sizes[list_of(i) + 1];
  SegmentArrays arrays(std::move(sizes), code_bytes, resources);
  {
    const HostArray<int64_t> next(lists, "the lists' offsets", resources);
    std::copy_n(arrays.offsets.data(), lists, next.data());
    for (int64_t i = 0; i < rows.rows(); ++i) arrays.rows[next[list_of(i)]++] = static_cast<uint32_t>(first_row + i);
  }
  encode_all(model, rows, first_row, arrays, resources);
  return std::move(arrays).segment(code_bytes, resources);
}

Footprint build_segment_footprint(const IvfModel& model, const RowsInfo& rows, const Resources& given) {
  const Resources resources = given.with_device(Device::cpu());
  const int64_t block = encoded_together(rows.rows, rows.cols);
  const Footprint encoding = array_footprint<float>(block, rows.cols)
                                 .beside(model.codec->encoding_footprint({block, rows.cols, DType::f32}, resources));
  const Footprint segment{ListSegment::bytes_for(model.lists(), rows.rows, model.codec->format().bytes())};
  const Footprint working = encoding.then(array_footprint<int64_t>(model.lists()));
  if (!model.has_centres()) return segment.beside(working);
  return segment.beside(array_footprint<int32_t>(rows.rows))
      .beside(working.then(assign_footprint(model.metric, model.lists(), rows, resources)));
}

Segment merge_segments(const std::vector<Segment>& segments, const Resources& resources) {
  const int64_t lists = segments.front()->lists();
  const int64_t code_bytes = segments.front()->code_bytes();
  if (counts_only(resources)) {
    int64_t size = 0;
    for (const Segment& segment : segments) size += segment->size();
    return std::make_shared<ListSegment>(HostArray<int64_t>(lists + 1, "the lists' offsets", resources),
                                         HostArray<uint8_t>(size * code_bytes, "the lists' codes", resources),
                                         HostArray<uint32_t>(size, "the lists' rows", resources), code_bytes,
                                         resources);
  }
  HostArray<int64_t> sizes = no_sizes(lists, resources);
  for (const Segment& segment : segments) {
    segment->check_lists();
    for (int64_t list = 0; list < lists; ++list) sizes[list + 1] += segment->size_of(list);
  }
  SegmentArrays arrays(std::move(sizes), code_bytes, resources);
  ProgressMeter meter("merge", arrays.rows.size(), resources);
  for_each_list(lists, meter, resources, [&](int64_t list) {
    int64_t at = arrays.offsets[list];
    for (const Segment& segment : segments) {
      const int64_t from = segment->offsets()[list];
      const int64_t count = segment->size_of(list);
      if (count == 0) continue;
      std::copy_n(segment->rows() + from, count, arrays.rows.data() + at);
      std::copy_n(segment->code(from), count * code_bytes, arrays.codes.data() + at * code_bytes);
      at += count;
    }
    return at - arrays.offsets[list];
  });
  meter.finish();
  return std::move(arrays).segment(code_bytes, resources);
}

Segment renumbered(const ListSegment& segment, int64_t first_row, const Resources& resources) {
  segment.check_lists();
  const int64_t size = segment.size();
  HostArray<int64_t> offsets(segment.lists() + 1, "the lists' offsets", resources);
  HostArray<uint8_t> codes(size * segment.code_bytes(), "the lists' codes", resources);
  HostArray<uint32_t> rows(size, "the lists' rows", resources);
  std::copy_n(segment.offsets(), offsets.size(), offsets.data());
  std::copy_n(segment.codes(), codes.size(), codes.data());
  std::transform(segment.rows(), segment.rows() + size, rows.data(),
                 [&](uint32_t row) { return static_cast<uint32_t>(row + first_row); });
  return std::make_shared<ListSegment>(std::move(offsets), std::move(codes), std::move(rows), segment.code_bytes(),
                                       resources);
}

Segment cut_rows(const ListSegment& segment, int64_t first, int64_t end, int64_t to, const Resources& resources) {
  segment.check_lists();
  const int64_t lists = segment.lists();
  const int64_t code_bytes = segment.code_bytes();
  const auto place = [&](int64_t list, int64_t row) {
    const uint32_t* const rows = segment.rows();
    return std::lower_bound(rows + segment.offsets()[list], rows + segment.offsets()[list + 1],
                            static_cast<uint64_t>(row)) -
           rows;
  };
  HostArray<int64_t> sizes = no_sizes(lists, resources);
  ProgressMeter meter("cut", 2 * lists, resources);
  for_each_list(lists, meter, resources, [&](int64_t list) {
    sizes[list + 1] = place(list, end) - place(list, first);
    return 1;
  });
  SegmentArrays arrays(std::move(sizes), code_bytes, resources);
  for_each_list(lists, meter, resources, [&](int64_t list) {
    const int64_t from = place(list, first);
    const int64_t at = arrays.offsets[list];
    const int64_t count = arrays.offsets[list + 1] - at;
    if (count == 0) return 1;
    std::transform(segment.rows() + from, segment.rows() + from + count, arrays.rows.data() + at,
                   [&](uint32_t row) { return static_cast<uint32_t>(row - first + to); });
    std::copy_n(segment.code(from), count * code_bytes, arrays.codes.data() + at * code_bytes);
    return 1;
  });
  meter.finish();
  return std::move(arrays).segment(code_bytes, resources);
}

Segment without(const ListSegment& segment, const KeptRows& kept, const Resources& resources) {
  const int64_t lists = segment.lists();
  const int64_t code_bytes = segment.code_bytes();
  const bool some = kept.leaves_some_out();
  segment.check_lists();
  const auto keeps_place = [&](int64_t place) { return !some || keeps(kept.bits(), segment.rows()[place]); };
  HostArray<int64_t> sizes = no_sizes(lists, resources);
  ProgressMeter meter("remove", 2 * segment.size(), resources);
  for_each_list(lists, meter, resources, [&](int64_t list) {
    for (int64_t i = segment.offsets()[list]; i < segment.offsets()[list + 1]; ++i) sizes[list + 1] += keeps_place(i);
    return segment.size_of(list);
  });
  SegmentArrays arrays(std::move(sizes), code_bytes, resources);
  for_each_list(lists, meter, resources, [&](int64_t list) {
    int64_t at = arrays.offsets[list];
    for (int64_t i = segment.offsets()[list]; i < segment.offsets()[list + 1]; ++i) {
      if (!keeps_place(i)) continue;
      const int64_t row = segment.rows()[i];
      arrays.rows[at] = static_cast<uint32_t>(some ? kept.count_before(row) : row);
      std::copy_n(segment.code(i), code_bytes, arrays.codes.data() + at * code_bytes);
      ++at;
    }
    return segment.size_of(list);
  });
  meter.finish();
  return std::move(arrays).segment(code_bytes, resources);
}

namespace {

// The place of a row in a segment, or PlaceTable::kNowhere.
int64_t find_row(const ListSegment& segment, int64_t row) {
  for (int64_t list = 0; list < segment.lists(); ++list) {
    const uint32_t* const first = segment.rows() + segment.offsets()[list];
    const uint32_t* const end = segment.rows() + segment.offsets()[list + 1];
    const uint32_t* const at = std::lower_bound(first, end, static_cast<uint64_t>(row));
    if (at != end && *at == row) return at - segment.rows();
  }
  return PlaceTable::kNowhere;
}

}  // namespace

void reconstruct_rows(const IvfModel& model, const std::vector<Segment>& segments, const int64_t* rows, int64_t count,
                      const MutableMatrixView& out, const Resources& resources) {
  const DefaultFloatMode mode;
  const HostArray<uint8_t> found(count, "which rows were found", resources);
  std::fill(found.begin(), found.end(), uint8_t{0});
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("reconstruct", count, quiet);
  for (const Segment& segment : segments) {
    constexpr int64_t kStepsPerList = 16;
    const bool few = count <= segment->size() / (segment->lists() * kStepsPerList);
    std::optional<PlaceTable> table;
    if (!few) {
      segment->check_lists();
      table.emplace(segment->rows(), segment->size(), resources);
    }
    constexpr int64_t kRowsPerTask = 64;
    parallel_for(divide_up(count, kRowsPerTask), meter, quiet, [&](int64_t task, int) {
      for (int64_t i = task * kRowsPerTask; i < std::min((task + 1) * kRowsPerTask, count); ++i) {
        const int64_t place = few ? find_row(*segment, rows[i]) : table->find(rows[i]);
        if (place == PlaceTable::kNowhere) continue;
        decode_rows_cpu(model.codec->view(), segment->code(place), 1, model.base_of(segment->list_of(place)),
                        typed_row<float>(out, i));
        found[i] = 1;
      }
    });
  }
  for (int64_t i = 0; i < count; ++i) {
    if (found[i] == 0) throw InvalidArgument(fmt::format("the index has no row {}", rows[i]));
  }
}

}  // namespace kith
