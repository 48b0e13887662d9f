#include "ivf/search/pieced_lists_cuda.hpp"

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "core/reservation.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/row_upload.hpp"
#include "ivf/segment/prepared_segment.hpp"

#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Pinned arrays of a segment, so that copies from them run at the speed of the bus. Kept with the segment, and released
// before its arrays are.
//
// Only arrays with pages of their own are pinned, as a whole: a copy must not cross memory that is partly pinned.
class PinnedLists final : public PreparedSegment {
 public:
  explicit PinnedLists(const ListSegment& segment) {
    pin(segment.codes(), segment.size() * segment.code_bytes());
    pin(segment.rows(), array_bytes<uint32_t>(segment.size()));
  }
  ~PinnedLists() override {
    for (const void* const begin : pinned_) (void)cudaHostUnregister(const_cast<void*>(begin));
  }
  int64_t bytes() const override { return 0; }  // on the device

  bool has(const void* array) const { return std::find(pinned_.begin(), pinned_.end(), array) != pinned_.end(); }

 private:
  // What cannot be pinned is copied all the same. Host buffers so large begin a mapping of their own.
  void pin(const void* begin, int64_t bytes) {
    constexpr int64_t kPage = 4096;
    constexpr int64_t kLeast = int64_t{32} << 20;
    if (bytes < kLeast || reinterpret_cast<uintptr_t>(begin) % kPage != 0) return;
    void* const memory = const_cast<void*>(begin);
    if (cudaHostRegister(memory, static_cast<size_t>(round_up(bytes, kPage)), cudaHostRegisterDefault) == cudaSuccess) {
      pinned_.push_back(begin);
    } else {
      (void)cudaGetLastError();
    }
  }

  std::vector<const void*> pinned_;
};

// Null if the lists are in a mapped file.
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

// A segment on the host, whose lists go over.
struct HostLists {
  Segment segment;
  std::shared_ptr<const PinnedLists> pinned;
};

// Consecutive vectors of one segment: whole lists.
struct ListPiece {
  const ListSegment* segment = nullptr;
  const PinnedLists* pinned = nullptr;
  int64_t first = 0;
  int64_t end = 0;
  int64_t size() const { return end - first; }
};

