#include "ivf/search/host_lists_cuda.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_guard.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>

namespace kith {

PinnedLists::PinnedLists(const ListSegment& segment)
    : codes_(pin(segment.codes(), segment.size() * segment.code_bytes())),
      rows_(pin(segment.rows(), array_bytes<uint32_t>(segment.size()))) {}

PinnedLists::~PinnedLists() {
  for (const Array& array : {codes_, rows_}) {
    if (array.pinned) (void)cudaHostUnregister(const_cast<void*>(array.begin));
  }
}

// What cannot be pinned is copied all the same. Host buffers so large begin a mapping of their own.
PinnedLists::Array PinnedLists::pin(const void* begin, int64_t bytes) {
  constexpr int64_t kPage = 4096;
  constexpr int64_t kLeast = int64_t{32} << 20;
  Array array{begin};
  if (bytes < kLeast || reinterpret_cast<uintptr_t>(begin) % kPage != 0) return array;
  void* const memory = const_cast<void*>(begin);
  const auto all = static_cast<size_t>(round_up(bytes, kPage));
  array.pinned = cudaHostRegister(memory, all, cudaHostRegisterMapped) == cudaSuccess;
  void* there = nullptr;
  if (array.pinned && cudaHostGetDevicePointer(&there, memory, 0) == cudaSuccess) array.on_device = there;
  (void)cudaGetLastError();
  return array;
}

std::shared_ptr<const PinnedLists> pinned_lists(int device, const SegmentCopies& segment, const ListSegment& here) {
  if (here.is_mapped()) return nullptr;
  const PreparedAs<PinnedLists> pinned;
  const Device there = Device::cuda(device);
  std::shared_ptr<const PreparedSegment> kept = segment.prepared().find(there, pinned);
  if (kept == nullptr) {
    const DeviceGuard guard(device);
    kept = segment.prepared().keep(there, std::make_shared<const PinnedLists>(here), pinned);
  }
  return std::static_pointer_cast<const PinnedLists>(kept);
}

int64_t longest_list(const std::vector<HostLists>& all) {
  int64_t longest = 1;
  for (const HostLists& lists : all) {
    const ListSegment& segment = *lists.segment;
    for (int64_t list = 0; list < segment.lists(); ++list) longest = std::max(longest, segment.size_of(list));
  }
  return longest;
}

std::vector<ListPiece> cut_into_pieces(const std::vector<HostLists>& all, int64_t most) {
  std::vector<ListPiece> pieces;
  for (size_t i = 0; i < all.size(); ++i) {
    const ListSegment& segment = *all[i].segment;
    ListPiece piece{.segment = i};
    for (int64_t list = 0; list < segment.lists(); ++list) {
      const int64_t end = segment.offsets()[list + 1];
      if (end - piece.first > most && piece.size() > 0) {
        pieces.push_back(piece);
        piece = {.segment = i, .first = piece.end, .end = piece.end};
      }
      piece.filled += end > piece.end ? 1 : 0;
      piece.longest = std::max(piece.longest, end - piece.end);
      piece.end = end;
    }
    if (piece.size() > 0) pieces.push_back(piece);
  }
  return pieces;
}

int64_t SampleShape::place(const std::vector<HostLists>& from, int64_t lists, int64_t* offsets) const {
  int64_t at = 0;
  for (int64_t list = 0; list < lists; ++list) {
    offsets[list] = at;
    for (const HostLists& some : from) at += taken(some.segment->size_of(list));
  }
  offsets[lists] = at;
  return at;
}

ListSample::ListSample(const std::vector<HostLists>& from, const SampleShape& shape, const HostArray<int64_t>& offsets,
                       const Resources& resources)
    : code_bytes_(from[0].segment->code_bytes()),
      codes_(offsets[offsets.size() - 1] * code_bytes_, "a sample of the lists", resources),
      rows_(offsets[offsets.size() - 1], "a sample of the lists", resources) {
  const int64_t lists = offsets.size() - 1;
  const Resources quiet = resources.with_progress({});
  constexpr int64_t kTaskLists = 64;
  ProgressMeter meter("sample", lists, quiet);
  parallel_for(divide_up(lists, kTaskLists), meter, quiet, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * kTaskLists, lists);
    for (int64_t list = task * kTaskLists; list < end; ++list) gather(from, shape, list, offsets[list]);
  });
}

// As gather_sample_kernel does.
void ListSample::gather(const std::vector<HostLists>& from, const SampleShape& shape, int64_t list, int64_t to) const {
  for (const HostLists& some : from) {
    const ListSegment& segment = *some.segment;
    const int64_t begin = segment.offsets()[list];
    const int64_t length = segment.size_of(list);
    const bool whole = length <= shape.each;
    const int64_t runs = whole ? 1 : shape.each / SampleShape::kRun;
    const int64_t rows = whole ? length : SampleShape::kRun;
    for (int64_t run = 0; run < runs; ++run) {
      const int64_t first = begin + run * (length / runs);
      std::copy_n(segment.code(first), rows * code_bytes_, codes_.data() + to * code_bytes_);
      std::copy_n(segment.rows() + first, rows, rows_.data() + to);
      to += rows;
    }
  }
}

}  // namespace kith
