#include "ivf/search/pieced_lists_cuda.hpp"

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "ivf/segment/prepared_segment.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>

namespace kith {
namespace {

// Pages of a segment's arrays that the system may not move, so that copies from them run at the speed of the bus. Kept with
// the segment, and given up before its arrays are.
class PinnedLists final : public PreparedSegment {
 public:
  explicit PinnedLists(const ListSegment& segment) {
    pin(segment.codes(), segment.size() * segment.code_bytes());
    pin(segment.rows(), segment.size() * int64_t{sizeof(uint32_t)});
  }
  ~PinnedLists() override {
    for (void* const begin : pinned_) (void)cudaHostUnregister(begin);
  }
  int64_t bytes() const override { return 0; }  // on the device

 private:
  // What cannot be pinned is copied all the same.
  void pin(const void* begin, int64_t bytes) {
    if (bytes == 0) return;
    void* const pages = const_cast<void*>(begin);
    if (cudaHostRegister(pages, static_cast<size_t>(bytes), cudaHostRegisterDefault) == cudaSuccess) {
      pinned_.push_back(pages);
    } else {
      (void)cudaGetLastError();
    }
  }

  std::vector<void*> pinned_;
};

void pin_lists(int device, const SegmentCopies& segment, const ListSegment& here) {
  const PreparedAs<PinnedLists> pinned;
  const Device there = Device::cuda(device);
  if (here.is_mapped() || segment.prepared().find(there, pinned) != nullptr) return;
  const DeviceGuard guard(device);
  segment.prepared().keep(there, std::make_shared<const PinnedLists>(here), pinned);
}

// Consecutive vectors of one segment: whole lists.
struct ListPiece {
  const ListSegment* segment = nullptr;
  int64_t first = 0;
  int64_t end = 0;
  int64_t size() const { return end - first; }
};

// As many lists in each as have `most` vectors at most; a longer one is by itself.
std::vector<ListPiece> cut_into_pieces(const std::vector<Segment>& segments, int64_t most) {
  std::vector<ListPiece> pieces;
  for (const Segment& segment : segments) {
    ListPiece piece{segment.get()};
    for (int64_t list = 0; list < segment->lists(); ++list) {
      const int64_t end = segment->offsets()[list + 1];
      if (end - piece.first > most && piece.size() > 0) {
        pieces.push_back(piece);
        piece.first = piece.end;
      }
      piece.end = end;
    }
    if (piece.size() > 0) pieces.push_back(piece);
  }
  return pieces;
}

int64_t longest_list(const std::vector<Segment>& segments) {
  int64_t longest = 1;
  for (const Segment& segment : segments) {
    for (int64_t list = 0; list < segment->lists(); ++list) longest = std::max(longest, segment->size_of(list));
  }
  return longest;
}

// A piece on its way to the GPU, with memory from the beginning on.
class ComingPiece {
 public:
  ComingPiece(int device, const ListPiece& piece, const Resources& resources)
      : device_(device),
        piece_(piece),
        resources_(resources.with_progress({})),
        offsets_(piece.segment->lists() + 1, "the lists' offsets", resources),
        there_(std::make_shared<ListSegment>(device, piece.segment->lists(), piece.size(), piece.segment->code_bytes(),
                                             resources)) {}

  void begin() {
    const auto copy = [this] { bring(); };
    try {
      coming_ = std::async(std::launch::async, copy);
    } catch (const std::system_error&) {  // no thread is to be had
      coming_ = std::async(std::launch::deferred, copy);
    }
  }
  SharedSegment take() {
    coming_.get();
    return std::make_shared<const SegmentCopies>(there_);
  }

 private:
  void bring() {
    const DeviceGuard guard(device_);
    const auto context = work_context(device_, resources_);
    const ListSegment& from = *piece_.segment;
    for (int64_t list = 0; list < offsets_.size(); ++list) {
      offsets_[list] = std::clamp(from.offsets()[list], piece_.first, piece_.end) - piece_.first;
    }
    const ListArrays& to = there_->to_fill();
    context->copy_values(to.offsets, offsets_.data(), offsets_.size());
    context->copy_values(to.codes, from.code(piece_.first), piece_.size() * from.code_bytes());
    context->copy_values(to.rows, from.rows() + piece_.first, piece_.size());
    context->synchronize();
  }