// Whole lists of `most` vectors at most in each piece; a longer list is by itself.
std::vector<ListPiece> cut_into_pieces(const std::vector<HostLists>& all, int64_t most) {
  std::vector<ListPiece> pieces;
  for (const HostLists& lists : all) {
    const ListSegment& segment = *lists.segment;
    ListPiece piece{&segment, lists.pinned.get()};
    for (int64_t list = 0; list < segment.lists(); ++list) {
      const int64_t end = segment.offsets()[list + 1];
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

int64_t longest_list(const std::vector<HostLists>& all) {
  int64_t longest = 1;
  for (const HostLists& lists : all) {
    for (int64_t list = 0; list < lists.segment->lists(); ++list) longest = std::max(longest, lists.segment->size_of(list));
  }
  return longest;
}

// A piece on its way to the GPU, with memory from the beginning on.
class ComingPiece {
 public:
  ComingPiece(int device, const ListPiece& piece, const Resources& resources)
      : device_(device),
        piece_(piece),
        resources_(resources.with_progress({}).with_cancel(CancelToken())),
        offsets_(piece.segment->lists() + 1, "the lists' offsets", resources),
        there_(std::make_shared<ListSegment>(device, piece.segment->lists(), piece.size(), piece.segment->code_bytes(),
                                             resources)) {}

  void begin() {
    coming_ = start_beside([this] { bring(); });
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
    const int64_t bytes = piece_.size() * from.code_bytes();
    RowUpload upload(!is_pinned(from.codes()) && wants_pinned({}, bytes, resources_), resources_);
    context->copy_values(to.offsets, offsets_.data(), offsets_.size());
    copy(to.codes, from.code(piece_.first), bytes, is_pinned(from.codes()), upload, *context);
    copy(to.rows, from.rows() + piece_.first, array_bytes<uint32_t>(piece_.size()), is_pinned(from.rows()), upload, *context);
    context->synchronize();
  }

  bool is_pinned(const void* array) const { return piece_.pinned != nullptr && piece_.pinned->has(array); }
  void copy(void* to, const void* from, int64_t bytes, bool pinned, RowUpload& upload, const DeviceContext& context) const {
    if (pinned) return context.copy(to, from, bytes);
    ProgressMeter meter("copy", 1, resources_);
    upload.copy({from, DType::u8, {1, bytes, bytes}}, static_cast<std::byte*>(to), context.stream(), meter);
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
  constexpr int64_t kTaskQueries = 256;
  const int64_t k = best.k;
  const bool larger = larger_is_nearer(metric);
  const auto key = [&](const NeighborsView& of, int64_t query, int64_t i) {
    const int64_t at = query * k + i;
    if (of.ids[at] < 0) return kPadding;
    const float distance = larger ? -of.distances[at] : of.distances[at];
    return pack_neighbor(ordered_key(distance + 0.0f), static_cast<uint32_t>(of.ids[at]));  // -0 is 0
  };
  ProgressMeter meter("merge", best.queries, resources);
  parallel_for(divide_up(best.queries, kTaskQueries), meter, resources, [&](int64_t task, int) {
    std::vector<int64_t> ids(static_cast<size_t>(k));
    std::vector<float> distances(static_cast<size_t>(k));
    for (int64_t query = task * kTaskQueries; query < std::min((task + 1) * kTaskQueries, best.queries); ++query) {
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
  });
}

// Vectors of a piece.
struct PieceSize {
  int64_t vectors = 0;
  bool overlaps = false;  // with the copy of the next one
};

// The size of a piece that leaves room for the next piece and a third of the memory for the search's batches; at least
// the longest list. `footprint`: of a search of that many vectors, including them; `bytes`: of the vectors alone.
template <typename FootprintOf, typename BytesOf>
PieceSize choose_piece(int64_t longest, int64_t all, int64_t available, const FootprintOf& footprint,
                       const BytesOf& bytes) {
  const auto fits = [&](int64_t vectors) { return footprint(vectors) + bytes(vectors) <= available / 3 * 2; };
  if (!fits(longest)) return {longest, false};
  int64_t known = longest;
  for (int64_t beyond = all; beyond - known > known / 16;) {
    const int64_t middle = known + (beyond - known) / 2;
    (fits(middle) ? known : beyond) = middle;
  }
  return {known, true};
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
  // A list of most vectors lets a query have more candidates than lists of one length do, which are counted.
  constexpr int64_t kUnevenBytes = int64_t{2} << 20;
  // Pieces have no room for what a search can do without.
  const Resources resources = SpareDeviceMemory::with(given, 0);
  std::vector<HostLists> here;
  int64_t all = 0;
  for (const SharedSegment& segment : segments) {
    if (segment->size() == 0) continue;
    here.push_back({segment->on(Device::cpu(), resources), nullptr});
    all += segment->size();
  }
  if (here.empty() || queries.rows() == 0) return;
  Neighbors best(queries.rows(), search.k, resources);
  Neighbors found(queries.rows(), search.k, resources);
  const int64_t lists = model.lists();
  const int64_t code_bytes = here[0].segment->code_bytes();
  const int64_t longest = longest_list(here);
  const HostArray<int64_t> sizes(lists, "the lists' sizes", resources);
  const HostArray<uint32_t> narrow_sizes(lists, "the lists' sizes", resources);
  IvfSearch each = search;
  each.sizes = narrow_sizes.data();
  const auto count_piece = [&](int64_t vectors, const Resources& counting) {
    const HostArray<int64_t> offsets(2 * (lists + 1), "the lists' offsets", counting);
    const Reservation uneven(0, kUnevenBytes, counting);
    const auto piece = std::make_shared<ListSegment>(device, lists, vectors, code_bytes, counting);
    search_segments({std::make_shared<const SegmentCopies>(piece)}, queries, each, found.view(), counting);
  };
  if (only_counts(resources)) return count_piece(longest, resources);

  for (size_t i = 0, at = 0; i < segments.size(); ++i) {
    if (segments[i]->size() == 0) continue;
    here[at].segment->check_lists();
    here[at].pinned = pinned_lists(device, *segments[i], *here[at].segment);
    ++at;
  }
  // A query whose lists are short looks at more of them, by the sizes of all.
  std::fill(sizes.begin(), sizes.end(), int64_t{0});
  if (search.fewest > 0) {
    for (const HostLists& some : here) some.segment->add_sizes(search.kept, sizes.data(), resources);
  }
  std::copy(sizes.begin(), sizes.end(), narrow_sizes.begin());

  const auto footprint = [&](int64_t vectors) {
    return counted(resources, [&](const Resources& counting) { count_piece(vectors, counting); }).device;
  };
  const auto bytes = [&](int64_t vectors) {
    return footprint_of<ListSegment>(resources, device, lists, vectors, code_bytes).device;
  };
  const PieceSize size = choose_piece(longest, all, resources.device_memory()->available(), footprint, bytes);
  const std::vector<ListPiece> pieces = cut_into_pieces(here, size.vectors);
  resources.log(LogLevel::debug, fmt::format("lists of {} vectors are searched in {} pieces", all, pieces.size()));
  const Resources quiet = resources.with_progress({});
  std::unique_ptr<ComingPiece> next;
  const auto begin = [&](size_t piece) {
    next = std::make_unique<ComingPiece>(device, pieces[piece], resources);
    next->begin();
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (next == nullptr) begin(i);  // the memory of the piece before is free by now
    const SharedSegment now = next->take();
    next.reset();
    if (size.overlaps && i + 1 < pieces.size()) begin(i + 1);
    search_segments({now}, queries, each, i == 0 ? best.view() : found.view(), resources);
    if (i > 0) put_together(model.metric, found.view(), best.view(), quiet);
  }
  copy_results(device, best.view(), out, resources);
}

}  // namespace kith