  const int device_;
  const ListPiece piece_;
  const Resources resources_;
  HostArray<int64_t> offsets_;
  const std::shared_ptr<ListSegment> there_;
  std::future<void> coming_;  // the last member: it ends first
};

// The first k of two lists of k, by (key, row).
void put_together(Metric metric, const NeighborsView& found, const NeighborsView& best, const Resources& resources) {
  const int64_t k = best.k;
  const bool larger = larger_is_nearer(metric);
  const auto key = [&](const NeighborsView& of, int64_t query, int64_t i) {
    const int64_t at = query * k + i;
    if (of.ids[at] < 0) return kPadding;
    return pack_neighbor(ordered_key(larger ? -of.distances[at] : of.distances[at]), static_cast<uint32_t>(of.ids[at]));
  };
  std::vector<int64_t> ids(static_cast<size_t>(k));
  std::vector<float> distances(static_cast<size_t>(k));
  for (int64_t query = 0; query < best.queries; ++query) {
    if (query % 1024 == 0) resources.check_cancelled();
    if (key(found, query, 0) >= key(best, query, k - 1)) continue;
    int64_t a = 0;
    int64_t b = 0;
    for (int64_t i = 0; i < k; ++i) {
      const bool takes_found = key(found, query, b) < key(best, query, a);
      const NeighborsView& from = takes_found ? found : best;
      const int64_t at = query * k + (takes_found ? b++ : a++);
      ids[static_cast<size_t>(i)] = from.ids[at];
      distances[static_cast<size_t>(i)] = from.distances[at];
    }
    std::copy(ids.begin(), ids.end(), best.ids + query * k);
    std::copy(distances.begin(), distances.end(), best.distances + query * k);
  }
}

// Vectors of a piece, of which the next one is there too: half of the memory left for both. Prepared lists take some bytes
// a vector more.
int64_t piece_size(const ListSegment& any, const Resources& resources) {
  constexpr int64_t kPieces = 4;
  constexpr int64_t kPreparedBytes = 16;
  const int64_t room = resources.device_memory()->available() / kPieces - (any.lists() + 1) * int64_t{sizeof(int64_t)};
  return room / (any.code_bytes() + int64_t{sizeof(uint32_t)} + kPreparedBytes);
}

void copy_results(int device, const NeighborsView& from, const NeighborsView& to, const Resources& resources) {
  const int64_t count = from.queries * from.k;
  if (to.space.host_readable()) {
    std::copy_n(from.ids, count, to.ids);
    std::copy_n(from.distances, count, to.distances);
    return;
  }
  const DeviceGuard guard(device);
  const DeviceContext context(device, resources.options().stream);
  context.copy_values(to.ids, from.ids, count);
  context.copy_values(to.distances, from.distances, count);
  context.synchronize();
}

}  // namespace

bool may_be_in_pieces(int device, const std::vector<SharedSegment>& segments, const Resources& resources) {
  const bool limited = resources.options().device_memory_limit != kNoLimit;  // also where memory is counted
  if (resources.device() != Device::cuda(device) || !limited) return false;
  return !segments.empty() && std::all_of(segments.begin(), segments.end(), [&](const SharedSegment& segment) {
    return segment->space().host_readable() && segment->copies().find(Device::cuda(device)) == nullptr;
  });
}

void search_in_pieces(int device, const IvfModel& model, const std::vector<SharedSegment>& segments,
                      const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                      const SearchSegments& search_segments, const Resources& given) {
  // Pieces have no room for what a search can do without.
  const Resources resources = SpareDeviceMemory::with(given, 0);
  std::vector<Segment> here;
  for (const SharedSegment& segment : segments) {
    if (segment->size() > 0) here.push_back(segment->on(Device::cpu(), resources));
  }
  if (here.empty() || queries.rows() == 0) return;
  Neighbors best(queries.rows(), search.k, resources);
  Neighbors found(queries.rows(), search.k, resources);
  const int64_t lists = model.lists();
  const int64_t longest = longest_list(here);
  const HostArray<int64_t> sizes(lists, "the lists' sizes", resources);
  const HostArray<uint32_t> narrow_sizes(lists, "the lists' sizes", resources);
  IvfSearch each = search;
  each.sizes = narrow_sizes.data();
  if (only_counts(resources)) {
    const HostArray<int64_t> offsets(2 * (lists + 1), "the lists' offsets", resources);
    const auto least = std::make_shared<ListSegment>(device, lists, longest, here[0]->code_bytes(), resources);
    return search_segments({std::make_shared<const SegmentCopies>(least)}, queries, each, found.view(), resources);
  }
  for (size_t i = 0, at = 0; i < segments.size(); ++i) {
    if (segments[i]->size() == 0) continue;
    here[at]->check_lists();
    pin_lists(device, *segments[i], *here[at++]);
  }
  // A query whose lists are short looks at more of them, by the sizes of all.
  std::fill(sizes.begin(), sizes.end(), int64_t{0});
  if (search.fewest > 0) {
    for (const Segment& segment : here) segment->add_sizes(search.kept, sizes.data(), resources);
  }
  std::copy(sizes.begin(), sizes.end(), narrow_sizes.begin());

  const int64_t fits = piece_size(*here[0], resources);
  const bool overlaps = fits >= longest;
  const std::vector<ListPiece> pieces = cut_into_pieces(here, std::max(fits, longest));
  std::unique_ptr<ComingPiece> next;
  const auto begin = [&](size_t piece) {
    next = std::make_unique<ComingPiece>(device, pieces[piece], resources);
    next->begin();
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (next == nullptr) begin(i);  // the memory of the piece before is free by now
    const SharedSegment now = next->take();
    next.reset();
    if (overlaps && i + 1 < pieces.size()) begin(i + 1);
    search_segments({now}, queries, each, i == 0 ? best.view() : found.view(), resources);
    if (i > 0) put_together(model.metric, found.view(), best.view(), resources);
  }
  copy_results(device, best.view(), out, resources);
}

}  // namespace kith
